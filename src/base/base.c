#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char message[1024];
static _Thread_local char trail[512];

enum status fail(enum status st, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    trail[0] = '\0';
    return st;
}

enum status fail_in(enum status st, const char *format, ...)
{
    char old[sizeof message];
    memcpy(old, message, sizeof old);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    int room = (int)sizeof message - n - (int)sizeof ": ";
    if (n >= 0 && room > 0) {
        memcpy(message + n, ": ", 2);
        snprintf(message + n + 2, (size_t)room + 1, "%.*s", room, old);
    }
    return st;
}

const char *fail_message(void)
{
    return message;
}

const char *fail_trail(void)
{
    return trail;
}

enum status fail_via(enum status st, const char *file, int line)
{
    size_t used = strlen(trail);
    const char *below = strstr(file, "src/");
    snprintf(trail + used, sizeof trail - used, "%s%s:%d", used ? ", " : "via ",
             below ? below + 4 : file, line);
    return st;
}

void bug(const char *file, int line, const char *format, ...)
{
    fprintf(stderr, "strobe: BUG at %s:%d: ", file, line);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    abort();
}

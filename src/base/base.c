#include "base/base.h"

#include "base/visible.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local struct failure last;

enum status fail(enum status st, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(last.message, sizeof last.message, format, args);
    va_end(args);
    visible_in_place(last.message, sizeof last.message, strchr(format, '\n'));
    last.trail[0] = '\0';
    return st;
}

enum status fail_in(enum status st, const char *format, ...)
{
    char old[sizeof last.message];
    memcpy(old, last.message, sizeof old);
    va_list args;
    va_start(args, format);
    vsnprintf(last.message, sizeof last.message, format, args);
    va_end(args);
    visible_in_place(last.message, sizeof last.message, false);
    int n = (int)strlen(last.message);
    int space = (int)sizeof last.message - n - (int)sizeof ": ";
    if (space > 0) {
        memcpy(last.message + n, ": ", 2);
        snprintf(last.message + n + 2, (size_t)space + 1, "%.*s", space, old);
    }
    return st;
}

void fail_keep(struct failure *ret)
{
    *ret = last;
}

void fail_restore(const struct failure *kept)
{
    last = *kept;
}

const char *fail_message(void)
{
    return last.message;
}

const char *fail_trail(void)
{
    return last.trail;
}

enum status fail_via(enum status st, const char *file, int line)
{
    size_t used = strlen(last.trail);
    const char *below = strstr(file, "src/");
    snprintf(last.trail + used, sizeof last.trail - used, "%s%s:%d", used ? ", " : "via ",
             below ? below + 4 : file, line);
    return st;
}

void bug(const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    visible_in_place(text, sizeof text, true);
    fprintf(stderr, "strobe: BUG at %s:%d: %s\n", file, line, text);
    abort();
}

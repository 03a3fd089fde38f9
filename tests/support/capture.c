#include "capture.h"

#include "base/base.h"

#include <stdio.h>
#include <unistd.h>

static int before;
static FILE *file;

void stderr_capture(void)
{
    fflush(stderr);
    file = tmpfile();
    BUG_IF(!file, "no temporary file");
    before = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
}

const char *stderr_release(void)
{
    static char text[8192];
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

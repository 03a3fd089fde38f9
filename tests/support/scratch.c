#include "scratch.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[256];
static int stderr_before;
static FILE *stderr_file;

const char *scratch_make(void)
{
    const char *above = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/strobe-test-XXXXXX", above ? above : "/tmp");
    BUG_IF(!mkdtemp(directory), "no temporary directory: %s", directory);
    return directory;
}

void scratch_remove(void)
{
    enum status st = file_remove_dir(directory);
    BUG_IF(st != ST_OK, "%s", fail_message());
}

const char *scratch_path(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

const char *scratch_write(const char *name, const char *text)
{
    const char *path = scratch_path(name);
    enum status st = file_write(path, text, (int64_t)strlen(text));
    BUG_IF(st != ST_OK, "%s", fail_message());
    return path;
}

void scratch_stderr_begin(void)
{
    fflush(stderr);
    stderr_file = tmpfile();
    BUG_IF(!stderr_file, "no temporary file");
    stderr_before = dup(STDERR_FILENO);
    dup2(fileno(stderr_file), STDERR_FILENO);
}

const char *scratch_stderr_end(void)
{
    static char text[8192];
    fflush(stderr);
    dup2(stderr_before, STDERR_FILENO);
    close(stderr_before);
    rewind(stderr_file);
    text[fread(text, 1, sizeof text - 1, stderr_file)] = '\0';
    fclose(stderr_file);
    return text;
}

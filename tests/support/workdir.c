#include "../support/workdir.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[512];
static char path_text[64][1024];
static int path_count;

const char *workdir_open(void)
{
    const char *above = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/strobe-test-XXXXXX", above ? above : "/tmp");
    path_count = 0;
    BUG_IF(!mkdtemp(folder), "no folder for the test at %s", folder);
    return folder;
}

void workdir_close(void)
{
    BUG_IF(file_remove_dir(folder) != ST_OK, "%s", fail_message());
}

const char *workdir_path(const char *name)
{
    char wanted[1024];
    snprintf(wanted, sizeof wanted, "%s/%s", folder, name);
    int i = 0;
    while (i < path_count && strcmp(path_text[i], wanted) != 0) i++;
    BUG_IF(i == COUNT_OF(path_text), "%s is one path too many", name);
    if (i == path_count) memcpy(path_text[path_count++], wanted, sizeof wanted);
    return path_text[i];
}

void workdir_write(const char *path, const void *bytes, int64_t n)
{
    FILE *f = fopen(path, "wb");
    BUG_IF(!f || fwrite(bytes, 1, (size_t)n, f) != (size_t)n || fclose(f) != 0, "%s", path);
}

const char *workdir_text(const char *name, const char *text)
{
    const char *path = workdir_path(name);
    workdir_write(path, text, (int64_t)strlen(text));
    return path;
}

int64_t workdir_size(const char *path)
{
    struct stat facts;
    BUG_IF(stat(path, &facts) != 0, "%s", path);
    return (int64_t)facts.st_size;
}

void workdir_truncate(const char *path, int64_t bytes)
{
    BUG_IF(truncate(path, (off_t)bytes) != 0, "%s", path);
}

void workdir_flip(const char *path, int64_t at, int bit)
{
    FILE *f = fopen(path, "r+b");
    BUG_IF(!f || fseek(f, (long)at, SEEK_SET) != 0, "%s", path);
    int byte = fgetc(f);
    BUG_IF(byte == EOF || fseek(f, (long)at, SEEK_SET) != 0, "%s: byte %lld", path, (long long)at);
    BUG_IF(fputc(byte ^ 1 << bit, f) == EOF || fclose(f) != 0, "%s", path);
}

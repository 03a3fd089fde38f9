#include "base/free_memory.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t free_in_meminfo(const char *meminfo)
{
    const char *line = strstr(meminfo, "MemAvailable:");
    long long kib;
    return line && sscanf(line, "MemAvailable: %lld kB", &kib) == 1 ? kib * 1024 : -1;
}

/* File names in control groups of version 2 and version 1. */
static const struct files {
    const char *limit, *used, *idle_key;
} files[] = {
    {"memory.max", "memory.current", "\ninactive_file "},
    {"memory.limit_in_bytes", "memory.usage_in_bytes", "\ntotal_inactive_file "},
};

/* Free memory under the limit of one group; -1: no limit. */
static int64_t free_at(const char *directory, const struct files *f)
{
    char path[2400], text[8192];
    snprintf(path, sizeof path, "%s/%s", directory, f->limit);
    if (!file_peek(path, text, sizeof text)) return -1;
    char *end;
    int64_t limit = strtoll(text, &end, 10);
    if (end == text) return -1; /* "max" */
    snprintf(path, sizeof path, "%s/%s", directory, f->used);
    if (!file_peek(path, text, sizeof text)) return -1;
    int64_t used = strtoll(text, NULL, 10), idle = 0;
    snprintf(path, sizeof path, "%s/memory.stat", directory);
    const char *line = file_peek(path, text, sizeof text) ? strstr(text, f->idle_key) : NULL;
    if (line) idle = strtoll(line + strlen(f->idle_key), NULL, 10);
    int64_t space = limit - used + idle;
    return space > 0 ? space : 0;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* Least over a group and its ancestors. In a container the path may be the host's and not exist
 * here; the walk ends at the mount, which is the container's own group. */
static int64_t free_upwards(const char *mount, const char *group, const struct files *f)
{
    char directory[2200];
    snprintf(directory, sizeof directory, "%s%s", mount, group);
    for (int64_t space = -1;;) {
        space = least(space, free_at(directory, f));
        if (strlen(directory) <= strlen(mount)) return space;
        *strrchr(directory, '/') = '\0';
    }
}

/* Lines are "0::/group" (version 2) and "4:memory:/group" (version 1). */
int64_t free_in_groups(const char *groups, const char *root)
{
    int64_t space = -1;
    while (*groups) {
        char line[1024], mount[1100];
        int length = (int)strcspn(groups, "\n");
        snprintf(line, sizeof line, "%.*s", length, groups);
        groups += length + (groups[length] == '\n');
        const char *controllers = strchr(line, ':');
        const char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        bool second = group == controllers + 1, first = strstr(line, ":memory:") != NULL;
        if (!second && !first) continue;
        group += strcmp(group, ":/") ? 1 : 2;
        snprintf(mount, sizeof mount, "%s%s", root, first ? "/memory" : "");
        space = least(space, free_upwards(mount, group, &files[first]));
    }
    return space;
}

int64_t free_memory_bytes(void)
{
    char text[8192];
    int64_t space = -1;
    if (file_peek("/proc/meminfo", text, sizeof text)) space = free_in_meminfo(text);
    if (file_peek("/proc/self/cgroup", text, sizeof text))
        space = least(space, free_in_groups(text, "/sys/fs/cgroup"));
    return space;
}

#include "base/free_memory.h"

#include "base/file.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void limit_to(struct memory_limit *ret, int64_t bytes, const char *format, ...)
    PRINTF_LIKE(3, 4);

static void limit_to(struct memory_limit *ret, int64_t bytes, const char *format, ...)
{
    if (bytes < 0) bytes = 0;
    if (ret->bytes >= 0 && bytes >= ret->bytes) return;
    ret->bytes = bytes;
    va_list args;
    va_start(args, format);
    vsnprintf(ret->name, sizeof ret->name, format, args);
    va_end(args);
}

/* The bytes in a line "KEY 123 kB"; -1 if there is no such line. */
static int64_t kib_of(const char *text, const char *key)
{
    const char *line = strstr(text, key);
    char *end;
    if (!line) return -1;
    line += strlen(key);
    int64_t kib = strtoll(line, &end, 10);
    return end == line || kib < 0 || kib > INT64_MAX / 1024 ? -1 : kib * 1024;
}

void free_in_meminfo(const char *meminfo, bool strict, struct free_memory *ret)
{
    int64_t available = kib_of(meminfo, "MemAvailable:");
    int64_t limit = kib_of(meminfo, "CommitLimit:"), used = kib_of(meminfo, "Committed_AS:");
    if (available >= 0) limit_to(&ret->pages, available, "on this machine");
    if (strict && limit >= 0 && used >= 0)
        limit_to(&ret->addresses, limit - used,
                 "under the machine's commit limit (vm.overcommit_memory=2)");
}

void free_in_process(const char *status, struct free_memory *ret)
{
    static const struct {
        int what;
        const char *name, *shell, *used;
    } limits[] = {{RLIMIT_AS, "RLIMIT_AS", "-v", "\nVmSize:"},
                  {RLIMIT_DATA, "RLIMIT_DATA", "-d", "\nVmData:"}};
    for (int i = 0; i < COUNT_OF(limits); i++) {
        struct rlimit r;
        char size[32];
        int64_t used = kib_of(status, limits[i].used);
        if (getrlimit((__rlimit_resource_t)limits[i].what, &r) != 0 || used < 0) continue;
        if (r.rlim_cur == RLIM_INFINITY || r.rlim_cur > INT64_MAX) continue;
        limit_to(&ret->addresses, (int64_t)r.rlim_cur - used, "under %s (ulimit %s), %s",
                 limits[i].name, limits[i].shell, str_bytes(size, (double)r.rlim_cur));
    }
}

/* File names in control groups of version 2 and version 1. */
static const struct files {
    const char *limit, *used, *stat_prefix;
} files[] = {
    {"memory.max", "memory.current", ""},
    {"memory.high", "memory.current", ""},
    {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_"},
    {"memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes", "total_"},
};

static int64_t stat_of(const char *text, const char *prefix, const char *key)
{
    char line[64];
    snprintf(line, sizeof line, "%s%s ", prefix, key);
    const char *at = strncmp(text, line, strlen(line)) ? strstr(text, line) : text;
    while (at && at != text && at[-1] != '\n') at = strstr(at + 1, line);
    int64_t bytes = at ? strtoll(at + strlen(line), NULL, 10) : 0;
    return bytes > 0 ? bytes : 0;
}

/* One limit of one group; `name` is the group's name for the sentence. */
static void limit_at(const char *directory, const char *name, const struct files *f,
                     struct free_memory *ret)
{
    char path[2400], text[8192], size[32], *end;
    snprintf(path, sizeof path, "%s/%s", directory, f->limit);
    if (!file_peek(path, text, sizeof text)) return;
    int64_t limit = strtoll(text, &end, 10);
    if (end == text) return; /* "max" */
    snprintf(path, sizeof path, "%s/%s", directory, f->used);
    if (!file_peek(path, text, sizeof text)) return;
    int64_t used = strtoll(text, NULL, 10), idle = 0;
    snprintf(path, sizeof path, "%s/memory.stat", directory);
    if (file_peek(path, text, sizeof text))
        idle = stat_of(text, f->stat_prefix, "inactive_file") +
               stat_of(text, f->stat_prefix, "active_file") +
               stat_of(text, f->stat_prefix, "slab_reclaimable");
    limit_to(&ret->pages, limit - used + (idle < used ? idle : used),
             "under %s of the control group %.120s, %s", f->limit, *name ? name : "/",
             str_bytes(size, (double)limit));
}

/* All limits of a group and its ancestors. In a container the path may be a path of the host that
 * does not exist here; the walk ends at the mount, which is the container's own group. */
static void limit_upwards(const char *mount, const char *group, bool first, struct free_memory *ret)
{
    char directory[2200];
    snprintf(directory, sizeof directory, "%s%s", mount, group);
    for (;;) {
        for (int i = 0; i < 2; i++)
            limit_at(directory, directory + strlen(mount), &files[2 * first + i], ret);
        if (strlen(directory) <= strlen(mount)) return;
        *strrchr(directory, '/') = '\0';
    }
}

/* Lines are "0::/group" (version 2) and "4:memory:/group" (version 1). If a system has both
 * versions, version 2 is mounted below version 1. */
void free_in_groups(const char *groups, const char *root, struct free_memory *ret)
{
    while (*groups) {
        char line[1024], mount[1100];
        int length = (int)strcspn(groups, "\n");
        snprintf(line, sizeof line, "%.*s", length, groups);
        groups += length + (groups[length] == '\n');
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) continue;
        *group++ = '\0';
        char list[1030];
        snprintf(list, sizeof list, ",%s,", controllers + 1);
        bool second = !controllers[1], first = strstr(list, ",memory,") != NULL;
        if (!second && !first) continue;
        if (!strcmp(group, "/")) group = "";
        snprintf(mount, sizeof mount, "%s%s", root, first ? "/memory" : "");
        limit_upwards(mount, group, first, ret);
        snprintf(mount, sizeof mount, "%s/unified", root);
        if (second && file_is_dir(mount)) limit_upwards(mount, group, false, ret);
    }
}

struct free_memory free_memory_now(void)
{
    char text[8192], mode[16];
    struct free_memory ret = FREE_MEMORY_UNKNOWN;
    bool strict = file_peek("/proc/sys/vm/overcommit_memory", mode, sizeof mode) && *mode == '2';
    if (file_peek("/proc/meminfo", text, sizeof text)) free_in_meminfo(text, strict, &ret);
    if (file_peek("/proc/self/status", text, sizeof text)) free_in_process(text, &ret);
    if (file_peek("/proc/self/cgroup", text, sizeof text))
        free_in_groups(text, "/sys/fs/cgroup", &ret);
    return ret;
}

const struct memory_limit *free_memory_least(const struct free_memory *f)
{
    bool pages =
        f->addresses.bytes < 0 || (f->pages.bytes >= 0 && f->pages.bytes <= f->addresses.bytes);
    return pages ? &f->pages : &f->addresses;
}

int64_t free_memory_bytes(void)
{
    struct free_memory f = free_memory_now();
    return free_memory_least(&f)->bytes;
}

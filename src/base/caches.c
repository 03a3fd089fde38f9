#include "base/caches.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool peek(const char *root, int index, const char *name, char text[256])
{
    char path[512];
    snprintf(path, sizeof path, "%s/cpu0/cache/index%d/%s", root, index, name);
    return file_peek(path, text, 256);
}

/* The number of processors in a list such as "0-3,64-67". */
static int count_list(const char *text)
{
    int n = 0;
    for (const char *at = text; *at >= '0' && *at <= '9';) {
        char *end;
        long first = strtol(at, &end, 10), last = first;
        if (*end == '-') last = strtol(end + 1, &end, 10);
        if (last >= first) n += (int)(last - first) + 1;
        at = *end == ',' ? end + 1 : end;
    }
    return n > 0 ? n : 1;
}

/* Sizes are written "32K"; newer kernels may write "32M". */
static int64_t size_of(const char *text)
{
    char *end;
    long long x = strtoll(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    return x > 0 && x < (1LL << 30) ? (int64_t)x << shift : 0;
}

int caches_read(const char *root, struct cache_fact ret[CACHES_MOST])
{
    enum { INDICES = 16 };
    char text[256];
    int n = 0;
    for (int i = 0; i < INDICES && n < CACHES_MOST; i++) {
        struct cache_fact c = {.sharing = 1};
        if (!peek(root, i, "type", text)) break;
        if (!strncmp(text, "Instruction", strlen("Instruction"))) continue;
        if (peek(root, i, "level", text)) c.level = atoi(text);
        if (peek(root, i, "size", text)) c.bytes = size_of(text);
        if (peek(root, i, "shared_cpu_list", text)) c.sharing = count_list(text);
        if (c.level < 1 || c.bytes < 1) continue;
        int at = n++;
        for (; at > 0 && ret[at - 1].level > c.level; at--) ret[at] = ret[at - 1];
        ret[at] = c;
    }
    return n;
}

int64_t caches_last(void)
{
    struct cache_fact c[CACHES_MOST];
    int n = caches_read("/sys/devices/system/cpu", c);
    long processors = sysconf(_SC_NPROCESSORS_ONLN), reported = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (n && processors > 0) return c[n - 1].bytes * ceil_div(processors, c[n - 1].sharing);
    return reported > 0 ? reported : 0; /* in virtual machines often the host's cache size */
}

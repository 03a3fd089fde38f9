#include "base/host.h"

#include <stdio.h>
#include <sys/resource.h>

int64_t host_anonymous_bytes(void)
{
    char line[128];
    long long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");
    if (!f) return -1;
    while (kib < 0 && fgets(line, sizeof line, f))
        if (sscanf(line, "RssAnon: %lld kB", &kib) != 1) kib = -1;
    fclose(f);
    return kib < 0 ? -1 : kib * 1024;
}

int64_t host_peak_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)usage.ru_maxrss * 1024; /* Linux counts KiB */
}

#include "base/host.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

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

struct host_work host_work_now(void)
{
    struct rusage own;
    getrusage(RUSAGE_SELF, &own);
    struct host_work w = {-1, (double)own.ru_utime.tv_sec + (double)own.ru_stime.tv_sec +
                                  1e-6 * (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec)};
    unsigned long long user, nice, system, idle, wait, irq, soft, steal;
    FILE *f = fopen("/proc/stat", "r");
    if (!f) return w;
    if (fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
               &wait, &irq, &soft, &steal) == 8)
        w.all = (double)(user + nice + system + irq + soft + steal) / (double)sysconf(_SC_CLK_TCK);
    fclose(f);
    return w;
}

int64_t host_peak_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)usage.ru_maxrss * 1024; /* Linux counts KiB */
}

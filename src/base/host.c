#include "base/host.h"

#include "base/file.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

int64_t host_anonymous_bytes(void)
{
    char text[128];
    long long size, resident, shared; /* in pages; shared pages are backed by files */
    if (!file_peek("/proc/self/statm", text, sizeof text) ||
        sscanf(text, "%lld %lld %lld", &size, &resident, &shared) != 3)
        return -1;
    return (resident - shared) * sysconf(_SC_PAGESIZE);
}

static double seconds_of(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

double host_own_seconds(void)
{
    return seconds_of(RUSAGE_SELF);
}

struct host_work host_work_now(void)
{
    struct host_work w = {-1, seconds_of(RUSAGE_SELF) + seconds_of(RUSAGE_CHILDREN)};
    unsigned long long user, nice, system, idle, wait, irq, soft, steal;
    char text[256];
    if (file_peek("/proc/stat", text, sizeof text) &&
        sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
               &wait, &irq, &soft, &steal) == 8)
        w.all = (double)(user + nice + system + irq + soft + steal) / (double)sysconf(_SC_CLK_TCK);
    return w;
}

double host_others(struct host_work start, struct host_work end, double seconds)
{
    double others = (end.all - start.all) - (end.own - start.own);
    if (start.all < 0 || end.all < 0 || seconds < 0.5) return NAN;
    return fmin(fmax(0, others) / seconds, (double)sysconf(_SC_NPROCESSORS_ONLN));
}

enum { PROCESSORS_MOST = 64, CPUINFO_MOST = 256 << 10, LINE_BYTES = 8192 };

/* Processor clocks in MHz, in descending order. */
struct clocks {
    double mhz[PROCESSORS_MOST];
    int processors;
};

static void add_clock(struct clocks *c, double mhz)
{
    if (c->processors == PROCESSORS_MOST) return;
    int at = c->processors++;
    for (; at > 0 && c->mhz[at - 1] < mhz; at--) c->mhz[at] = c->mhz[at - 1];
    c->mhz[at] = mhz;
}

static double cpufreq(const char *root, int processor, const char *name)
{
    char path[512], text[64];
    snprintf(path, sizeof path, "%s/cpu%d/cpufreq/%s", root, processor, name);
    return file_peek(path, text, sizeof text) ? strtod(text, NULL) * 1e-3 : -1;
}

/* Parses lines like "cpu MHz : 2600.000". Reads the file in pieces, as each
 * processor has several kilobytes of text. */
static void read_cpuinfo(struct clocks *c, const char *path)
{
    static const char key[] = "cpu MHz";
    char text[LINE_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC), kept = 0, all = 0;
    for (ssize_t n; fd >= 0 && all < CPUINFO_MOST &&
                    (n = read(fd, text + kept, sizeof text - 1 - (size_t)kept)) > 0;) {
        char *line = text, *end;
        all += (int)n;
        text[kept + n] = '\0';
        for (; (end = strchr(line, '\n')); line = end + 1) {
            const char *colon =
                strncmp(line, key, strlen(key)) ? NULL : memchr(line, ':', (size_t)(end - line));
            if (colon) add_clock(c, strtod(colon + 1, NULL));
        }
        kept = (int)strlen(line);
        if (kept == (int)sizeof text - 1) kept = 0; /* too long for a clock line */
        memmove(text, line, (size_t)kept);
    }
    if (fd >= 0) close(fd);
}

struct host_clock host_clock_now(const char *root, const char *cpuinfo, int n)
{
    struct clocks c = {.processors = 0};
    struct host_clock clock = {-1, -1};
    for (int i = 0; i < PROCESSORS_MOST; i++) {
        double mhz = cpufreq(root, i, "scaling_cur_freq");
        if (mhz < 0) break;
        double highest = cpufreq(root, i, "cpuinfo_max_freq");
        if (highest > clock.most_mhz) clock.most_mhz = highest;
        add_clock(&c, mhz);
    }
    if (c.processors == 0) read_cpuinfo(&c, cpuinfo);
    if (n > c.processors) n = c.processors;
    if (n <= 0) return clock;
    clock.mhz = 0;
    for (int i = 0; i < n; i++) clock.mhz += c.mhz[i] / n;
    return clock;
}

int64_t host_peak_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (int64_t)usage.ru_maxrss * 1024; /* Linux reports KiB */
}

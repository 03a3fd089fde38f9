/* host.h - memory use, processor time and processor clock, as the operating system reports them.
 * Nothing here allocates memory. */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include "base/base.h"

/* Bytes of resident memory that no file backs: heap, stacks, library allocations. -1 if the system
 * does not report it (/proc/self/statm). */
int64_t host_anonymous_bytes(void);
/* Processor time in seconds: `all` by all processes since boot, or -1 if the system does not report
 * it (/proc/stat); `own` by this process since its start, with the children that it waited for. */
struct host_work {
    double all, own;
};
struct host_work host_work_now(void);
/* Mean number of processors that other processes kept busy between `start` and `end`, `seconds`
 * apart. NAN if the system does not report it or the interval is under 0.5 s: the counters advance
 * in steps of 10 ms and lag behind. */
double host_others(struct host_work start, struct host_work end, double seconds);
double host_own_seconds(void);
/* Processor clocks in MHz, -1 if unknown. mhz: mean of the `n` processors with the highest clock,
 * because the others are idle; most_mhz: maximum of the machine. `root` is /sys/devices/system/cpu;
 * without cpufreq there, `cpuinfo` (/proc/cpuinfo) is read: nominal clocks in some virtual
 * machines. */
struct host_clock {
    double mhz, most_mhz;
};
struct host_clock host_clock_now(const char *root, const char *cpuinfo, int n);
/* Peak resident memory, including mapped files and libraries. */
int64_t host_peak_bytes(void);

#endif

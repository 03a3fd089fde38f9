/* host.h - the memory and the work of this process, and the clock of the processors, as the system counts them. Nothing here
 * allocates memory. */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include "base/base.h"

/* Bytes of memory that is nobody's file: heap, stacks, what libraries took. -1 where the system does
 * not say (/proc/self/statm). */
int64_t host_anonymous_bytes(void);
/* Seconds of processor time that were spent since the machine started, by everybody, and by this
 * process. The first is -1 where the system does not say (/proc/stat). */
struct host_work {
    double all, own;
};
struct host_work host_work_now(void);
/* How many processors others kept busy from `start` to `end`, `seconds` apart; NAN where the system does not say, or
 * where half a second was not over: it counts in hundredths, and late. */
double host_others(struct host_work start, struct host_work end, double seconds);
double host_own_seconds(void);
/* Megahertz of the processors: the mean of the `n` fastest, as the others idle, and the highest that the machine allows; -1
 * where the system does not say. `root` is /sys/devices/system/cpu; where there is no cpufreq in it, `cpuinfo`,
 * /proc/cpuinfo, is read, which in a virtual machine may be but the number on the box. */
struct host_clock {
    double mhz, most_mhz;
};
struct host_clock host_clock_now(const char *root, const char *cpuinfo, int n);
/* The most bytes that were resident at any moment, mapped files and libraries included. */
int64_t host_peak_bytes(void);

#endif

/* floor.h - a lower bound on the time of a kernel or step: the time that its FLOPs and bytes need
 * at the measured peak rates of the machine. */
#ifndef BASE_FLOOR_H
#define BASE_FLOOR_H

#include "base/base.h"

enum { CEILINGS_COPIES = 24 };

/* Measured bandwidths of copies by all threads, in ascending order of size. copy_bytes: source plus
 * destination of one thread; copy_rate: bytes/s, bytes read plus bytes written. */
struct ceilings {
    bool gpu;
    double threads; /* 1 for a GPU */
    int copies;
    double copy_bytes[CEILINGS_COPIES], copy_rate[CEILINGS_COPIES];
};

struct floor {
    double compute_ms, memory_ms; /* 0: unknown, or no FLOPs or bytes */
    double ms;                    /* the longer of the two */
};

/* `peak`: FLOP/s of the data type; 0: unknown. memory_ms is the time of a copy of `bytes`; on a GPU
 * at the bandwidth of the largest copy. `ms` is the measured time; NAN: unknown, or measured with
 * cold caches. If `ms` is below memory_ms, the data was in a cache: memory_ms is then `ms`, but at
 * least the time at the fastest copy rate of any size. */
struct floor floor_of(const struct ceilings *c, double peak, double flops, double bytes, double ms);
/* Bandwidth in bytes/s of a copy of `bytes`, also on a GPU: interpolated linearly in the logarithm
 * of the size, constant beyond the smallest and the largest copy. 0: unknown. */
double floor_copy_rate(const struct ceilings *c, double bytes);

#endif

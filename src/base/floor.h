/* floor.h - the least time of work, by the measured ceilings of a machine. */
#ifndef BASE_FLOOR_H
#define BASE_FLOOR_H

#include "base/base.h"

enum { CEILINGS_COPIES = 24 };

/* Bandwidths of copies by all threads, by size, smallest first: bytes of a thread, source and
 * destination together; bytes/s, read and written. */
struct ceilings {
    bool gpu;
    double threads; /* 1 for a GPU */
    int copies;
    double copy_bytes[CEILINGS_COPIES], copy_rate[CEILINGS_COPIES];
};

struct floor {
    double compute_ms, memory_ms; /* 0: unknown, or no such work */
    double ms;                    /* the longer of the two */
};

/* `peak`: FLOP/s of the type; 0: unknown. Bytes take as long as a copy of their size, on a GPU as a
 * large copy. What ran in less, `ms`, had its data in a cache: its bytes take `ms`, but at least
 * the time of the fastest copy of any size. NAN: the time is unknown, or the caches are cold. */
struct floor floor_of(const struct ceilings *c, double peak, double flops, double bytes, double ms);
/* Bandwidth in bytes/s of a copy of `bytes`, also on a GPU: linear in the logarithm of the size,
 * beyond the ends that of the nearest copy. 0: unknown. */
double floor_copy_rate(const struct ceilings *c, double bytes);

#endif

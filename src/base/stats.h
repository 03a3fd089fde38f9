/* stats.h - what a series of measurements says. */
#ifndef BASE_STATS_H
#define BASE_STATS_H

#include "base/base.h"

struct stats {
    int n;
    double mean, std, median, min, max, p25, p75,
        p95; /* std: of the sample, n - 1; p95: linear in between */
};

/* All zero for n = 0. Does not change `x`. */
struct stats stats_of(const double *x, int n);

#endif

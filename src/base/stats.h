/* stats.h - statistics of a series of measurements. */
#ifndef BASE_STATS_H
#define BASE_STATS_H

#include "base/base.h"

struct stats {
    int n;
    /* std: of the sample (n - 1); quantiles: linear interpolation */
    double mean, std, median, min, max, p25, p75, p95;
};

/* All zero for n = 0. Does not modify `x`. */
struct stats stats_of(const double *x, int n);
/* How many of the first of `n` steps statistics skip: these warm caches and compile kernels. */
int64_t warm_up_of(int64_t n);

#endif

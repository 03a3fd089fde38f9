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
/* The value at `at` of a curve through n >= 1 points, x positive and ascending: linear in log x
 * between two points, beyond the ends that of the nearest. */
double curve_at(const double *x, const double *y, int n, double at);
/* The least time for the bytes of a kernel that took `ms`: `copy_ms`, that of a copy of their size.
 * What is faster had its data in a cache: then its own time, but at least that of the fastest copy
 * of any size. */
double least_ms_of_bytes(double copy_ms, double fastest_ms, double ms);

#endif

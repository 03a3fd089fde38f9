/* verdict.h - THE rule that decides which of two timed series is faster (docs/MEASURING.md).
 *
 * Speed means the speed of the second series relative to the first: time of the first / time of the
 * second, so 1.1 if the second is 1.1 times as fast. A speed has a 99 % interval:
 *
 * - Measured in turns: the speed is the median ratio of pairs of neighboring measurements. Its
 *   interval is the wider of two: the interval of the order statistics (the sign test; exact if the
 *   pairs are independent), and the interval of 2000 bootstrap samples of runs of neighboring
 *   pairs (moving blocks: Kuensch, "The jackknife and the bootstrap for general stationary
 *   observations", 1989), because bursts of noise on a shared machine outlast a pair.
 * - Measured apart, one series after the other: drift does not cancel, so the interval covers the
 *   measurements themselves instead of their median: 99 % of the ratios of any two measurements.
 *
 * The second series is faster or slower if the whole interval is beyond 2 %, and as fast if it is
 * within 2 %. Otherwise the verdict is "cannot tell". Equal inputs give equal verdicts. */
#ifndef BASE_VERDICT_H
#define BASE_VERDICT_H

#include "base/base.h"

enum verdict_kind {
    VERDICT_NONE, /* not measured, or not compared */
    VERDICT_UNCERTAIN,
    VERDICT_SAME,
    VERDICT_FASTER,
    VERDICT_SLOWER
};

enum {
    VERDICT_PAIRS = 8, /* the fewest pairs whose extremes are a 99 % interval */
    VERDICT_FEW = 3,   /* from 3 to 7 pairs, only a factor of VERDICT_CLEAR is a difference */
    VERDICT_CHUNKS = 48
};
extern const double VERDICT_LEAST; /* 1.02: the smallest ratio reported as a difference */
extern const double VERDICT_CLEAR; /* 3: a ratio that other load on the machine does not explain */

struct verdict {
    enum verdict_kind kind;
    bool apart;              /* the measurements were not taken in turns */
    int pairs;               /* if `apart`: the measurements of the shorter series */
    double speed, low, high; /* of the second relative to the first */
};

/* Times (above 0, any unit) of two series measured in turns, in the order in which they were taken.
 * Pairs with a time that is not positive and finite are skipped. */
struct verdict verdict_of_pairs(const double *first_ms, const double *second_ms, int n);
/* The same for series measured apart. A long series is reduced to VERDICT_CHUNKS medians. */
struct verdict verdict_of_series(const double *first_ms, int n_first, const double *second_ms,
                                 int n_second);
/* Medians of at most VERDICT_CHUNKS chunks of neighboring measurements; returns their number. */
int verdict_chunks(const double *x, int n, double ret[VERDICT_CHUNKS]);

/* "faster", "slower", "same", "cannot tell"; "" for VERDICT_NONE. */
const char *verdict_name(enum verdict_kind kind);

#endif

/* verdict.h - THE rule by which one thing is called faster than another (docs/MEASURING.md).
 *
 * Everything is about the speed of the second thing relative to the first: time of the first /
 * time of the second, 1.1 if the second is 1.1 times as fast. A speed has an interval of 99 %:
 *
 * - measured in turns: pairs of neighbouring measurements, the median of their ratios. Its interval
 *   is the wider of two: that of the order statistics (the sign test; exact if the pairs are
 *   independent), and that of 2000 bootstrap samples of runs of neighbouring pairs (moving blocks:
 *   Kuensch, "The jackknife and the bootstrap for general stationary observations", 1989), because
 *   the noise of a shared machine comes in bursts that outlast a pair.
 * - measured apart, one after the other: drift does not cancel, so the interval is that of the
 *   measurements themselves and not of their median: 99 % of the ratios of any two of them.
 *
 * A thing is faster or slower if its whole interval is beyond 2 %, and as fast if its whole
 * interval is within 2 %. Else it cannot tell. The same numbers give the same verdict. */
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
    VERDICT_PAIRS = 8, /* the fewest whose extremes are an interval of 99 % */
    VERDICT_FEW = 3,   /* with these and up to 7, only a factor of VERDICT_CLEAR is a difference */
    VERDICT_CHUNKS = 48
};
extern const double VERDICT_LEAST; /* the smallest difference that has a name: 1.02 */
extern const double VERDICT_CLEAR; /* more than a busy machine slows one of two: 3 */

struct verdict {
    enum verdict_kind kind;
    bool apart;              /* the measurements were not taken in turns */
    int pairs;               /* apart: measurements of the one that has fewer */
    double speed, low, high; /* of the second relative to the first */
};

/* Times (above 0, any unit) of two things measured in turns, in the order in which they were taken.
 * Pairs with a time that is not positive and finite are left out. */
struct verdict verdict_of_pairs(const double *first_ms, const double *second_ms, int n);
/* The same for things measured one after the other. Long series become VERDICT_CHUNKS medians. */
struct verdict verdict_of_series(const double *first_ms, int n_first, const double *second_ms,
                                 int n_second);
/* Medians of at most VERDICT_CHUNKS chunks of neighbouring measurements; returns their number. */
int verdict_chunks(const double *x, int n, double ret[VERDICT_CHUNKS]);

/* "faster", "slower", "same", "cannot tell"; "" for VERDICT_NONE. */
const char *verdict_name(enum verdict_kind kind);

#endif

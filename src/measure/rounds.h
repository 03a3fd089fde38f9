/* rounds.h - times contenders in interleaved rounds, so that clock drift affects all contenders
 * alike.
 *
 * Each contender is warmed up and then sampled once per round. A slow contender is sampled in fewer
 * rounds, evenly spaced; a contender whose call is short runs several times per sample. */
#ifndef MEASURE_ROUNDS_H
#define MEASURE_ROUNDS_H

#include "base/judge.h"
#include "base/stats.h"

enum { ROUNDS_PARTS = 2, ROUNDS_MORE = 10 };

/* Runs the contender `calls` times and returns the milliseconds per call of each of its parts. Must
 * not time preparations, such as restoring inputs that a call overwrites. */
typedef enum status (*sample_fn)(void *user, int calls, double *ret_ms);

struct contender {
    sample_fn sample;
    void *user;
    int parts;       /* 1 ... ROUNDS_PARTS */
    bool one_by_one; /* a sample is always one call */
    /* Time for all samples. A slow contender gets at least rounds.least samples, but only one if a
     * single sample exceeds the budget. */
    double budget_ms;
    /* results */
    struct stats part[ROUNDS_PARTS];
    struct stats total;   /* of the sum of the parts */
    double first_ms;      /* time of the very first call */
    int calls, samples;   /* calls per sample; number of samples */
    int taken;            /* samples so far */
    const double *series; /* per sample: the sum of the parts, in the arena rounds.keep */
    const int *round;     /* per sample: its round */
};

struct rounds {
    int most, least; /* samples of a contender */
    int warmup;      /* warm-up calls after the first call; a slow contender gets fewer */
    int cold; /* this many first calls may compile kernels, so slow ones do not end the warm-up */
    struct arena *keep; /* arena for `series` and `round` of contenders; NULL: not kept */
    /* After the planned rounds, sample until the order of the fastest and each other contender is
     * certain, the sum of the budgets is nearly spent, or ROUNDS_MORE times `most` further rounds
     * are done. Needs `keep`. */
    bool go_on;
    double sample_ms; /* minimum duration of a sample; 0: a default for timing by the host clock */
    /* Called after each sample with the ms done and the ms expected in total, which are 0 until all
     * contenders are warm. */
    void (*each)(void *user, double done_ms, double expected_ms);
    void *user;
};

/* Fails as soon as a sample fails. Ctrl-C (base/interrupt.h) ends the sampling. The result is then
 * the samples so far if each contender has at least one, else ST_INTERRUPTED. */
enum status rounds_run(const struct rounds *r, struct contender *c, int n);

/* The contender's samples as input of the judge (base/judge.h), with rounds as turns; a sample is
 * one unit of work. Needs `keep`. */
struct timed rounds_timed(const struct contender *c, struct arena *a);

/* Finds the contender with the shortest median. ret[i] is the verdict on contender i compared with
 * the fastest, by the rounds in which both were sampled: VERDICT_SLOWER if the order is certain,
 * VERDICT_NONE for the fastest itself. Needs `keep`. */
void rounds_order(const struct contender *c, int n, struct verdict *ret, int *ret_fastest);

#endif

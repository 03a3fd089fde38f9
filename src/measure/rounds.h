/* rounds.h - times contenders in interleaved rounds, so that clock drift affects all alike.
 *
 * Each contender is warmed up and then gives one sample per round. A slow contender gives fewer
 * samples, spread evenly over the rounds; a short one is run several times per sample. */
#ifndef MEASURE_ROUNDS_H
#define MEASURE_ROUNDS_H

#include "base/judge.h"
#include "base/stats.h"

enum { ROUNDS_PARTS = 2, ROUNDS_MORE = 10 };

/* Runs the contender `calls` times and returns the milliseconds per call of each of its parts.
 * Preparations for a run (inputs that it overwrites) happen here and are not timed. */
typedef enum status (*sample_fn)(void *user, int calls, double *ret_ms);

struct contender {
    sample_fn sample;
    void *user;
    int parts;       /* 1 ... ROUNDS_PARTS */
    bool one_by_one; /* a sample is always one call */
    /* Time for all samples: a slow contender gives `least`, or one if one exceeds the budget. */
    double budget_ms;
    /* results */
    struct stats part[ROUNDS_PARTS];
    struct stats whole;   /* of the sums of the parts */
    double first_ms;      /* the very first call */
    int calls, samples;   /* calls per sample; samples taken */
    int taken;            /* samples so far */
    const double *series; /* the samples of the whole, in the arena `keep` */
    const int *round;     /* of each sample */
};

struct rounds {
    int most, least; /* samples of a contender */
    int warmup;      /* warm-up calls; a slow contender gets one */
    int cold; /* warm-up calls that compile kernels: their time does not predict the others' */
    struct arena *keep; /* where `series` and `round` of contenders go; NULL: nowhere */
    /* Samples go on until the order of all contenders is certain, or the budgets of all are spent,
     * or each has ROUNDS_MORE times `most` samples more. Needs `keep`. */
    bool go_on;
    double sample_ms; /* minimum duration of a sample; 0: suits the host clock */
    /* Progress after each sample: ms done, ms expected in total (0 until all are warm). */
    void (*each)(void *user, double done_ms, double expected_ms);
    void *user;
};

/* Fails as soon as a sample fails. After Ctrl-C (base/interrupt.h) no sample begins: the samples so
 * far are the result if each contender has one, else the call returns ST_INTERRUPTED. */
enum status rounds_run(const struct rounds *r, struct contender *c, int n);

/* Its samples for the judge, with their rounds as turns; a sample is one unit of work. Needs
 * `keep`. */
struct timed rounds_timed(const struct contender *c, struct arena *a);

/* The contender with the shortest median, and the verdict of each beside it, by the rounds that
 * both were sampled in: VERDICT_SLOWER if the order is certain. Needs `keep`. `ret` of the fastest
 * is VERDICT_NONE. */
void rounds_order(const struct contender *c, int n, struct verdict *ret, int *ret_fastest);

#endif

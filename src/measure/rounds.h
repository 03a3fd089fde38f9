/* rounds.h - times several things in turn, so that drift of the clock hits all alike.
 *
 * Each contender is warmed up; then rounds follow in which each gives one sample. What is slow gives
 * fewer samples, spread evenly over the rounds; what is short is run several times for one sample. */
#ifndef MEASURE_ROUNDS_H
#define MEASURE_ROUNDS_H

#include "base/stats.h"

enum { ROUNDS_PARTS = 2 };

/* Runs the thing `calls` times and says how many milliseconds one call took, for each of its parts. What
 * must stand before a run (inputs that it uses up) is made here and not timed. */
typedef enum status (*sample_fn)(void *user, int calls, double *ret_ms);

struct contender {
    sample_fn sample;
    void *user;
    int parts;       /* 1 ... ROUNDS_PARTS */
    bool one_by_one; /* a sample is always one call */
    double
        budget_ms; /* of all samples: what would take longer gives fewer, but `least` of them; what
                       * takes longer by a single one gives that one */
    /* results */
    struct stats part[ROUNDS_PARTS];
    struct stats whole; /* of the sums of the parts */
    double first_ms;    /* the very first call */
    int calls, samples; /* of a sample; taken */
    int taken;          /* so far */
};

struct rounds {
    int most, least; /* samples of a contender */
    int warmup;      /* calls before; slow things get one */
    int cold; /* the first so many of them compile kernels: their time says nothing of the others' */
    double
        sample_ms; /* what is short is run so long for one sample, about; 0: for a host's clock */
    /* Progress: after each call of sample, and the milliseconds that all are expected to take, 0 as long as
     * some are not warm. NULL: none. */
    void (*each)(void *user, double done_ms, double expected_ms);
    void *user;
};

/* Fails as soon as a sample fails. After a Ctrl-C that was noted (base/interrupt.h) no sample begins: where each contender has given
 * one these are the result, else it is ST_INTERRUPTED. */
enum status rounds_run(const struct rounds *r, struct contender *c, int n);

#endif

/* bench_attention.h - attention alone, forward and backward, slow at each rung and flash, over lengths.
 *
 * Each way is the graph that training would run: packed q, k, v (B,T,(H+2KV)D) in, attention or its expansion,
 * and the gradient of q, k, v from that of the output. B x T stays the same, so the work grows with T. */
#ifndef MEASURE_BENCH_ATTENTION_H
#define MEASURE_BENCH_ATTENTION_H

#include "base/stats.h"
#include "graph/op.h"
#include "measure/machine.h"

struct arena;

enum attention_way { SLOW_PRIMITIVE, SLOW_OP, SLOW_FULL, FLASH, ATTENTION_WAYS };
/* "slow primitive", "slow op", "slow full", "flash" */
const char *attention_way_name(enum attention_way way);

enum { ATTENTION_LENGTHS = 24, ATTENTION_DTYPES = 3 };

struct attention_options {
    struct device device;
    int64_t heads, head_size, tokens;  /* H, D, B x T */
    int64_t kv_heads;                  /* of keys and values; 0: H */
    int64_t length[ATTENTION_LENGTHS]; /* T, rising; each divides tokens */
    int lengths;
    enum machine_precision precision[ATTENTION_DTYPES];
    int precisions;
    unsigned ways; /* those that are run, a mask: 1 << FLASH ...; 0: all */
    int samples;   /* of each cell */
    double
        limit_ms; /* of all: slow cells give fewer samples, and what would take too long is not run */
    double
        all_ms; /* of all that this is a part of: a little of that is no reason not to run; 0: limit_ms */
    const struct attention_cell *
        before; /* ATTENTION_WAYS cells of a shorter length and the same heads, which tell how long one takes; NULL */
    int64_t room; /* bytes of memory for a plan and what is fed to it; -1: unknown, no limit */
    bool limited; /* the room is not what is free, but what somebody allows */
    /* `done` of `all`, in units of its own */
    void (*each)(void *user, double done, double all, enum machine_precision p, int64_t T);
    void *user;
};

struct attention_cell {
    enum attention_way way;
    enum machine_precision precision; /* of its products */
    int64_t B, T;
    int64_t bytes; /* that the plan takes, inputs and outputs included; 0: there is no plan */
    int64_t
        kept; /* of these, held when the backward pass begins: what went in and came out, and what was saved */
    int kernels;                          /* of the plan */
    const char *reason;                   /* why it was not run; NULL: it was */
    double expected_ms;                   /* of one run, as the length before says; 0: not known */
    struct stats forward, backward, both; /* ms */
    /* Of attention, whatever the way calculates besides: half of 4 B H D T^2, as only half of the scores are
     * needed, and 2.5 times that. */
    double forward_flops, backward_flops;
};

/* One cell for each length, type and way, in that order; *ret_cells of them, in `a`. Ways that nobody asked for
 * have cells, too, with that as the reason why they were not run. */
enum status bench_attention_run(const struct attention_options *o, struct attention_cell **ret_cell,
                                int *ret_cells, struct arena *a);

#endif

/* bench_attention.h - attention alone, forward and backward, slow at each rung and flash, over lengths, head sizes and
 * masks.
 *
 * Each way is the graph that training would run: packed q, k, v (B,T,(H+2KV)D) in, attention or its expansion,
 * and the gradient of q, k, v from that of the output. B x T stays the same, so the work grows with T. All ways of a
 * shape give a sample in turn. */
#ifndef MEASURE_BENCH_ATTENTION_H
#define MEASURE_BENCH_ATTENTION_H

#include "base/stats.h"
#include "graph/op.h"
#include "machine/machine.h"

struct arena;

struct machine;

/* Flash attention's kernel rows are those that training takes; without rows of one compute capability alone
 * (hopper=false); with the same bits in every run (deterministic=true); or both. */
enum attention_way {
    SLOW_PRIMITIVE,
    SLOW_OP,
    SLOW_FULL,
    FLASH,
    FLASH_PORTABLE,
    FLASH_DETERMINISTIC,
    FLASH_PORTABLE_DETERMINISTIC,
    ATTENTION_WAYS
};
/* "slow primitive", "slow op", "slow full", "flash", "flash portable" ... */
const char *attention_way_name(enum attention_way way);
bool attention_way_is_flash(enum attention_way way);

enum { ATTENTION_LENGTHS = 24, ATTENTION_DTYPES = 3, ATTENTION_SIZES = 8 };

struct attention_cell;

struct attention_options {
    struct device device;
    int64_t heads, tokens;              /* H; B x T */
    int64_t columns;                    /* where heads is 0: H is this / D */
    int64_t kv_heads;                   /* of keys and values; 0: H */
    int64_t head_size[ATTENTION_SIZES]; /* D */
    int head_sizes;
    bool causal[2];
    int masks;
    int64_t length[ATTENTION_LENGTHS]; /* T, rising; each divides tokens */
    int lengths;
    enum machine_precision precision[ATTENTION_DTYPES];
    int precisions;
    unsigned ways; /* those that are run, a mask: 1 << FLASH ... */
    int samples;   /* of each cell */
    bool check;    /* errors against double precision */
    double
        limit_ms; /* of all: slow cells give fewer samples, and what would take too long is not run */
    double
        all_ms; /* of all that this is a part of: a little of that is no reason not to run; 0: limit_ms */
    const struct attention_cell *
        before; /* ATTENTION_WAYS cells of a shorter length and the same heads, which tell how long one takes; NULL */
    int64_t room; /* bytes of memory for a plan and what is fed to it; -1: unknown, no limit */
    bool limited; /* the room is not what is free, but what somebody allows */
    /* `done` of `all`, in units of its own; what comes next, or goes on */
    void (*each)(void *user, double done, double all, const struct attention_cell *c);
    void *user;
};

struct attention_cell {
    enum attention_way way;
    enum machine_precision precision; /* of its products */
    int64_t B, T, H, KV, D;
    bool causal;
    int64_t bytes; /* that the plan takes, inputs and outputs included; 0: there is no plan */
    int64_t
        kept; /* of these, held when the backward pass begins: what went in and came out, and what was saved */
    int kernels; /* of the plan */
    const char
        *kernel[2];     /* variants of flash attention's rows, forward and backward; NULL: slow */
    const char *reason; /* why it was not run; NULL: it was */
    double expected_ms; /* of one run, as the length before says; 0: not known */
    struct stats forward, backward, both; /* ms */
    /* Of attention, whatever the way calculates besides: 4 B H D T^2, half of it where causal, as only half of the
     * scores are needed, and 2.5 times that. */
    double forward_flops, backward_flops;
    /* Of a GPU's multiprocessors: the mean of what the device said while the ways of this shape took turns; where it says
     * nothing, the nominal one. 0: unknown. */
    double clock_mhz;
    bool clock_sampled;
    /* From double precision, by norm (attention_exact.h); -1: was not asked for, or not run. */
    double error_y, error_dqkv;
};

/* One cell for each head size, mask, length, type and way, in that order; *ret_cells of them, in `a`. Ways that nobody
 * asked for have cells, too, with that as the reason why they were not run. ST_INTERRUPTED where a Ctrl-C that was noted
 * (train/interrupt.h) left some out: the cells are there all the same, and those say so. */
enum status bench_attention_run(const struct attention_options *o, struct attention_cell **ret_cell,
                                int *ret_cells, struct arena *a);

enum { ATTENTION_TILE = 128 };
/* Tiles of 128 x 128 scores, of all heads and sequences, in which the mask leaves any. */
double attention_tiles(const struct attention_cell *c);
/* Milliseconds that attention takes at least, forward (0) or backward (1): its FLOPs by the measured ceiling of products of
 * that type, or its bytes by the rate of a copy of as many (of a GPU: of a large one), whichever is more. Bytes: q, k, v and y, and backward dy and
 * dq, dk, dv, too, each once. 0: this machine has no such ceiling. */
double attention_bound_ms(const struct attention_cell *c, const struct machine *m, int backward);

#endif

/* bench_attention.h - times attention alone, forward and backward: slow attention at each rung and
 * flash attention, for several lengths, head sizes and masks.
 *
 * Each variant is a graph as training runs it: packed q, k, v (B,T,(H+2KV)D) as input, attention or
 * its expansion, and the gradient of q, k, v. B x T is constant, so the work grows with T. The
 * variants of a shape are sampled in turn. */
#ifndef BENCH_BENCH_ATTENTION_H
#define BENCH_BENCH_ATTENTION_H

#include "base/stats.h"
#include "base/verdict.h"
#include "graph/op.h"
#include "machine/machine.h"

struct arena;

/* FLASH uses the kernel rows of training. PORTABLE excludes rows for a single compute capability
 * (hopper=false); DETERMINISTIC gives the same bits in every run (deterministic=true). */
enum attention_variant {
    SLOW_PRIMITIVE,
    SLOW_OP,
    SLOW_FULL,
    FLASH,
    FLASH_PORTABLE,
    FLASH_DETERMINISTIC,
    FLASH_PORTABLE_DETERMINISTIC,
    ATTENTION_VARIANTS
};
/* "slow primitive", "slow op", "slow full", "flash", "flash portable" ... */
const char *attention_variant_name(enum attention_variant way);
bool attention_variant_is_flash(enum attention_variant way);

enum { ATTENTION_LENGTHS = 24, ATTENTION_DTYPES = 3, ATTENTION_SIZES = 8 };

struct attention_cell;

struct attention_options {
    struct device device;
    int64_t heads, tokens;              /* H; B x T */
    int64_t columns;                    /* used if `heads` is 0: H = columns / D */
    int64_t kv_heads;                   /* heads of keys and values; 0: H */
    int64_t head_size[ATTENTION_SIZES]; /* D */
    int head_sizes;
    bool causal[2];
    int masks;
    int64_t length[ATTENTION_LENGTHS]; /* T, ascending; each divides tokens */
    int lengths;
    enum machine_precision precision[ATTENTION_DTYPES];
    int precisions;
    unsigned ways; /* variants to run, a mask: 1 << FLASH ... */
    int samples;   /* per cell */
    bool go_on;    /* take more samples while the order of a shape's variants is uncertain */
    bool check;    /* compute errors against double precision */
    /* Time for all cells. Slow cells get fewer samples; cells that are too slow are skipped. */
    double limit_ms;
    /* Time limit of the whole job. A cell that needs only a small part of this time is never
     * skipped; 0: limit_ms. */
    double all_ms;
    /* ATTENTION_VARIANTS cells, same heads and shorter length, to predict times; may be NULL. */
    const struct attention_cell *before;
    int64_t memory_limit; /* bytes of memory for a plan and its inputs; -1: unknown, no limit */
    bool limited;         /* `memory_limit` is the user's limit; false: it is the free memory */
    /* Reports progress: `done` of `all`, in arbitrary units, and the current cell. */
    void (*each)(void *user, double done, double all, const struct attention_cell *c);
    void *user;
};

struct attention_cell {
    enum attention_variant way;
    enum machine_precision precision; /* of the matmuls */
    int64_t B, T, H, KV, D;
    bool causal;
    int64_t bytes;         /* of the plan, inputs and outputs included; 0: there is no plan */
    int64_t kept;          /* the part of `bytes` that is live when the backward pass begins */
    int kernels;           /* number of kernels in the plan */
    const char *kernel[2]; /* flash attention's rows, forward and backward; NULL: slow attention */
    const char *reason;    /* why the cell was not run; NULL: it was run */
    double expected_ms;    /* time of one run, predicted from a shorter length; 0: unknown */
    struct stats forward, backward, both; /* ms */
    /* `order`: the verdict on `both` compared with the fastest variant of the shape; VERDICT_NONE
     * for the fastest itself. `fastest`: this is the fastest of several variants. */
    struct verdict order;
    bool fastest;
    /* Useful FLOPs. Forward: 4 B H D T^2, half of that if causal. Backward: 2.5 times forward. */
    double forward_flops, backward_flops;
    /* SM clock of a GPU: the mean during the samples of this shape if `clock_sampled`, else the
     * nominal clock. 0: unknown. */
    double clock_mhz;
    bool clock_sampled;
    /* Relative error by norm against double precision (attention_exact.h); -1: not computed. */
    double error_y, error_dqkv;
};

/* Returns *ret_cells cells in `a`: one for each head size, mask, length, type and variant, in this
 * order. The reason of a cell that was not requested says so. Returns ST_INTERRUPTED if Ctrl-C
 * (base/interrupt.h) came before all cells had run: all cells are still valid, and the reason of
 * the cells that did not run says so. */
enum status bench_attention_run(const struct attention_options *o, struct attention_cell **ret_cell,
                                int *ret_cells, struct arena *a);

/* "fastest", or the verdict on the cell compared with the fastest; NULL: not compared. */
const char *attention_order_words(const struct attention_cell *c);

enum { ATTENTION_TILE = 128 };
/* The tiles of 128 x 128 scores, in all heads and sequences, that are not fully masked. */
double attention_tiles(const struct attention_cell *c);
/* Lower bound of the time of attention in ms, forward (backward = 0) or backward (1): the longer of
 * the time of its FLOPs at the measured matmul peak of its type and the time of its bytes at copy
 * bandwidth (on a GPU the bandwidth of large copies). The bytes are those of q, k, v, y, and
 * backward also dy, dq, dk and dv, each once. 0: the peak is unknown. */
double attention_bound_ms(const struct attention_cell *c, const struct machine *m, int backward);

#endif

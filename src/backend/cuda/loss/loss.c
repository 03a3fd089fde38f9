/* Cross-entropy: a short row has a warp, a longer row a block. If loss and gradient are computed
 * together, the block keeps its row in shared memory if the row fits, and a row of at most 32
 * accesses has one lane per access. */
#include "backend/cuda/common/rows.h"
#include "backend/cuda/cuda_kernels.h"

enum { MOST_LANES = 512, EACH = 64, STATIC_SHARED = 1024 };

static int lanes_of(const struct type *x)
{
    int lanes = row_lanes(type_columns(x), EACH);
    return lanes > MOST_LANES ? MOST_LANES : lanes;
}

/* Bytes of the words of a row if they fit in shared memory next to the static part, else 0. */
static int64_t held_bytes(const struct kernel_call *c, const struct target *d)
{
    const struct type *x = &c->in_type[0];
    int64_t bytes = c->attr->loss.vocab * dtype_size(x->dtype) / 16 * 16;
    bool fits = bytes + STATIC_SHARED <= d->shared_bytes && d->arch >= 80; /* cp.async */
    return fits && lanes_of(x) > 32 ? bytes : 0; /* shorter rows stay in L1 */
}

static struct cuda_launch *begin(const struct kernel_call *c, struct cuda_launches *l,
                                 const char *entry, int64_t held)
{
    const struct type *x = &c->in_type[0];
    struct cuda_launch *k = row_launch(l, "loss.cu", entry, type_rows(x), lanes_of(x));
    launch_define_type(k, "T_X", x->dtype);
    launch_define(k, "HELD", held > 0);
    k->shared_bytes = (unsigned)held;
    return k;
}

static void finish(const struct kernel_call *c, struct cuda_launch *k)
{
    const struct type *x = &c->in_type[0];
    arg_i32(k, "rows", (int32_t)type_rows(x));
    arg_i32(k, "columns", (int32_t)type_columns(x));
    arg_i32(k, "vocab", (int32_t)c->attr->loss.vocab);
}

/* Averages the rows' losses in scratch into output `out`. */
static void add_mean(const struct kernel_call *c, struct cuda_launches *l, int64_t losses, int out,
                     int64_t held)
{
    struct cuda_launch *k = launch_add(l, "loss.cu", "mean_loss", 1, 1024);
    launch_define(k, "LANES", lanes_of(&c->in_type[0]));
    launch_define_type(k, "T_X", c->in_type[0].dtype);
    launch_define(k, "HELD", held > 0);
    arg_out(k, "mean", out);
    arg_scratch(k, "losses", losses);
    arg_i32(k, "rows", (int32_t)type_rows(&c->in_type[0]));
}

static int64_t losses_scratch(const struct kernel_call *c, struct cuda_launches *l)
{
    return launch_scratch(l, type_rows(&c->in_type[0]) * (int64_t)sizeof(float));
}

/* logits, targets -> loss, lse */
static void cross_entropy(const struct kernel_call *c, struct cuda_launches *l)
{
    int64_t losses = losses_scratch(c, l);
    struct cuda_launch *k = begin(c, l, "cross_entropy", 0);
    arg_scratch(k, "losses", losses);
    arg_out(k, "lse", 1);
    args_in(k, 0, "logits targets");
    finish(c, k);
    add_mean(c, l, losses, 0, 0);
}

/* logits, targets, lse, dloss -> dlogits */
static void cross_entropy_grad(const struct kernel_call *c, struct cuda_launches *l)
{
    struct cuda_launch *k = begin(c, l, "cross_entropy_grad", 0);
    arg_out(k, "dlogits", 0);
    args_in(k, 0, "logits targets lse dloss");
    finish(c, k);
}

/* logits, targets, dloss -> dlogits, loss */
static void both(const struct kernel_call *c, struct cuda_launches *l, int64_t held)
{
    int64_t losses = losses_scratch(c, l);
    struct cuda_launch *k = begin(c, l, "cross_entropy_both", held);
    arg_out(k, "dlogits", 0);
    arg_scratch(k, "losses", losses);
    args_in(k, 0, "logits targets dloss");
    finish(c, k);
    add_mean(c, l, losses, 1, held);
}
static void both_held(const struct kernel_call *c, struct cuda_launches *l)
{
    both(c, l, held_bytes(c, l->device));
}
static void both_two_pass(const struct kernel_call *c, struct cuda_launches *l)
{
    both(c, l, 0);
}

/* Constants of loss_few.cu. */
enum { FEW_THREADS = 256, FEW_MEAN_THREADS = 512, WARP = 32 };
static void both_few(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct type *x = &c->in_type[0];
    int64_t rows = type_rows(x), words = type_bytes(x) / rows / 16, lanes = 1;
    while (lanes < words) lanes *= 2;
    int64_t blocks = ceil_div(rows * lanes, FEW_THREADS);
    int64_t sums = launch_scratch(l, blocks * (int64_t)sizeof(float));
    struct cuda_launch *k = launch_add(l, "loss_few.cu", "cross_entropy_few", blocks, FEW_THREADS);
    launch_define_type(k, "T_X", x->dtype);
    launch_define(k, "OF_ROW", lanes);
    arg_out(k, "dlogits", 0);
    arg_scratch(k, "parts", sums);
    args_in(k, 0, "logits targets dloss");
    finish(c, k);
    k = launch_add(l, "loss_few.cu", "mean_of_parts", 1, FEW_MEAN_THREADS);
    launch_define_type(k, "T_X", x->dtype);
    launch_define(k, "OF_ROW", lanes);
    arg_out(k, "mean", 1);
    arg_scratch(k, "parts", sums);
    arg_i32(k, "count", (int32_t)blocks);
    arg_i32(k, "rows", (int32_t)rows);
}

static bool fits_held(const struct kernel_call *c)
{
    return held_bytes(c, cuda_device_of(c)) > 0;
}

static bool fits_few(const struct kernel_call *c)
{
    int64_t bytes = type_columns(&c->in_type[0]) * dtype_size(c->in_type[0].dtype);
    return bytes % 16 == 0 && bytes <= 16 * WARP;
}

const struct cuda_row loss_rows[] = {
    CUDA_ROW(CROSS_ENTROPY, "once", "ai", "ff", NULL, cross_entropy),
    CUDA_ROW(CROSS_ENTROPY_GRAD, "once", "aiff", "a", NULL, cross_entropy_grad),
    CUDA_ROW(CROSS_ENTROPY_BOTH, "few", "aif", "af", fits_few, both_few),
    CUDA_ROW(CROSS_ENTROPY_BOTH, "held", "aif", "af", fits_held, both_held),
    CUDA_ROW(CROSS_ENTROPY_BOTH, "twice", "aif", "af", NULL, both_two_pass),
    CUDA_ROWS_END,
};

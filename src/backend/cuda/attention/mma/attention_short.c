/* Attention of short sequences, forward and backward: two matrices of a head in shared memory. */
#include "backend/cuda/attention/attention_shape.h"
#include "backend/cuda/common/rows.h"
#include "backend/cuda/cuda_kernels.h"

#include <math.h>

/* These constants have the same values in attention_short.cuh. */
enum { WARP = 32, WARPS = 4, STRIP = 32, ROWS = 2 * WARPS * STRIP, TILE_ROWS = 64 };
/* The number of warps of the backward pass. Its strips have 16 rows, so its blocks, too, have ROWS
 * rows. */
enum { GRAD_WARPS = 8 };
/* PIECE has the same value in attention_short.cu; KEYS and BLOCKS are passed to attention_short.cu.
 */
enum { PIECE = 16, KEYS = 16, BLOCKS = 3, TENSOR_CORES = 80, GRID_YZ = 65535 };

/* Shared memory: two matrices of the head, and a piece of the output for each warp. */
static int64_t forward_bytes(const struct attention_shape *s)
{
    return (2 * ROWS + WARPS * PIECE) * s->D * 2;
}
/* Shared memory: two matrices of the head, two strips of each warp, two statistics of each row. */
static int64_t grad_bytes(const struct attention_shape *s)
{
    return (2 * ROWS + 2 * WARPS * STRIP) * s->D * 2 + 2 * ROWS * (int64_t)sizeof(float);
}

static bool is_short(const struct kernel_call *c, const struct attention_shape *s, int64_t bytes)
{
    const struct target *d = cuda_device_of(c);
    return attention_kv_heads(c->attr) == s->H && d->arch >= TENSOR_CORES && s->T <= ROWS &&
           (s->D == 16 || s->D == 32 || s->D == 64) && bytes <= d->shared_bytes;
}

static struct cuda_launch *add_launch(const struct kernel_call *c, struct cuda_launches *l,
                                      const char *text, const char *entry,
                                      const struct attention_shape *s, int warps)
{
    struct cuda_launch *k = launch_add(l, text, entry, s->B * s->H, WARP * warps);
    launch_define(k, "HEAD_SIZE", s->D);
    launch_define(k, "WARPS", warps);
    /* TILE_ROWS rows must have at least one 16-byte chunk for each thread to copy. */
    launch_define(k, "TILE_ROWS", warps == GRAD_WARPS && s->D == 16 ? 2 * TILE_ROWS : TILE_ROWS);
    launch_define(k, "CAUSAL", c->attr->attention.causal);
    launch_define(k, "DROPOUT", c->attr->attention.drop.threshold > 0);
    arg_lengths(k, s);
    return k;
}

static bool fits_forward(const struct kernel_call *c)
{
    struct attention_shape s = attention_shape_of(c, FORWARD_QKV);
    return is_short(c, &s, forward_bytes(&s));
}
static void launches_forward(const struct kernel_call *c, struct cuda_launches *l)
{
    struct attention_shape s = attention_shape_of(c, FORWARD_QKV);
    struct cuda_launch *k = add_launch(c, l, "attention_short.cu", "attention_short", &s, WARPS);
    launch_define(k, "KEYS", KEYS);
    launch_define(k, "BLOCKS", BLOCKS);
    args_in(k, 0, "qkv step");
    args_out(k, 0, "y lse");
    arg_f32(k, "scale", M_LOG2E / s.divisor);
    arg_dropout_bytes(k, &c->attr->attention.drop);
    k->shared_bytes = (unsigned)forward_bytes(&s);
}

static bool fits_grad(const struct kernel_call *c)
{
    struct attention_shape s = attention_shape_of(c, QKV);
    return is_short(c, &s, grad_bytes(&s)) && s.B <= GRID_YZ && s.H <= GRID_YZ;
}
static void launches_grad(const struct kernel_call *c, struct cuda_launches *l)
{
    struct attention_shape s = attention_shape_of(c, QKV);
    int processors = cuda_device_of(c)->processors;
    struct cuda_launch *k =
        add_launch(c, l, "attention_short_grad.cu", "attention_short_grad", &s, GRAD_WARPS);
    launch_grid(k, 2, s.H, s.B);
    args_in(k, 0, "dy qkv y lse step");
    arg_out(k, "dqkv", 0);
    arg_i32(k, "half", processors < 2 ? 1 : processors / 2);
    k->spills = true; /* the kernel spills one or two words of dropout outside the inner loops */
    arg_f32(k, "scale", 1 / s.divisor);
    arg_dropout_bytes(k, &c->attr->attention.drop);
    k->shared_bytes = (unsigned)grad_bytes(&s);
}

const struct cuda_row attention_short_rows[] = {
    CUDA_ROW(ATTENTION, "mma_short", "bi", "bf", fits_forward, launches_forward),
    CUDA_ROW(ATTENTION_GRAD, "mma_short", "bbbfi", "b", fits_grad, launches_grad),
    CUDA_ROWS_END,
};

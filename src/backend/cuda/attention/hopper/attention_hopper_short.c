/* Causal attention of short sequences, forward and backward, for compute capability 9.0. */
#include "backend/cuda/attention/attention_shape.h"
#include "backend/cuda/common/rows.h"
#include "backend/cuda/cuda_kernels.h"

#include <math.h>

/* The constants have the same values in the kernels. */
enum { WARPGROUP = 128, TILE = 64, TILES = 4, ROWS = TILES * TILE, ALIGN = 1024, CONSUMERS = 4 };
enum { SLOTS = 4 * TILES + 7, DS_BYTES = 4 * 2 * TILE * TILE, STATS_BYTES = 2 * ROWS * 4 };
enum { BARRIERS = 256 };
/* A block always does the work of ROWS rows. With fewer than MIN_ROWS rows, more than half of this
 * work would be wasted. */
enum { MIN_ROWS = ROWS / 2 + 1 };

static bool is_short(const struct kernel_call *c, const struct attention_shape *s)
{
    return cuda_hopper(c) && !c->numerics.portable && c->attr->attention.causal &&
           attention_kv_heads(c->attr) == s->H && s->T >= MIN_ROWS && s->T <= ROWS &&
           (s->D == 16 || s->D == 32 || s->D == 64) && s->B * s->H <= INT32_MAX;
}

static void arg_heads(struct cuda_launch *k, const char *name, enum cuda_arg_kind of, int index,
                      const struct attention_shape *s, int64_t heads, int rows)
{
    struct cuda_tensor t = attention_tensor(s, heads, rows);
    arg_tensor_map(k, name, of, index, &t);
}

static struct cuda_launch *add_launch(const struct kernel_call *c, struct cuda_launches *l,
                                      const char *text, const char *entry,
                                      const struct attention_shape *s, int warpgroups)
{
    int64_t heads = s->B * s->H, processors = cuda_device_of(c)->processors;
    struct cuda_launch *k =
        launch_add(l, text, entry, heads < processors ? heads : processors, WARPGROUP * warpgroups);
    k->arch = 90;
    launch_define(k, "HEAD_SIZE", s->D);
    launch_define(k, "DROPOUT", c->attr->attention.drop.threshold > 0);
    return k;
}
static bool fits_forward(const struct kernel_call *c)
{
    struct attention_shape s = attention_shape_of(c, FORWARD_QKV);
    return is_short(c, &s);
}
static void launches_forward(const struct kernel_call *c, struct cuda_launches *l)
{
    struct attention_shape s = attention_shape_of(c, FORWARD_QKV);
    struct cuda_launch *k =
        add_launch(c, l, "attention_hopper_short.cu", "attention_hopper_short", &s, CONSUMERS + 1);
    arg_heads(k, "qkv", ARG_IN, FORWARD_QKV, &s, 3 * s.H, TILE);
    arg_heads(k, "y", ARG_OUT, 0, &s, s.H, TILE);
    arg_in(k, "step_number", 1);
    arg_out(k, "lse", 1);
    arg_lengths(k, &s);
    arg_i32(k, "heads", s.B * s.H);
    arg_f32(k, "scale", M_LOG2E / s.divisor);
    arg_dropout_bytes(k, &c->attr->attention.drop);
    /* Shared memory holds q, k and v of two heads. */
    k->shared_bytes = (unsigned)(ALIGN + 2 * 3 * ROWS * s.D * 2 + BARRIERS);
}

static bool fits_grad(const struct kernel_call *c)
{
    struct attention_shape s = attention_shape_of(c, QKV);
    return is_short(c, &s);
}
static void launches_grad(const struct kernel_call *c, struct cuda_launches *l)
{
    struct attention_shape s = attention_shape_of(c, QKV);
    struct cuda_launch *k =
        add_launch(c, l, "attention_hopper_short_grad.cu", "attention_hopper_short_grad", &s, 3);
    arg_heads(k, "rows", ARG_IN, QKV, &s, 3 * s.H, TILE);
    arg_heads(k, "dy", ARG_IN, DY, &s, s.H, TILE);
    arg_heads(k, "dqkv", ARG_OUT, 0, &s, 3 * s.H, TILE / 4); /* rows of a warp */
    args_in(k, Y, "y lse step_number");
    arg_lengths(k, &s);
    arg_i32(k, "heads", s.B * s.H);
    arg_f32(k, "scale", 1 / s.divisor);
    arg_dropout_bytes(k, &c->attr->attention.drop);
    int64_t rows = round_up(SLOTS * TILE * s.D * 2, 1024);
    k->shared_bytes = (unsigned)(ALIGN + rows + DS_BYTES + STATS_BYTES + BARRIERS);
}

const struct cuda_row attention_hopper_short_rows[] = {
    CUDA_ROW(ATTENTION, "wgmma_head", "bi", "bf", fits_forward, launches_forward),
    CUDA_ROW(ATTENTION_GRAD, "wgmma_head", "bbbfi", "b", fits_grad, launches_grad),
    CUDA_ROWS_END,
};

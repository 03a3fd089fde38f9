/* Causal attention of short sequences by what compute capability 9.0 has, forwards and backwards: a block has whole heads. */
#include "backend/cuda/cuda_kernels.h"
#include "backend/cuda/rows.h"

#include <math.h>

enum { DY, QKV, Y, LSE, STEP }; /* inputs of the backward */
/* As the texts have them. */
enum { WARPGROUP = 128, TILE = 64, TILES = 4, ROWS = TILES * TILE, ALIGN = 1024, CONSUMERS = 4 };
enum { PLACES = 4 * TILES + 7, DS_BYTES = 4 * 2 * TILE * TILE, STATS_BYTES = 2 * ROWS * 4 };
enum { BARRIERS = 256 };
enum {
    LEAST = ROWS / 2 + 1
}; /* of fewer rows more than half of a block's work would be for nothing */
static const double LOG2_E = 1.44269504088896341;

struct sizes {
    int64_t B, T, H, D;
};

static struct sizes sizes_of(const struct kernel_call *c, const struct type *qkv)
{
    int64_t H = c->attr->attention.heads;
    return (struct sizes){qkv->dim[0], qkv->dim[1], H, qkv->dim[2] / 3 / H};
}

static bool is_short(const struct kernel_call *c, const struct sizes *s)
{
    return cuda_hopper(c) && !c->numerics.portable && c->attr->attention.causal &&
           attention_kv_heads(c->attr) == s->H && s->T >= LEAST && s->T <= ROWS &&
           (s->D == 16 || s->D == 32 || s->D == 64) && s->B * s->H <= INT32_MAX;
}

/* Boxes of so many rows of one head of a tensor (B,T,heads,D). */
static void arg_heads(struct cuda_launch *k, enum cuda_arg_kind of, int index,
                      const struct sizes *s, int64_t heads, int rows)
{
    int64_t row = 2 * s->D * heads;
    struct cuda_tensor t = {.dtype = DT_BF16,
                            .dim = {s->D, heads, s->T, s->B, 1},
                            .step = {2, 2 * s->D, row, row * s->T, row * s->T * s->B},
                            .box = {(int)s->D, 1, rows, 1, 1},
                            .swizzle = 2 * (int)s->D};
    arg_tensor_map(k, of, index, &t);
}

static struct cuda_launch *add(const struct kernel_call *c, struct cuda_launches *l,
                               const char *text, const char *entry, const struct sizes *s,
                               int warpgroups)
{
    int64_t heads = s->B * s->H, processors = cuda_device_of(c)->processors;
    struct cuda_launch *k =
        launch_add(l, text, entry, heads < processors ? heads : processors, WARPGROUP * warpgroups);
    k->arch = 90;
    launch_define(k, "HEAD_SIZE", s->D);
    launch_define(k, "DROPOUT", c->attr->attention.drop.threshold > 0);
    return k;
}
static void arg_sizes(struct cuda_launch *k, const struct sizes *s)
{
    arg_i32(k, s->T);
    arg_i32(k, s->H);
    arg_i32(k, s->B * s->H);
}

static bool fits_forward(const struct kernel_call *c)
{
    struct sizes s = sizes_of(c, &c->in_type[0]);
    return c->in_type[0].dtype == DT_BF16 && c->in_type[1].dtype == DT_I32 &&
           c->out_type[0].dtype == DT_BF16 && c->out_type[1].dtype == DT_F32 && is_short(c, &s);
}
static void launches_forward(const struct kernel_call *c, struct cuda_launches *l)
{
    struct sizes s = sizes_of(c, &c->in_type[0]);
    struct cuda_launch *k =
        add(c, l, "attention_hopper_short.cu", "attention_hopper_short", &s, CONSUMERS + 1);
    arg_heads(k, ARG_IN, 0, &s, 3 * s.H, TILE);
    arg_heads(k, ARG_OUT, 0, &s, s.H, TILE);
    arg_in(k, 1);
    arg_out(k, 1);
    arg_sizes(k, &s);
    arg_f32(k, LOG2_E / sqrt((double)s.D));
    arg_dropout_bytes(k, &c->attr->attention.drop);
    /* q, k and v of two heads */
    k->shared_bytes = (unsigned)(ALIGN + 2 * 3 * ROWS * s.D * 2 + BARRIERS);
}

static bool fits_grad(const struct kernel_call *c)
{
    struct sizes s = sizes_of(c, &c->in_type[QKV]);
    return c->in_type[DY].dtype == DT_BF16 && c->in_type[QKV].dtype == DT_BF16 &&
           c->in_type[Y].dtype == DT_BF16 && c->out_type[0].dtype == DT_BF16 &&
           c->in_type[LSE].dtype == DT_F32 && c->in_type[STEP].dtype == DT_I32 && is_short(c, &s);
}
static void launches_grad(const struct kernel_call *c, struct cuda_launches *l)
{
    struct sizes s = sizes_of(c, &c->in_type[QKV]);
    struct cuda_launch *k =
        add(c, l, "attention_hopper_short_grad.cu", "attention_hopper_short_grad", &s, 3);
    arg_heads(k, ARG_IN, QKV, &s, 3 * s.H, TILE);
    arg_heads(k, ARG_IN, DY, &s, s.H, TILE);
    arg_heads(k, ARG_OUT, 0, &s, 3 * s.H, TILE / 4); /* a warp's */
    arg_in(k, Y);
    arg_in(k, LSE);
    arg_in(k, STEP);
    arg_sizes(k, &s);
    arg_f32(k, 1 / sqrt((double)s.D));
    arg_dropout_bytes(k, &c->attr->attention.drop);
    int64_t rows = (PLACES * TILE * s.D * 2 + 1023) / 1024 * 1024;
    k->shared_bytes = (unsigned)(ALIGN + rows + DS_BYTES + STATS_BYTES + BARRIERS);
}

const struct cuda_row attention_hopper_short_rows[] = {
    CUDA_ROW(ATTENTION, "wgmma_head", fits_forward, launches_forward),
    CUDA_ROW(ATTENTION_GRAD, "wgmma_head", fits_grad, launches_grad),
    CUDA_ROWS_END,
};

#include "backend/cuda/attention/attention_shape.h"

/* The smallest compiled head size that holds D columns; 0 if there is none, or if D is not a
 * multiple of 8: rows of bf16 in tensor maps must be multiples of 16 bytes. */
static int64_t width_of(int64_t D)
{
    static const int64_t all[] = {16, 32, 64, 96, 128, 192, 256};
    for (int i = 0; i < COUNT_OF(all) && D % 8 == 0; i++)
        if (D <= all[i]) return all[i];
    return 0;
}

struct attention_shape attention_shape_of(const struct kernel_call *c, int qkv)
{
    const struct type *t = &c->in_type[qkv];
    int64_t H = c->attr->attention.heads, KV = attention_kv_heads(c->attr);
    int64_t D = t->dim[2] / (H + 2 * KV);
    return (struct attention_shape){
        t->dim[0], t->dim[1], H, KV, D, width_of(D), t->dtype, attention_divisor(c->attr, D)};
}

int64_t attention_heads_at_once(const struct kernel_call *c, const struct attention_shape *s)
{
    int64_t bytes = max_i64(1, 2 * s->T * s->D * dtype_size(s->dtype)), group = s->H / s->KV;
    int64_t n = cuda_device_of(c)->l2_bytes / 2 / bytes;
    return n < 1 ? group : min_i64(n * group, s->B * s->H);
}

int64_t attention_wide_bytes(const struct attention_shape *s, int rows, int own)
{
    enum { TILE = 64, SLICE = 64, STAGES = 3, PAD = 4 };
    int64_t kept = (int64_t)own * rows * (round_up(s->D, SLICE) + PAD);
    int64_t scores = (int64_t)own * TILE * (rows + PAD), stages = STAGES * TILE * (SLICE + PAD);
    return (kept + scores + stages) * (int64_t)sizeof(float);
}

int attention_wide_rows(const struct kernel_call *c, const struct attention_shape *s, int64_t heads,
                        int own)
{
    enum { FEWEST = 32 };
    const struct target *d = cuda_device_of(c);
    bool drop = c->attr->attention.drop.threshold > 0; /* random numbers take registers */
    int rows = own > 1 || drop ? 64 : 128;
    while (rows >= FEWEST && attention_wide_bytes(s, rows, own) > d->shared_bytes) rows /= 2;
    while (rows > FEWEST && ceil_div(s->T, rows) * heads * s->B < d->processors) rows /= 2;
    return rows >= FEWEST ? rows : 0;
}

struct cuda_tensor attention_tensor(const struct attention_shape *s, int64_t heads, int rows)
{
    int panel = s->width % 64 == 0 ? 64 : s->width % 32 == 0 ? 32 : 16;
    int64_t row = 2 * s->D * heads;
    return (struct cuda_tensor){.dtype = DT_BF16,
                                .dim = {s->D, heads, s->T, s->B, 1},
                                .step = {2, 2 * s->D, row, row * s->T, row * s->T * s->B},
                                .box = {panel, 1, rows, 1, 1},
                                .swizzle = 2 * panel};
}

void attention_define(struct cuda_launch *k, const struct kernel_call *c,
                      const struct attention_shape *s)
{
    launch_define(k, "GROUP", s->H / s->KV);
    launch_define(k, "CAUSAL", c->attr->attention.causal);
    launch_define(k, "DROPOUT", c->attr->attention.drop.threshold > 0);
}

void arg_lengths(struct cuda_launch *k, const struct attention_shape *s)
{
    arg_i32(k, "T", s->T);
    arg_i32(k, "H", s->H);
}

/* What only moves numbers: heads apart and together, state, and casts. */
#include "backend/cpu/vector/common.h"

INLINE void copy_run(const float *from, float *to, int64_t n)
{
    for (int64_t i = 0; i < n; i += W) put(to + i, take(from + i, n - i), n - i);
}

/* Between packed (B,T,P*H*D) and P tensors (B,H,T,D); a row is one token's C = P*H*D numbers. */
INLINE void move_heads(const struct kernel_call *c, int64_t first, int64_t last, bool split)
{
    const struct type *packed = split ? &c->in_type[0] : &c->out_type[0];
    const struct type *single = split ? &c->out_type[0] : &c->in_type[0];
    int64_t T = packed->dim[1], H = single->dim[1], D = single->dim[3];
    int64_t P = packed->dim[2] / (H * D);
    for (int64_t row = first; row < last; row++) {
        float *token = (float *)(split ? c->in[0] : c->out[0]) + row * P * H * D;
        int64_t b = row / T, t = row % T;
        for (int64_t part = 0; part < P; part++)
            for (int64_t h = 0; h < H; h++, token += D) {
                float *head =
                    (float *)(split ? c->out[part] : c->in[part]) + ((b * H + h) * T + t) * D;
                split ? copy_run(token, head, D) : copy_run(head, token, D);
            }
    }
}

static void split_heads_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    move_heads(c, first, last, true);
}

static void merge_heads_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    move_heads(c, first, last, false);
}

static enum status run_split_heads(const struct kernel_call *c)
{
    return VEC(over_rows)(c, 1, split_heads_range);
}

static enum status run_merge_heads(const struct kernel_call *c)
{
    const struct type *packed = &c->out_type[0];
    parallel_ranges(c, type_rows(packed), 1, type_columns(packed), merge_heads_range);
    return ST_OK;
}

static void store_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    copy_run((const float *)c->in[1] + first, (float *)c->in[0] + first, last - first);
}

static enum status run_store(const struct kernel_call *c)
{
    parallel_ranges(c, type_elements(&c->in_type[1]), 256, 1, store_range);
    return ST_OK;
}

/* --- casts; bf16 is the upper half of fp32, rounded to the nearest, halves to even --- */

static void to_bf16_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    const uint32_t *x = c->in[0];
    uint16_t *y = c->out[0];
    for (int64_t i = first; i < last; i++) {
        uint32_t bits = x[i], rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
        bool number = (bits & 0x7fffffffu) <= 0x7f800000u;
        y[i] =
            (uint16_t)(number ? rounded : bits >> 16 | 0x40u); /* rounding could make it infinite */
    }
}

static void from_bf16_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    const uint16_t *x = c->in[0];
    uint32_t *y = c->out[0];
    for (int64_t i = first; i < last; i++) y[i] = (uint32_t)x[i] << 16;
}

static void same_type_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    copy_run((const float *)c->in[0] + first, (float *)c->out[0] + first, last - first);
}

static range_fn cast_of(const struct kernel_call *c)
{
    enum dtype from = c->in_type[0].dtype, to = c->out_type[0].dtype;
    if (from == DT_F32 && to == DT_BF16) return to_bf16_range;
    if (from == DT_BF16 && to == DT_F32) return from_bf16_range;
    return from == DT_F32 && to == DT_F32 ? same_type_range : NULL;
}

static bool cast_fits(const struct kernel_call *c)
{
    return cast_of(c);
}

static enum status run_cast(const struct kernel_call *c)
{
    parallel_ranges(c, type_elements(&c->in_type[0]), 256, 1, cast_of(c));
    return ST_OK;
}

const struct kernel VEC(move_rows)[] = {
    {.op = OP_SPLIT_HEADS, .variant = ISA_NAME, .fits = VEC(all_f32), .run = run_split_heads},
    {.op = OP_MERGE_HEADS, .variant = ISA_NAME, .fits = VEC(all_f32), .run = run_merge_heads},
    {.op = OP_STORE, .variant = ISA_NAME, .fits = VEC(all_f32), .run = run_store},
    {.op = OP_CAST, .variant = ISA_NAME, .fits = cast_fits, .run = run_cast},
    {0},
};

/* Casts between fp32 and bf16, and stores without a cast. */
#include "backend/cpu/vector/bf16.h"
#include "backend/cpu/vector/block.h"
#include "backend/cpu/vector/common.h"

void VEC(cast_to_bf16_block)(const struct block *b)
{
    const float *x = b->a;
    uint16_t *y = b->y;
    for (int64_t i = 0; i < b->n; i += W) store_bf16(y + i, load(x + i, b->n - i), b->n - i);
}

void VEC(cast_to_f32_block)(const struct block *b)
{
    const uint16_t *x = b->a;
    float *y = b->y;
    for (int64_t i = 0; i < b->n; i += W) store(y + i, load_bf16(x + i, b->n - i), b->n - i);
}

static void to_bf16_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    const float *x = c->in[0];
    uint16_t *y = c->out[0];
    VEC(cast_to_bf16_block)(&(struct block){.a = x + first, .y = y + first, .n = last - first});
}

static void to_f32_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    const uint16_t *x = c->in[0];
    float *y = c->out[0];
    VEC(cast_to_f32_block)(&(struct block){.a = x + first, .y = y + first, .n = last - first});
}

INLINE void copy(const struct kernel_call *c, int from, int64_t first, int64_t last)
{
    int64_t size = dtype_size(c->out_type[0].dtype);
    memmove((char *)c->out[0] + first * size, (const char *)c->in[from] + first * size,
            (size_t)((last - first) * size));
}

static void cast_same_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    copy(c, 0, first, last);
}

static void store_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    copy(c, 1, first, last);
}

static bool is_f32_or_bf16(enum dtype dtype)
{
    return dtype == DT_F32 || dtype == DT_BF16;
}

static bool fits_cast(const struct kernel_call *c)
{
    return is_f32_or_bf16(c->in_type[0].dtype) && is_f32_or_bf16(c->out_type[0].dtype);
}

static enum status run_cast(const struct kernel_call *c)
{
    enum dtype from = c->in_type[0].dtype, to = c->out_type[0].dtype;
    range_fn fn = from == to ? cast_same_range : to == DT_BF16 ? to_bf16_range : to_f32_range;
    parallel_ranges(c, type_elements(&c->in_type[0]), 1024, 1, fn);
    return ST_OK;
}

static bool fits_store(const struct kernel_call *c)
{
    return is_f32_or_bf16(c->in_type[0].dtype) && c->in_type[0].dtype == c->in_type[1].dtype;
}

static enum status run_store(const struct kernel_call *c)
{
    parallel_ranges(c, type_elements(&c->in_type[1]), 1024, 1, store_range);
    return ST_OK;
}

const struct kernel VEC(cast_rows)[] = {
    {.op = OP_CAST, .variant = ISA_NAME, .fits = fits_cast, .run = run_cast},
    {.op = OP_STORE, .variant = ISA_NAME, .fits = fits_store, .run = run_store},
    {0},
};

/* CHAIN: fused pointwise operators. All steps run on one block of elements before the next block,
 * so values between steps stay in L1. Each step is the loop of its operator.
 *
 * The result of a step is rounded to the step's type when it is written to its block, so the bits
 * are those of separate operators. Outputs are written after all steps of a block, so output 0 may
 * share its memory with input 0. */
#include "graph/chain.h"

#include "backend/cpu/vector/bf16.h"
#include "backend/cpu/vector/block.h"
#include "backend/cpu/vector/common.h"
#include "backend/cpu/vector/dropout.h"

enum { BLOCK = DROPOUT_RUN };

/* For AVX512_BF16 only the functions on bf16 are compiled; fp32 uses the functions of avx512. */
#if defined(__AVX512BF16__)
#define F32_ISA(name) name##_avx512
#else
#define F32_ISA(name) VEC(name)
#endif

struct elements {
    _Alignas(64) float x[BLOCK]; /* or as many bf16 */
};

struct state {
    const struct kernel_call *call;
    const struct chain *chain;
    enum dtype dtype[CHAIN_STEPS];
    enum broadcast how[MAX_IN];
    block_fn fn[CHAIN_STEPS];
    struct elements repeated[MAX_IN], constant[CHAIN_STEPS], result[CHAIN_STEPS];
};

static block_fn step_fn(const struct chain_step *s, enum dtype dtype)
{
    bool is_bf16 = dtype == DT_BF16;
    if (s->op == OP_CAST) return is_bf16 ? F32_ISA(cast_to_bf16_block) : F32_ISA(cast_to_f32_block);
    if (s->op == OP_GELU || s->op == OP_GELU_GRAD)
        return is_bf16 ? VEC(gelu_blocks_bf16)[s->op] : F32_ISA(gelu_blocks_f32)[s->op];
    return is_bf16 ? VEC(pointwise_blocks_bf16)[s->op] : F32_ISA(pointwise_blocks_f32)[s->op];
}

/* Writes n copies of element `at` of the tensor x, from element `from` of `to` on. */
static void repeat(struct elements *to, int64_t from, int64_t n, enum dtype dtype, const void *x,
                   int64_t at)
{
    if (dtype == DT_F32)
        for (int64_t i = 0; i < n; i++) to->x[from + i] = ((const float *)x)[at];
    else
        for (int64_t i = 0; i < n; i++) ((uint16_t *)to->x)[from + i] = ((const uint16_t *)x)[at];
}

static void repeat_constant(struct elements *to, enum dtype dtype, double constant)
{
    float f32 = (float)constant;
    uint16_t bf16 = 0;
    if (dtype == DT_BF16) vf_store_part_bf16(&bf16, vf_all(f32), 1);
    repeat(to, 0, BLOCK, dtype, dtype == DT_BF16 ? (const void *)&bf16 : &f32, 0);
}

static void begin(struct state *r, const struct kernel_call *c)
{
    r->call = c;
    r->chain = c->attr->chain;
    chain_dtypes(r->chain, c->in_type, r->dtype);
    for (int i = 0; i < c->n_in; i++) {
        r->how[i] = type_broadcast(&r->chain->shape, &c->in_type[i]);
        if (r->how[i] == BROADCAST_SCALAR && dtype_is_float(c->in_type[i].dtype))
            repeat(&r->repeated[i], 0, BLOCK, c->in_type[i].dtype, c->in[i], 0);
    }
    for (int k = 0; k < r->chain->steps; k++) {
        const struct chain_step *s = &r->chain->step[k];
        r->fn[k] = step_fn(s, r->dtype[k]);
        for (int i = 0; i < chain_operands(s->op); i++)
            if (s->operand[i].from == CHAIN_CONSTANT)
                repeat_constant(&r->constant[k], r->dtype[k], s->operand[i].constant);
    }
}

/* If input i has one element per row or only the trailing dimensions: expands n of its elements. */
static void expand(struct state *r, int i, int64_t first, int64_t n)
{
    const struct type *t = &r->call->in_type[i];
    bool per_row = r->how[i] == BROADCAST_ROW;
    int64_t size = dtype_size(t->dtype);
    int64_t period = per_row ? type_columns(&r->chain->shape) : type_elements(t);
    if (!per_row && r->how[i] != BROADCAST_TRAILING) return;
    for (int64_t done = 0, part; done < n; done += part) {
        int64_t row = (first + done) / period, column = (first + done) % period;
        part = min_i64(period - column, n - done);
        if (per_row)
            repeat(&r->repeated[i], done, part, t->dtype, r->call->in[i], row);
        else
            memcpy((char *)r->repeated[i].x + done * size,
                   (const char *)r->call->in[i] + column * size, (size_t)(part * size));
    }
}

static const void *operand(const struct state *r, int k, int which, int64_t first)
{
    const struct chain_step *s = &r->chain->step[k];
    const struct chain_operand *o = &s->operand[which];
    if (which == chain_operands(s->op)) return NULL;
    if (o->from == CHAIN_RESULT) return r->result[o->index].x;
    if (o->from == CHAIN_CONSTANT) return r->constant[k].x;
    const struct type *t = &r->call->in_type[o->index];
    if (t->dtype == DT_I32) return r->call->in[o->index];
    if (r->how[o->index] != BROADCAST_NONE) return r->repeated[o->index].x;
    return (const char *)r->call->in[o->index] + first * dtype_size(t->dtype);
}

static void range(const struct kernel_call *c, int64_t first, int64_t last)
{
    struct state r;
    begin(&r, c);
    for (int64_t at = first; at < last; at += BLOCK) {
        int64_t n = min_i64(BLOCK, last - at);
        for (int i = 0; i < c->n_in; i++) expand(&r, i, at, n);
        for (int k = 0; k < r.chain->steps; k++)
            r.fn[k](&(struct block){.attr = &r.chain->step[k].attr,
                                    .a = operand(&r, k, 0, at),
                                    .b = operand(&r, k, 1, at),
                                    .y = r.result[k].x,
                                    .n = n,
                                    .first = at});
        for (int o = 0; o < c->n_out; o++) {
            int64_t size = dtype_size(c->out_type[o].dtype);
            memcpy((char *)c->out[o] + at * size, r.result[r.chain->output[o]].x,
                   (size_t)(n * size));
        }
    }
}

static enum status run(const struct kernel_call *c)
{
    const struct chain *chain = c->attr->chain;
    parallel_ranges(c, type_elements(&chain->shape), BLOCK, 2 * chain->steps, range);
    return ST_OK;
}

/* Accepts fp32 and bf16; the AVX512_BF16 version accepts only chains with a bf16 tensor. */
static bool fits(const struct kernel_call *c)
{
    const struct chain *chain = c->attr->chain;
    enum dtype dtype[CHAIN_STEPS];
    bool has[DT_COUNT] = {false};
    chain_dtypes(chain, c->in_type, dtype);
    for (int i = 0; i < c->n_in; i++) has[c->in_type[i].dtype] = true;
    for (int k = 0; k < chain->steps; k++) has[dtype[k]] = true;
#if defined(__AVX512BF16__)
    if (!has[DT_BF16]) return false;
#endif
    return !has[DT_F64];
}

const struct kernel VEC(chain_rows)[] = {
    {.op = OP_CHAIN, .variant = ISA_NAME, .fits = fits, .run = run},
    {0},
};

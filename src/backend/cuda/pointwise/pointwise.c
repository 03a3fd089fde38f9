/* Arithmetic on elements, masks, casts, state (pointwise.cu, mask.cu). */
#include "backend/cuda/common/rows.h"
#include "backend/cuda/cuda_kernels.h"

/* As in elements.cuh: a thread has 16 bytes of each vector. */
enum { THREADS = 256, BYTES = 16, COPIES = 4, PER_THREAD = 16, PAIRS_PER_THREAD = 8 };
enum { TILE = 16, TILES = 16 };

static struct cuda_launch *elements(const struct kernel_call *c, struct cuda_launches *l,
                                    const char *text, const char *entry, int per_thread)
{
    int64_t n = type_elements(&c->out_type[0]);
    struct cuda_launch *k =
        launch_add(l, text, entry, ceil_div(n, (int64_t)THREADS * per_thread), THREADS);
    launch_define_type(k, "T_X", c->out_type[0].dtype);
    return k;
}

/* --- unary --- */

static void unary(const struct kernel_call *c, struct cuda_launches *l, const char *entry)
{
    struct cuda_launch *k = elements(c, l, "pointwise.cu", entry, PER_THREAD);
    arg_in(k, "x", 0);
    arg_out(k, "y", 0);
    arg_i64(k, "n", type_elements(&c->out_type[0]));
    arg_f32(k, "constant", c->attr->constant.value);
}

/* Operators without a constant pass an arbitrary value, which the kernel does not read. */
#define UNARY(name)                                                               \
    static void each_##name(const struct kernel_call *c, struct cuda_launches *l) \
    {                                                                             \
        unary(c, l, "each_" #name);                                               \
    }
UNARY(scale)
UNARY(offset)
UNARY(at_most)
UNARY(exp)
UNARY(log)
UNARY(sqrt)
UNARY(rsqrt)
UNARY(tanh)
UNARY(erf)
UNARY(relu)
UNARY(elu)
UNARY(silu)

static void fill(const struct kernel_call *c, struct cuda_launches *l)
{
    struct cuda_launch *k = elements(c, l, "pointwise.cu", "fill", PER_THREAD);
    arg_out(k, "y", 0);
    arg_i64(k, "n", type_elements(&c->out_type[0]));
    arg_f32(k, "constant", c->attr->constant.value);
}

/* --- binary --- */

/* `entry`: kernels in the order of enum broadcast. */
static void binary(const struct kernel_call *c, struct cuda_launches *l, const char *const entry[])
{
    enum broadcast how = type_broadcast(&c->in_type[0], &c->in_type[1]);
    struct cuda_launch *k = elements(c, l, "pointwise.cu", entry[how], PAIRS_PER_THREAD);
    arg_in(k, "x", 0);
    arg_in(k, "b", 1);
    arg_out(k, "y", 0);
    arg_i64(k, "n", type_elements(&c->out_type[0]));
    arg_i32(k, "period",
            how == BROADCAST_ROW        ? type_columns(&c->in_type[0])
            : how == BROADCAST_TRAILING ? type_elements(&c->in_type[1])
                                        : 1);
}

#define BINARY(name)                                                                          \
    static void name##_two(const struct kernel_call *c, struct cuda_launches *l)              \
    {                                                                                         \
        static const char *const entry[] = {#name "_same", #name "_scalar", #name "_per_row", \
                                            #name "_trailing"};                               \
        binary(c, l, entry);                                                                  \
    }
BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(div)

static void same_shape(const struct kernel_call *c, struct cuda_launches *l, const char *entry)
{
    struct cuda_launch *k = elements(c, l, "pointwise.cu", entry, PAIRS_PER_THREAD);
    arg_in(k, "x", 0);
    arg_in(k, "b", 1);
    arg_out(k, "y", 0);
    arg_i64(k, "n", type_elements(&c->out_type[0]));
    arg_i32(k, "period", 1);
}
static void relu_grad(const struct kernel_call *c, struct cuda_launches *l)
{
    same_shape(c, l, "relu_grad_same");
}
static void elu_grad(const struct kernel_call *c, struct cuda_launches *l)
{
    same_shape(c, l, "elu_grad_same");
}
static void silu_grad(const struct kernel_call *c, struct cuda_launches *l)
{
    same_shape(c, l, "silu_grad_same");
}

/* Input 0 is output 0. */
static void accumulate(const struct kernel_call *c, struct cuda_launches *l)
{
    struct cuda_launch *k = elements(c, l, "pointwise.cu", "add_same", PAIRS_PER_THREAD);
    arg_out(k, "x", 0);
    arg_in(k, "b", 1);
    arg_out(k, "y", 0);
    arg_i64(k, "n", type_elements(&c->out_type[0]));
    arg_i32(k, "period", 1);
}

/* --- copies and casts: independent of T_X, so they reuse modules that the step has compiled --- */

static void copy(const struct kernel_call *c, struct cuda_launches *l, int from)
{
    int64_t bytes = type_bytes(&c->out_type[0]);
    int64_t blocks = ceil_div(bytes, (int64_t)THREADS * COPIES * BYTES);
    struct cuda_launch *k = launch_add(l, "pointwise.cu", "copy", blocks, THREADS);
    launch_define_type(k, "T_X", c->out_type[0].dtype);
    arg_in(k, "x", from);
    arg_out(k, "y", 0);
    arg_i64(k, "bytes", bytes);
}

static void store(const struct kernel_call *c, struct cuda_launches *l)
{
    copy(c, l, 1);
}

static void cast(const struct kernel_call *c, struct cuda_launches *l)
{
    enum dtype from = c->in_type[0].dtype, to = c->out_type[0].dtype;
    if (from == to) {
        copy(c, l, 0);
        return;
    }
    int64_t n = type_elements(&c->out_type[0]), blocks = ceil_div(n, (int64_t)THREADS * COPIES * 4);
    struct cuda_launch *k = launch_add(
        l, "pointwise.cu", to == DT_BF16 ? "cast_to_bf16" : "cast_to_f32", blocks, THREADS);
    launch_define_type(k, "T_X", DT_BF16);
    arg_in(k, "x", 0);
    arg_out(k, "y", 0);
    arg_i64(k, "n", n);
}

/* --- masks --- */

static struct cuda_launch *mask(const struct kernel_call *c, struct cuda_launches *l,
                                const char *entry)
{
    struct cuda_launch *k = elements(c, l, "mask.cu", entry, PER_THREAD);
    arg_in(k, "x", 0);
    arg_out(k, "y", 0);
    arg_i64(k, "n", type_elements(&c->out_type[0]));
    arg_i32(k, "columns", type_columns(&c->out_type[0]));
    return k;
}

static void causal_mask(const struct kernel_call *c, struct cuda_launches *l)
{
    arg_f32(mask(c, l, "causal_mask"), "value", c->attr->constant.value);
}

static void column_mask(const struct kernel_call *c, struct cuda_launches *l)
{
    int64_t columns = type_columns(&c->out_type[0]), open = c->attr->column_mask.columns;
    struct cuda_launch *k = mask(c, l, "column_mask");
    arg_i32(k, "open", open < columns ? open : columns);
    arg_f32(k, "value", c->attr->column_mask.value);
}

/* `mask_only`: input 0 is the step; else input 0 is x and input 1 the step. */
static void dropout_launch(const struct kernel_call *c, struct cuda_launches *l, bool mask_only)
{
    const struct dropout *d = &c->attr->drop;
    const struct type *t = &c->out_type[0];
    bool matrices = d->pattern == DROPOUT_ATTENTION;
    const char *const entry[2][2] = {{"dropout", "dropout_mask"},
                                     {"dropout_matrices", "dropout_mask_matrices"}};
    struct cuda_launch *k = elements(c, l, "mask.cu", entry[matrices][mask_only], PER_THREAD);
    if (!mask_only) arg_in(k, "x", 0);
    arg_in(k, "step", mask_only ? 0 : 1);
    arg_out(k, "y", 0);
    if (matrices) {
        int64_t columns = type_columns(t), rows = t->dim[t->rank - 2];
        int64_t n = type_rows(t) / rows, tiles = ceil_div(rows, TILE) * ceil_div(columns, TILE);
        launch_grid(k, ceil_div(n * tiles, TILES), 1, 1);
        arg_i32(k, "matrices", n);
        arg_i32(k, "rows", rows);
        arg_i32(k, "columns", columns);
    } else {
        arg_i64(k, "n", type_elements(t));
    }
    arg_dropout(k, d);
}

static void dropout(const struct kernel_call *c, struct cuda_launches *l)
{
    dropout_launch(c, l, false);
}

static void dropout_mask(const struct kernel_call *c, struct cuda_launches *l)
{
    dropout_launch(c, l, true);
}

static bool fits(const struct kernel_call *c)
{
    return types_are(c, "aa", "a");
}
static bool fits_cast(const struct kernel_call *c)
{
    return types_are(c, "a", "a") || types_are(c, "a", "f") ||
           (c->in_type[0].dtype == DT_F32 && c->out_type[0].dtype == DT_BF16);
}
static bool fits_dropout(const struct kernel_call *c)
{
    return types_are(c, "ai", "a");
}
static bool fits_dropout_mask(const struct kernel_call *c)
{
    return types_are(c, "i", "a");
}

const struct cuda_row pointwise_rows[] = {
    CUDA_ROW(FILL, "cuda", fits, fill),
    CUDA_ROW(ADD, "cuda", fits, add_two),
    CUDA_ROW(SUB, "cuda", fits, sub_two),
    CUDA_ROW(MUL, "cuda", fits, mul_two),
    CUDA_ROW(DIV, "cuda", fits, div_two),
    CUDA_ROW(SCALE, "cuda", fits, each_scale),
    CUDA_ROW(OFFSET, "cuda", fits, each_offset),
    CUDA_ROW(AT_MOST, "cuda", fits, each_at_most),
    CUDA_ROW(EXP, "cuda", fits, each_exp),
    CUDA_ROW(LOG, "cuda", fits, each_log),
    CUDA_ROW(SQRT, "cuda", fits, each_sqrt),
    CUDA_ROW(RSQRT, "cuda", fits, each_rsqrt),
    CUDA_ROW(TANH, "cuda", fits, each_tanh),
    CUDA_ROW(ERF, "cuda", fits, each_erf),
    CUDA_ROW(RELU, "cuda", fits, each_relu),
    CUDA_ROW(RELU_GRAD, "cuda", fits, relu_grad),
    CUDA_ROW(ELU, "cuda", fits, each_elu),
    CUDA_ROW(ELU_GRAD, "cuda", fits, elu_grad),
    CUDA_ROW(SILU, "cuda", fits, each_silu),
    CUDA_ROW(SILU_GRAD, "cuda", fits, silu_grad),
    CUDA_ROW(CAUSAL_MASK, "cuda", fits, causal_mask),
    CUDA_ROW(COLUMN_MASK, "cuda", fits, column_mask),
    CUDA_ROW(DROPOUT_MASK, "cuda", fits_dropout_mask, dropout_mask),
    CUDA_ROW(CAST, "cuda", fits_cast, cast),
    CUDA_ROW(DROPOUT, "cuda", fits_dropout, dropout),
    CUDA_ROW(STORE, "cuda", fits, store),
    CUDA_ROW(ACCUMULATE, "cuda", fits, accumulate),
    CUDA_ROWS_END,
};

/* Arithmetic on elements, masks, casts, state (pointwise.cu, mask.cu). */
#include "backend/cuda/common/rows.h"
#include "backend/cuda/cuda_kernels.h"

/* These constants have the same values in elements.cuh, pointwise.cu and mask.cu. A thread has 16
 * bytes of each vector. */
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

/* Operators without a constant pass an arbitrary value, which the kernel does not read. */
static void unary(const struct kernel_call *c, struct cuda_launches *l)
{
    struct cuda_launch *k = elements(c, l, "pointwise.cu", l->row->entry, PER_THREAD);
    arg_in(k, "x", 0);
    arg_out(k, "y", 0);
    arg_i64(k, "n", type_elements(&c->out_type[0]));
    arg_f32(k, "constant", c->attr->constant.value);
}

static void fill(const struct kernel_call *c, struct cuda_launches *l)
{
    struct cuda_launch *k = elements(c, l, "pointwise.cu", "fill", PER_THREAD);
    arg_out(k, "y", 0);
    arg_i64(k, "n", type_elements(&c->out_type[0]));
    arg_f32(k, "constant", c->attr->constant.value);
}

/* --- binary --- */

/* `entry` has the kernels in the order of enum broadcast. */
static void binary(const struct kernel_call *c, struct cuda_launches *l, const char *const entry[])
{
    enum broadcast how = type_broadcast(&c->in_type[0], &c->in_type[1]);
    struct cuda_launch *k = elements(c, l, "pointwise.cu", entry[how], PAIRS_PER_THREAD);
    args_in(k, 0, "x b");
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

/* Operands of the same shape. The first operand of ACCUMULATE is also its output. */
static void same_shape(const struct kernel_call *c, struct cuda_launches *l)
{
    struct cuda_launch *k = elements(c, l, "pointwise.cu", l->row->entry, PAIRS_PER_THREAD);
    if (l->row->kernel.op == OP_ACCUMULATE)
        arg_out(k, "x", 0);
    else
        arg_in(k, "x", 0);
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

/* Input 0 of DROPOUT_MASK is the step. Input 0 of DROPOUT is x, and input 1 is the step. */
static void dropout(const struct kernel_call *c, struct cuda_launches *l)
{
    bool mask_only = l->row->kernel.op == OP_DROPOUT_MASK;
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

static bool fits_cast(const struct kernel_call *c)
{
    return types_are(c, DT_COUNT, "a", "a") || types_are(c, DT_COUNT, "a", "f") ||
           (c->in_type[0].dtype == DT_F32 && c->out_type[0].dtype == DT_BF16);
}
const struct cuda_row pointwise_rows[] = {
    CUDA_ROW(FILL, "cuda", "aa", "a", NULL, fill),
    CUDA_ROW(ADD, "cuda", "aa", "a", NULL, add_two),
    CUDA_ROW(SUB, "cuda", "aa", "a", NULL, sub_two),
    CUDA_ROW(MUL, "cuda", "aa", "a", NULL, mul_two),
    CUDA_ROW(DIV, "cuda", "aa", "a", NULL, div_two),
    CUDA_ROW(SCALE, "cuda", "aa", "a", NULL, unary, "each_scale"),
    CUDA_ROW(OFFSET, "cuda", "aa", "a", NULL, unary, "each_offset"),
    CUDA_ROW(AT_MOST, "cuda", "aa", "a", NULL, unary, "each_at_most"),
    CUDA_ROW(EXP, "cuda", "aa", "a", NULL, unary, "each_exp"),
    CUDA_ROW(LOG, "cuda", "aa", "a", NULL, unary, "each_log"),
    CUDA_ROW(SQRT, "cuda", "aa", "a", NULL, unary, "each_sqrt"),
    CUDA_ROW(RSQRT, "cuda", "aa", "a", NULL, unary, "each_rsqrt"),
    CUDA_ROW(TANH, "cuda", "aa", "a", NULL, unary, "each_tanh"),
    CUDA_ROW(SIGMOID, "cuda", "aa", "a", NULL, unary, "each_sigmoid"),
    CUDA_ROW(ERF, "cuda", "aa", "a", NULL, unary, "each_erf"),
    CUDA_ROW(RELU, "cuda", "aa", "a", NULL, unary, "each_relu"),
    CUDA_ROW(WHERE_POSITIVE, "cuda", "aa", "a", NULL, same_shape, "where_positive_same"),
    CUDA_ROW(WHERE_NOT_POSITIVE, "cuda", "aa", "a", NULL, same_shape, "where_not_positive_same"),
    CUDA_ROW(ELU, "cuda", "aa", "a", NULL, unary, "each_elu"),
    CUDA_ROW(ELU_GRAD, "cuda", "aa", "a", NULL, same_shape, "elu_grad_same"),
    CUDA_ROW(SILU, "cuda", "aa", "a", NULL, unary, "each_silu"),
    CUDA_ROW(SILU_GRAD, "cuda", "aa", "a", NULL, same_shape, "silu_grad_same"),
    CUDA_ROW(CAUSAL_MASK, "cuda", "aa", "a", NULL, causal_mask),
    CUDA_ROW(COLUMN_MASK, "cuda", "aa", "a", NULL, column_mask),
    CUDA_ROW(DROPOUT_MASK, "cuda", "i", "a", NULL, dropout),
    CUDA_ROW(CAST, "cuda", NULL, NULL, fits_cast, cast),
    CUDA_ROW(DROPOUT, "cuda", "ai", "a", NULL, dropout),
    CUDA_ROW(STORE, "cuda", "aa", "a", NULL, store),
    CUDA_ROW(ACCUMULATE, "cuda", "aa", "a", NULL, same_shape, "add_same"),
    CUDA_ROWS_END,
};

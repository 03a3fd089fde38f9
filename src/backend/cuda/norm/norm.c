/* Layer norms and gradients: rows in registers, compiled for their length; longer ones reread. */
#include "backend/cuda/common/rows.h"
#include "backend/cuda/cuda_kernels.h"
#include "backend/cuda/norm/norm_bf16.h"

enum { MOST_COLUMNS = 16384 };

/* Up to 1024 columns, a warp per row; beyond, a block with 16 elements per thread. */
static int lanes_of(int64_t columns)
{
    return columns <= 1024 ? 32 : row_lanes(columns, 16);
}

static void define_rows(const struct kernel_call *c, struct cuda_launch *k, bool bias)
{
    row_define(k, &c->in_type[0]);
    launch_define(k, "BIAS", bias);
}

static bool few_columns(const struct kernel_call *c)
{
    return type_columns(&c->in_type[0]) <= MOST_COLUMNS;
}

/* x, w [, bias] -> y, mean, rstd */
static void layernorm(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct type *x = &c->in_type[0];
    struct cuda_launch *k =
        row_launch(l, "norm.cu", "layernorm", type_rows(x), lanes_of(type_columns(x)));
    define_rows(c, k, c->n_in > 2);
    args_out(k, 0, "y mean rstd");
    args_in(k, 0, c->n_in > 2 ? "x w bias" : "x w");
    arg_f32(k, "eps", c->attr->norm.eps);
    arg_i64(k, "rows", type_rows(x));
}

/* a, b, step, w [, bias] -> a + dropout(b), y, mean, rstd */
static void add_layernorm(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct type *x = &c->in_type[0];
    struct cuda_launch *k =
        row_launch(l, "norm.cu", "add_layernorm", type_rows(x), lanes_of(type_columns(x)));
    define_rows(c, k, c->n_in > 4);
    args_out(k, 0, "sums y mean rstd");
    args_in(k, 0, c->n_in > 4 ? "a b step w bias" : "a b step w");
    arg_dropout(k, &c->attr->norm.drop);
    arg_f32(k, "eps", c->attr->norm.eps);
    arg_i64(k, "rows", type_rows(x));
}

/* Blocks of the gradient. With more columns a lane needs more registers, so fewer rows run side by
 * side; beyond 1024 columns a block has one row at a time, and several blocks share an SM. */
struct grad_shape {
    int lanes, groups;
    int64_t blocks;
};

static struct grad_shape grad_shape(const struct kernel_call *c, const struct target *d)
{
    const struct type *x = &c->in_type[0];
    int64_t columns = type_columns(x), rows = type_rows(x), blocks = d->processors;
    struct grad_shape s = {lanes_of(columns), 1, 0};
    if (s.lanes == 32) {
        s.groups = columns <= 512 ? 16 : columns <= 768 && x->dtype == DT_BF16 ? 12 : 8;
        if (c->n_in == 7 && row_access(x->dtype, columns) == 1)
            s.groups = 8; /* a Philox call per element needs registers */
    } else {
        blocks *= 512 / s.lanes > 1 ? 512 / s.lanes : 1;
    }
    s.blocks = ceil_div(rows, s.groups);
    if (s.blocks > blocks) s.blocks = blocks;
    return s;
}

static void define_grad(const struct kernel_call *c, struct cuda_launch *k,
                        const struct grad_shape *s)
{
    define_rows(c, k, c->attr->norm.bias);
    launch_define(k, "LANES", s->lanes);
    launch_define(k, "GROUPS", s->groups);
    launch_define(k, "ADD", c->n_in >= 6);
    launch_define(k, "DROP", c->n_in == 7);
}

void layernorm_grad_inputs(struct cuda_launch *k, const struct kernel_call *c)
{
    int more = c->n_in >= 6;
    if (more) arg_in(k, "more", 0);
    args_in(k, more, c->n_in == 7 ? "dy x w mean rstd step" : "dy x w mean rstd");
}

/* [more,] dy, x, w, mean, rstd [, step] -> dx, [dropout(dx),] dw [, dbias] */
static void layernorm_grad(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct type *x = &c->in_type[0];
    const struct grad_shape s = grad_shape(c, l->device);
    bool bias = c->attr->norm.bias, drop = c->n_in == 7;
    int first_sum = drop ? 2 : 1; /* index of the output dw */
    int64_t sums = (bias ? 2 : 1) * type_columns(x);
    int64_t parts = launch_scratch(l, s.blocks * sums * (int64_t)sizeof(float));

    struct cuda_launch *k =
        launch_add(l, "norm_grad.cu", "layernorm_grad", s.blocks, s.lanes * s.groups);
    define_grad(c, k, &s);
    k->spills = s.lanes > 512; /* few: registers for dw and dbias of all columns are scarce */
    args_out(k, 0, drop ? "dx dropped" : "dx");
    arg_scratch(k, "parts", parts);
    layernorm_grad_inputs(k, c);
    if (drop) arg_dropout(k, &c->attr->norm.drop);
    arg_i64(k, "rows", type_rows(x));

    k = launch_add(l, "norm_grad.cu", "norm_parts", ceil_div(sums, 32), 16 * 32);
    define_grad(c, k, &s);
    args_out(k, first_sum, bias ? "dw dbias" : "dw");
    arg_scratch(k, "parts", parts);
    arg_i32(k, "count", (int32_t)s.blocks);
}

/* --- rows of any length --- */

enum { LONG_THREADS = 1024 };

static struct cuda_launch *long_launch(const struct kernel_call *c, struct cuda_launches *l,
                                       const char *entry, int64_t blocks)
{
    struct cuda_launch *k = launch_add(l, "norm_long.cu", entry, blocks, LONG_THREADS);
    launch_define_type(k, "T_X", c->in_type[0].dtype);
    return k;
}

static void layernorm_long(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct type *x = &c->in_type[0];
    struct cuda_launch *k = long_launch(c, l, "layernorm_long", type_rows(x));
    args_out(k, 0, "y mean rstd");
    args_in(k, 0, "x w");
    arg_in_if(k, c->n_in > 2, "bias", 2);
    arg_f32(k, "eps", c->attr->norm.eps);
    arg_i32(k, "columns", type_columns(x));
}

static void add_layernorm_long(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct type *x = &c->in_type[0];
    struct cuda_launch *k = long_launch(c, l, "add_layernorm_long", type_rows(x));
    args_out(k, 0, "s y mean rstd");
    args_in(k, 0, "a b step w");
    arg_in_if(k, c->n_in > 4, "bias", 4);
    arg_dropout(k, &c->attr->norm.drop);
    arg_f32(k, "eps", c->attr->norm.eps);
    arg_i32(k, "columns", type_columns(x));
}

/* dw and dbias first: dx may overwrite dy. */
static void layernorm_grad_long(const struct kernel_call *c, struct cuda_launches *l)
{
    enum { COLUMNS_OF_BLOCK = 32 };
    const struct type *x = &c->in_type[0];
    int64_t columns = type_columns(x), rows = type_rows(x);
    int dy = c->n_in == 6; /* after `more` */
    struct cuda_launch *k = long_launch(c, l, "norm_columns", ceil_div(columns, COLUMNS_OF_BLOCK));
    arg_out(k, "dw", 1);
    if (c->n_out > 2)
        arg_out(k, "dbias", 2);
    else
        arg_null(k, "dbias");
    args_in(k, dy, "dy x");
    args_in(k, dy + 3, "mean rstd");
    arg_i64(k, "rows", rows);
    arg_i32(k, "columns", columns);

    k = long_launch(c, l, "layernorm_grad_long", rows);
    arg_out(k, "dx", 0);
    arg_in_if(k, dy > 0, "more", 0);
    args_in(k, dy, "dy x w mean rstd");
    arg_i32(k, "columns", columns);
}

static bool fits_layernorm_long(const struct kernel_call *c)
{
    return types_are(c, "aff", "aff");
}
static bool fits_add_layernorm_long(const struct kernel_call *c)
{
    return types_are(c, "aaiff", "aaff");
}
static bool fits_grad_long(const struct kernel_call *c)
{
    return types_are(c, c->n_in == 5 ? "aafff" : "aaafff", "aff");
}
static bool fits_layernorm(const struct kernel_call *c)
{
    return few_columns(c) && fits_layernorm_long(c);
}
static bool fits_add_layernorm(const struct kernel_call *c)
{
    return few_columns(c) && fits_add_layernorm_long(c);
}
static bool fits_grad(const struct kernel_call *c)
{
    return few_columns(c) && fits_grad_long(c);
}
static bool fits_grad_drop(const struct kernel_call *c)
{
    return few_columns(c) && types_are(c, "aaafffi", "aaff");
}

const struct cuda_row norm_rows[] = {
    CUDA_ROW(LAYERNORM, "bf16", fits_layernorm_bf16, layernorm_bf16),
    CUDA_ROW(LAYERNORM, "registers", fits_layernorm, layernorm),
    CUDA_ROW(LAYERNORM, "long", fits_layernorm_long, layernorm_long),
    CUDA_ROW(ADD_LAYERNORM, "bf16", fits_add_layernorm_bf16, add_layernorm_bf16),
    CUDA_ROW(ADD_LAYERNORM, "registers", fits_add_layernorm, add_layernorm),
    CUDA_ROW(ADD_LAYERNORM, "long", fits_add_layernorm_long, add_layernorm_long),
    CUDA_ROW(QUANTISE_ADD_LAYERNORM, "bf16", fits_quantise_add_layernorm, quantise_add_layernorm),
    CUDA_ROW(LAYERNORM_GRAD, "bf16", fits_layernorm_grad_bf16, layernorm_grad_bf16),
    CUDA_ROW(LAYERNORM_GRAD, "registers", fits_grad, layernorm_grad),
    CUDA_ROW(LAYERNORM_GRAD, "long", fits_grad_long, layernorm_grad_long),
    CUDA_ROW(LAYERNORM_GRAD_ADD, "bf16", fits_layernorm_grad_bf16, layernorm_grad_bf16),
    CUDA_ROW(LAYERNORM_GRAD_ADD, "registers", fits_grad, layernorm_grad),
    CUDA_ROW(LAYERNORM_GRAD_ADD, "long", fits_grad_long, layernorm_grad_long),
    CUDA_ROW(LAYERNORM_GRAD_DROP, "bf16", fits_layernorm_grad_drop_bf16, layernorm_grad_bf16),
    CUDA_ROW(LAYERNORM_GRAD_DROP, "registers", fits_grad_drop, layernorm_grad),
    CUDA_ROWS_END,
};

/* Layer norms and their gradients. Kernels are compiled for a row length and keep a row in
 * registers; longer rows are read several times. */
#include "backend/cuda/norm/norm.h"
#include "backend/cuda/common/rows.h"
#include "backend/cuda/cuda_kernels.h"

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

static bool fits(const struct kernel_call *c)
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
    k->spills = s.lanes > 512; /* few spills: dw and dbias of all columns need many registers */
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

const struct cuda_row norm_rows[] = {
    CUDA_ROW(LAYERNORM, "bf16", "bff", "bff", fits_norm_bf16, layernorm_bf16),
    CUDA_ROW(LAYERNORM, "registers", "aff", "aff", fits, layernorm),
    CUDA_ROW(LAYERNORM, "long", "aff", "aff", NULL, norm_long),
    CUDA_ROW(ADD_LAYERNORM, "bf16", "bbiff", "bbff", fits_norm_bf16, add_layernorm_bf16),
    CUDA_ROW(ADD_LAYERNORM, "registers", "aaiff", "aaff", fits, add_layernorm),
    CUDA_ROW(ADD_LAYERNORM, "long", "aaiff", "aaff", NULL, add_norm_long),
    CUDA_ROW(QUANTIZE_ADD_LAYERNORM, "bf16", "fbibff", "f88fbff", fits_quantize_add_layernorm,
             quantize_add_layernorm),
    CUDA_ROW(LAYERNORM_GRAD, "bf16", "bbfff", "bf", fits_norm_grad_bf16, layernorm_grad_bf16),
    CUDA_ROW(LAYERNORM_GRAD, "registers", "aafff", "aff", fits, layernorm_grad),
    CUDA_ROW(LAYERNORM_GRAD, "long", "aafff", "aff", NULL, norm_grad_long),
    CUDA_ROW(LAYERNORM_GRAD_ADD, "bf16", "bbbfff", "bf", fits_norm_grad_bf16, layernorm_grad_bf16),
    CUDA_ROW(LAYERNORM_GRAD_ADD, "registers", "aaafff", "aff", fits, layernorm_grad),
    CUDA_ROW(LAYERNORM_GRAD_ADD, "long", "aaafff", "aff", NULL, norm_grad_long),
    CUDA_ROW(LAYERNORM_GRAD_DROP, "bf16", "bbbfffi", "bbf", fits_norm_grad_bf16,
             layernorm_grad_bf16),
    CUDA_ROW(LAYERNORM_GRAD_DROP, "registers", "aaafffi", "aaff", fits, layernorm_grad),
    CUDA_ROWS_END,
};

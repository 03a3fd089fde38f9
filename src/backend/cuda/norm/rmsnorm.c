/* RMS norms and their gradients. Kernels are compiled for a row length and keep a row in registers;
 * longer rows are read several times. */
#include "backend/cuda/common/rows.h"
#include "backend/cuda/cuda_kernels.h"
#include "backend/cuda/norm/norm.h"

enum { MOST_COLUMNS = 16384, MOST_GRAD_COLUMNS = 8192, BLOCK_THREADS = 512, GROUPS = 8 };
enum { COLUMN_LANES = 2 }; /* as in rmsnorm_grad_one_launch.cu */

/* True if rows are whole 16-byte accesses. */
static bool is_whole(const struct type *x)
{
    return row_access(x->dtype, type_columns(x)) * dtype_size(x->dtype) == 16;
}

/* A row of whole accesses and up to 1024 columns has one warp; other rows have 16 elements per
 * thread, which need few addresses. */
static int lanes_of(const struct type *x)
{
    int64_t columns = type_columns(x);
    return columns <= 1024 && is_whole(x) ? 32 : row_lanes(columns, 16);
}

static void norm(const struct kernel_call *c, struct cuda_launches *l, const char *entry,
                 const char *outputs, const char *inputs)
{
    const struct type *x = &c->in_type[0];
    struct cuda_launch *k = row_launch(l, "rmsnorm.cu", entry, type_rows(x), lanes_of(x));
    row_define(k, x);
    args_out(k, 0, outputs);
    args_in(k, 0, inputs);
    arg_f32(k, "eps", c->attr->norm.eps);
    arg_i64(k, "rows", type_rows(x));
}

/* x, w -> y, rrms */
static void rmsnorm(const struct kernel_call *c, struct cuda_launches *l)
{
    norm(c, l, "rmsnorm", "y rrms", "x w");
}

/* a, b, w -> a + b, y, rrms */
static void add_rmsnorm(const struct kernel_call *c, struct cuda_launches *l)
{
    norm(c, l, "add_rmsnorm", "sums y rrms", "a b w");
}

/* more, dy, x, w, rrms -> dx, dw. dy and x are read twice, so both must stay in L2. */
static void grad_beside(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct type *x = &c->in_type[0];
    int64_t columns = type_columns(x), rows = type_rows(x);
    int64_t sums = ceil_div(columns, (int64_t)COLUMN_LANES * row_access(x->dtype, columns));
    struct cuda_launch *k =
        row_launch(l, "rmsnorm_grad_one_launch.cu", "rmsnorm_grad_one_launch", rows, lanes_of(x));
    launch_grid(k, sums + k->grid[0], 1, 1);
    row_define(k, x);
    args_out(k, 0, "dx dw");
    args_in(k, 0, "more dy x w rrms");
    arg_i64(k, "rows", rows);
    arg_i32(k, "column_blocks", sums);
}

/* [more,] dy, x, w, rrms -> dx, dw */
static void grad(const struct kernel_call *c, struct cuda_launches *l)
{
    const struct type *x = &c->in_type[0];
    int64_t columns = type_columns(x), rows = type_rows(x);
    int lanes = lanes_of(x), groups = lanes == 32 ? GROUPS : 1;
    int64_t most = l->device->processors * ceil_div(BLOCK_THREADS, lanes * groups) / 2;
    if (most < l->device->processors) most = l->device->processors;
    int64_t blocks = ceil_div(rows, groups) < most ? ceil_div(rows, groups) : most;
    int64_t of_blocks = launch_scratch(l, blocks * columns * (int64_t)sizeof(float));

    for (int i = 0; i < 2; i++) {
        struct cuda_launch *k =
            i == 0 ? launch_add(l, "rmsnorm_grad.cu", "rmsnorm_grad", blocks, lanes * groups)
                   : launch_add(l, "rmsnorm_grad.cu", "norm_parts", ceil_div(columns, 32), 16 * 32);
        row_define(k, x);
        launch_define(k, "LANES", lanes);
        launch_define(k, "GROUPS", groups);
        launch_define(k, "ADD", c->n_in == 5);
        arg_out(k, i ? "dw" : "dx", i);
        arg_scratch(k, "parts", of_blocks);
        if (i == 0) {
            if (c->n_in == 5) arg_in(k, "more", 0);
            args_in(k, c->n_in == 5, "dy x w rrms");
            arg_i64(k, "rows", rows);
        } else {
            arg_i32(k, "count", blocks);
        }
    }
}

static bool fits_norm(const struct kernel_call *c)
{
    return type_columns(&c->in_type[0]) <= MOST_COLUMNS;
}
static bool fits_grad(const struct kernel_call *c)
{
    return type_columns(&c->in_type[0]) <= MOST_GRAD_COLUMNS;
}
/* Rows of whole accesses, and two tensors within a third of L2. */
static bool fits_beside(const struct kernel_call *c)
{
    const struct type *x = &c->in_type[0];
    return fits_grad(c) && is_whole(x) && 2 * type_bytes(x) <= cuda_device_of(c)->l2_bytes / 3;
}

const struct cuda_row rmsnorm_rows[] = {
    CUDA_ROW(RMSNORM, "registers", "af", "af", fits_norm, rmsnorm),
    CUDA_ROW(RMSNORM, "long", "af", "af", NULL, norm_long),
    CUDA_ROW(ADD_RMSNORM, "registers", "aaf", "aaf", fits_norm, add_rmsnorm),
    CUDA_ROW(ADD_RMSNORM, "long", "aaf", "aaf", NULL, add_norm_long),
    CUDA_ROW(RMSNORM_GRAD, "registers", "aaff", "af", fits_grad, grad),
    CUDA_ROW(RMSNORM_GRAD, "long", "aaff", "af", NULL, norm_grad_long),
    CUDA_ROW(RMSNORM_GRAD_ADD, "beside", "aaaff", "af", fits_beside, grad_beside),
    CUDA_ROW(RMSNORM_GRAD_ADD, "registers", "aaaff", "af", fits_grad, grad),
    CUDA_ROW(RMSNORM_GRAD_ADD, "long", "aaaff", "af", NULL, norm_grad_long),
    CUDA_ROWS_END,
};

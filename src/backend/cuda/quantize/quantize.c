/* 8-bit operands of matmuls (quantize.cu). */
#include "backend/cuda/cuda_kernels.h"

/* These constants have the same values in quantize.cu. A warp has 16 rows of a tile. */
enum { WARP = 32, COLUMNS = 64, ROWS = 16, WORD = 16 };

static bool is_aligned(int64_t n)
{
    return n % WORD == 0 && n <= INT32_MAX;
}

static bool fits(const struct kernel_call *c)
{
    const struct type *x = &c->in_type[1];
    enum dtype to = c->attr->quantize.to;
    if (c->n_in == 4 && c->in_type[3].dtype != x->dtype) return false;
    return c->in_type[0].dtype == DT_F32 && (x->dtype == DT_F32 || x->dtype == DT_BF16) &&
           c->out_type[1].dtype == to && is_aligned(type_rows(x)) && is_aligned(type_columns(x));
}

/* Tiles have 128 rows, or 64 rows if there would be fewer than four tiles of 128 rows per SM. */
static void launches(const struct kernel_call *c, struct cuda_launches *l)
{
    enum { MANY = 8, FEW = 4 };
    enum op op = l->row->kernel.op;
    int64_t rows = type_rows(&c->in_type[1]), columns = type_columns(&c->in_type[1]);
    int64_t across = ceil_div(columns, COLUMNS);
    bool many = across * ceil_div(rows, MANY * ROWS) >= 4 * l->device->processors;
    int warps = many ? MANY : FEW;
    struct cuda_launch *k = launch_add(l, "quantize.cu", "quantize", across, warps * WARP);
    launch_grid(k, across, ceil_div(rows, warps * ROWS), 1);
    launch_define_type(k, "T_X", c->in_type[1].dtype);
    launch_define(k, "E4M3", c->attr->quantize.to == DT_E4M3);
    launch_define(k, "WARPS", warps);
    launch_define(k, "WHOLE", rows % (warps * ROWS) == 0 && columns % COLUMNS == 0);
    launch_define_word(k, "OF",
                       op == OP_QUANTIZE_GELU        ? "GELU"
                       : op == OP_QUANTIZE_GELU_GRAD ? "GELU_GRAD"
                                                     : "X");
    launch_define(k, "TANH", c->attr->quantize.tanh);
    args_out(k, 0, "amax codes transposed scale");
    args_in(k, 1, "x step");
    arg_in_if(k, c->n_in == 4, "y", 3);
    arg_i32(k, "rows", rows);
    arg_i32(k, "columns", columns);
    arg_i32(k, "first", c->attr->quantize.first);
}

const struct cuda_row quantize_rows[] = {
    CUDA_ROW(QUANTIZE, "tiles", NULL, NULL, fits, launches),
    CUDA_ROW(QUANTIZE_GELU, "tiles", NULL, NULL, fits, launches),
    CUDA_ROW(QUANTIZE_GELU_GRAD, "tiles", NULL, NULL, fits, launches),
    CUDA_ROWS_END,
};

#include "backend/cuda/common/rows.h"
#include "backend/cuda/cuda_kernels.h"

enum { THREADS = 256, EACH = 16 }; /* as in gelu.cu */

/* x -> y [, slope], or dy, x -> dx */
static void launches(const struct kernel_call *c, struct cuda_launches *l)
{
    int64_t n = type_elements(&c->in_type[0]), block = THREADS * EACH;
    bool grad = l->row->kernel.op == OP_GELU_GRAD;
    struct cuda_launch *k = launch_add(l, "gelu.cu", l->row->entry, ceil_div(n, block), THREADS);
    launch_define_type(k, "T_X", c->in_type[0].dtype);
    launch_define(k, "TANH", c->attr->gelu.tanh);
    args_out(k, 0, grad ? "dx" : c->n_out == 2 ? "y slope" : "y");
    args_in(k, 0, grad ? "dy x" : "x");
    arg_i64(k, "n", n);
}

const struct cuda_row gelu_rows[] = {
    CUDA_ROW(GELU, "vector", "aa", "aa", NULL, launches, "gelu"),
    CUDA_ROW(GELU_GRAD, "vector", "aa", "aa", NULL, launches, "gelu_grad"),
    CUDA_ROW(GELU_BOTH, "vector", "aa", "aa", NULL, launches, "gelu_both"),
    CUDA_ROWS_END,
};

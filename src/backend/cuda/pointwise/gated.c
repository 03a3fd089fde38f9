/* SwiGLU of two tensors, or of the halves of one, and its gradient (gated.cu). */
#include "backend/cuda/common/rows.h"
#include "backend/cuda/cuda_kernels.h"

enum { THREADS = 256 }; /* as in gated.cu */

/* Inputs: [dy,] gate [, up]. Outputs: y, or dgate [, dup]. `first` is the index of the gate. */
static void launches(const struct kernel_call *c, struct cuda_launches *l)
{
    int first = l->row->kernel.op == OP_SWIGLU_GRAD;
    const struct type *gate = &c->in_type[first];
    bool packed = c->n_in == first + 1;
    int64_t F = packed ? type_columns(gate) / 2 : type_columns(gate);
    int64_t n = type_rows(gate) * F;
    int each = row_access(gate->dtype, packed ? F : n), times = each < 8 ? 4 : 2;
    int64_t block = (int64_t)THREADS * times * each;
    struct cuda_launch *k = launch_add(l, "gated.cu", l->row->entry, ceil_div(n, block), THREADS);
    launch_define_type(k, "T_X", gate->dtype);
    launch_define(k, "PACKED", packed);
    launch_define(k, "EACH", each);
    if (first)
        args_out(k, 0, packed ? "dgate" : "dgate dup"), arg_in(k, "dy", 0);
    else
        arg_out(k, "y", 0);
    args_in(k, first, packed ? "gate" : "gate up");
    arg_i64(k, "n", n);
    arg_i32(k, "F", F);
}

const struct cuda_row gated_rows[] = {
    CUDA_ROW(SWIGLU, "vector", "aaa", "aa", NULL, launches, "swiglu"),
    CUDA_ROW(SWIGLU_GRAD, "vector", "aaa", "aa", NULL, launches, "swiglu_grad"),
    CUDA_ROWS_END,
};

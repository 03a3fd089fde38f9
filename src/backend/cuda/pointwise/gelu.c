#include "backend/cuda/common/rows.h"
#include "backend/cuda/cuda_kernels.h"

enum { THREADS = 256, EACH = 16 }; /* as in gelu.cu */

static bool fits(const struct kernel_call *c)
{
    return types_are(c, "aa", "aa");
}

static void launches(const struct kernel_call *c, struct cuda_launches *l, const char *entry,
                     const char *outputs, const char *inputs)
{
    int64_t n = type_elements(&c->in_type[0]), block = THREADS * EACH;
    struct cuda_launch *k = launch_add(l, "gelu.cu", entry, ceil_div(n, block), THREADS);
    launch_define_type(k, "T_X", c->in_type[0].dtype);
    launch_define(k, "TANH", c->attr->gelu.tanh);
    args_out(k, 0, outputs);
    args_in(k, 0, inputs);
    arg_i64(k, "n", n);
}

static void gelu(const struct kernel_call *c, struct cuda_launches *l)
{
    launches(c, l, "gelu", "y", "x");
}
static void gelu_grad(const struct kernel_call *c, struct cuda_launches *l)
{
    launches(c, l, "gelu_grad", "dx", "dy x");
}
static void gelu_both(const struct kernel_call *c, struct cuda_launches *l)
{
    launches(c, l, "gelu_both", "y slope", "x");
}

const struct cuda_row gelu_rows[] = {
    CUDA_ROW(GELU, "vector", fits, gelu),
    CUDA_ROW(GELU_GRAD, "vector", fits, gelu_grad),
    CUDA_ROW(GELU_BOTH, "vector", fits, gelu_both),
    CUDA_ROWS_END,
};

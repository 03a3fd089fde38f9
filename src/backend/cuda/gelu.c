#include "backend/cuda/cuda_kernels.h"
#include "backend/cuda/rows.h"

enum { THREADS = 256, EACH = 16 }; /* as kernels/gelu.cu has them */

static bool fits(const struct kernel_call *c)
{
    return types_are(c, "aa", "aa");
}

static void launches(const struct kernel_call *c, struct cuda_launches *l, const char *entry)
{
    int64_t n = type_elements(&c->in_type[0]), block = THREADS * EACH;
    struct cuda_launch *k = launch_add(l, "gelu.cu", entry, (n + block - 1) / block, THREADS);
    launch_define_type(k, "T_X", c->in_type[0].dtype);
    launch_define(k, "TANH", c->attr->gelu.tanh);
    for (int i = 0; i < c->n_out; i++) arg_out(k, i);
    for (int i = 0; i < c->n_in; i++) arg_in(k, i);
    arg_i64(k, n);
}

static void gelu(const struct kernel_call *c, struct cuda_launches *l)
{
    launches(c, l, "gelu");
}
static void gelu_grad(const struct kernel_call *c, struct cuda_launches *l)
{
    launches(c, l, "gelu_grad");
}
static void gelu_both(const struct kernel_call *c, struct cuda_launches *l)
{
    launches(c, l, "gelu_both");
}

const struct cuda_row gelu_rows[] = {
    CUDA_ROW(GELU, "vector", fits, gelu),
    CUDA_ROW(GELU_GRAD, "vector", fits, gelu_grad),
    CUDA_ROW(GELU_BOTH, "vector", fits, gelu_both),
    CUDA_ROWS_END,
};

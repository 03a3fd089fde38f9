/* matmul_fused.h - the reference: matmuls fused with GELU, with the gradient of GELU, or with the
 * sum of the rows of B (the gradient of a bias). Included by ref_f32.c and ref_f64.c. */
#ifndef BACKEND_CPU_REF_MATMUL_FUSED_H
#define BACKEND_CPU_REF_MATMUL_FUSED_H

#include "backend/cpu/ref/matmul.h"
#include "backend/cpu/ref/pointwise.h"
#include "backend/cpu/ref/rows.h"

/* The second output, if there is one, gets the matmul's result before GELU. */
static enum status run_linear_gelu(const struct kernel_call *c)
{
    struct kernel_call matmul = *c;
    union attr attr = {.matmul.tb = c->attr->linear.tb};
    real *y = c->out[0], *x = c->n_out == 2 ? c->out[1] : c->out[0];
    matmul.out[0] = x;
    if (c->n_in == 2) matmul.attr = &attr;
    TRY(c->n_in == 3 ? run_linear(&matmul) : run_matmul(&matmul));
    for (int64_t i = 0; i < type_elements(&c->out_type[0]); i++)
        y[i] = (real)gelu((double)x[i], c->attr->linear.tanh);
    return ST_OK;
}

static enum status run_matmul_gelu_grad(const struct kernel_call *c)
{
    const real *x = c->in[2];
    real *out = c->out[0];
    TRY(run_matmul(c));
    for (int64_t i = 0; i < type_elements(&c->out_type[0]); i++)
        out[i] = (real)((double)out[i] * gelu_derivative((double)x[i], c->attr->matmul.tanh));
    return ST_OK;
}

static enum status run_matmul_sum(const struct kernel_call *c)
{
    struct kernel_call sum = *c;
    sum.in[0] = c->in[1], sum.in_type[0] = c->in_type[1];
    sum.out[0] = c->out[1], sum.out_type[0] = c->out_type[1];
    TRY(run_matmul(c));
    return run_sum_leading(&sum);
}

const struct kernel REF(ref_matmul_fused)[] = {
    ROW(LINEAR_GELU, run_linear_gelu),
    ROW(MATMUL_GELU_GRAD, run_matmul_gelu_grad),
    ROW(MATMUL_SUM, run_matmul_sum),
    {.run = NULL},
};

#endif

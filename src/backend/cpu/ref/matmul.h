/* matmul.h - the reference: matmul with and without bias. Included by ref_f32.c and ref_f64.c. */
#ifndef BACKEND_CPU_REF_MATMUL_H
#define BACKEND_CPU_REF_MATMUL_H

#include "backend/cpu/ref/ref.h"

/* One matmul: element (m,k) of A is a[m*am + k*ak], so a transpose is expressed by strides. */
struct strided_matmul {
    const real *a, *b, *bias; /* bias (N) or NULL */
    real *out;                /* (M,N) */
    int64_t M, N, K, am, ak, bk, bn;
};

/* Computes `width` elements of row m, from column n on; each sum is in the order of k. */
static inline void multiply_columns(const struct strided_matmul *p, int64_t m, int64_t n,
                                    int64_t width)
{
    enum { MOST = 8 };
    double sum[MOST] = {0};
    for (int64_t i = 0; i < width && p->bias; i++) sum[i] = (double)p->bias[n + i];
    for (int64_t k = 0; k < p->K; k++) {
        double a = (double)p->a[m * p->am + k * p->ak];
        const real *b = p->b + k * p->bk + n * p->bn;
#pragma GCC unroll 8
        for (int64_t i = 0; i < width; i++) sum[i] += a * (double)b[i * p->bn];
    }
    for (int64_t i = 0; i < width; i++) p->out[m * p->N + n + i] = (real)sum[i];
}

/* Computes eight sums at a time, because the additions to one sum wait for each other. */
static void multiply(const struct strided_matmul *p)
{
    for (int64_t m = 0; m < p->M; m++) {
        int64_t n = 0;
        for (; n + 8 <= p->N; n += 8) multiply_columns(p, m, n, 8);
        for (; n < p->N; n++) multiply_columns(p, m, n, 1);
    }
}

/* a (...,M,K) or with ta (...,K,M), b (...,K,N) or with tb (...,N,K) -> (...,M,N). If b has rank 2,
 * all matrices of a are multiplied by this b. */
static enum status run_matmul(const struct kernel_call *c)
{
    const struct type *at = &c->in_type[0], *bt = &c->in_type[1], *ot = &c->out_type[0];
    bool ta = c->attr->matmul.ta, tb = c->attr->matmul.tb;
    int64_t a_columns = type_columns(at), b_columns = type_columns(bt);
    struct strided_matmul p = {.am = ta ? 1 : a_columns, .ak = ta ? a_columns : 1};
    p.bk = tb ? 1 : b_columns, p.bn = tb ? b_columns : 1;
    p.M = ot->dim[ot->rank - 2], p.N = type_columns(ot);
    p.K = at->dim[ta ? at->rank - 2 : at->rank - 1];
    int64_t b_step = bt->rank == 2 ? 0 : p.K * p.N;
    for (int64_t i = 0; i < type_elements(ot) / (p.M * p.N); i++) {
        p.a = (const real *)c->in[0] + i * p.M * p.K;
        p.b = (const real *)c->in[1] + i * b_step;
        p.out = (real *)c->out[0] + i * p.M * p.N;
        multiply(&p);
    }
    return ST_OK;
}

/* x (...,K), w (K,N) or with tb (N,K), bias (N) -> (...,N) */
static enum status run_linear(const struct kernel_call *c)
{
    bool tb = c->attr->linear.tb;
    int64_t K = type_columns(&c->in_type[0]), N = type_columns(&c->out_type[0]);
    struct strided_matmul p = {.a = c->in[0], .b = c->in[1], .bias = c->in[2], .out = c->out[0]};
    p.M = type_rows(&c->in_type[0]), p.N = N, p.K = K;
    p.am = K, p.ak = 1, p.bk = tb ? 1 : N, p.bn = tb ? K : 1;
    multiply(&p);
    return ST_OK;
}

const struct kernel REF(ref_matmul)[] = {
    ROW(MATMUL, run_matmul),
    ROW(LINEAR, run_linear),
    {.run = NULL},
};

#endif

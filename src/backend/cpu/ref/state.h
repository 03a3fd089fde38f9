/* state.h - the reference: operators that write state in place. Included by ref_f32.c and
 * ref_f64.c. */
#ifndef BACKEND_CPU_REF_STATE_H
#define BACKEND_CPU_REF_STATE_H

#include "backend/cpu/ref/cast.h"
#include "backend/cpu/ref/ref.h"

static enum status run_store(const struct kernel_call *c)
{
    memmove(c->out[0], c->in[1], (size_t)type_bytes(&c->out_type[0]));
    return ST_OK;
}

static enum status run_accumulate(const struct kernel_call *c)
{
    real *sum = c->out[0];
    const real *x = c->in[1];
    for (int64_t i = 0; i < type_elements(&c->out_type[0]); i++)
        sum[i] = (real)((double)sum[i] + (double)x[i]);
    return ST_OK;
}

/* Updates w, m, v in place. `in`: the gradient g, then lr, bias1 = 1 - beta1^t, bias2 = 1 -
 * beta2^t and clip, (1) each. */
static void adamw(const struct kernel_call *c, void *const *in)
{
    real *w = c->out[0], *m = c->out[1], *v = c->out[2];
    const real *g = in[0];
    double lr = (double)*(const real *)in[1], clip = (double)*(const real *)in[4];
    double bias1 = (double)*(const real *)in[2], bias2 = (double)*(const real *)in[3];
    double beta1 = c->attr->adamw.beta1, beta2 = c->attr->adamw.beta2;
    for (int64_t i = 0; i < type_elements(&c->out_type[0]); i++) {
        double gi = (double)g[i] * clip, wi = (double)w[i];
        if (i < c->attr->adamw.decay_elements) wi *= 1 - lr * c->attr->adamw.weight_decay;
        double mi = beta1 * (double)m[i] + (1 - beta1) * gi;
        double vi = beta2 * (double)v[i] + (1 - beta2) * gi * gi;
        wi -= lr / bias1 * mi / (sqrt(vi) / sqrt(bias2) + c->attr->adamw.eps);
        w[i] = (real)wi;
        m[i] = (real)mi;
        v[i] = (real)vi;
    }
}

static enum status run_adamw(const struct kernel_call *c)
{
    adamw(c, c->in + 3);
    return ST_OK;
}

/* The copy is the last output. */
static bool fits_copy(const struct kernel_call *c)
{
    for (int i = 0; i < c->n_in; i++)
        if (c->in_type[i].dtype != (i == c->n_out - 1 ? DT_BF16 : REAL_DTYPE)) return false;
    return true;
}

/* The new weights in bf16. */
static void write_copy(const struct kernel_call *c)
{
    const real *w = c->out[0];
    uint16_t *copy = c->out[c->n_out - 1];
    for (int64_t i = 0; i < type_elements(&c->out_type[0]); i++) copy[i] = bf16_store((double)w[i]);
}

/* w, m, v, copy; g and the scalars. */
static enum status run_adamw_copy(const struct kernel_call *c)
{
    adamw(c, c->in + 4);
    write_copy(c);
    return ST_OK;
}

/* w, v in place; g of the same type; lr, clip (1) */
static void sgdm(const struct kernel_call *c, void *const *in)
{
    real *w = c->out[0], *v = c->out[1];
    const real *g = in[0];
    double lr = (double)*(const real *)in[1], clip = (double)*(const real *)in[2];
    for (int64_t i = 0; i < type_elements(&c->out_type[0]); i++) {
        double gi = (double)g[i] * clip, wi = (double)w[i];
        if (i < c->attr->sgd.decay_elements) gi += c->attr->sgd.weight_decay * wi;
        double vi = c->attr->sgd.momentum * (double)v[i] + gi;
        w[i] = (real)(wi - lr * vi);
        v[i] = (real)vi;
    }
}

static enum status run_sgdm(const struct kernel_call *c)
{
    sgdm(c, c->in + 2);
    return ST_OK;
}

/* w, v, copy; g and the scalars. */
static enum status run_sgdm_copy(const struct kernel_call *c)
{
    sgdm(c, c->in + 3);
    write_copy(c);
    return ST_OK;
}

const struct kernel REF(ref_state)[] = {
    {.op = OP_STORE, .variant = "ref", .fits = fits_real, .run = run_store},
    {.op = OP_ACCUMULATE, .variant = "ref", .fits = fits_real, .run = run_accumulate},
    {.op = OP_ADAMW, .variant = "ref", .fits = fits_real, .run = run_adamw},
    {.op = OP_ADAMW_COPY, .variant = "ref", .fits = fits_copy, .run = run_adamw_copy},
    {.op = OP_SGDM, .variant = "ref", .fits = fits_real, .run = run_sgdm},
    {.op = OP_SGDM_COPY, .variant = "ref", .fits = fits_copy, .run = run_sgdm_copy},
    {.run = NULL},
};

#endif

/* state.h - the reference: operators that update state in place, for ref_f32.c and ref_f64.c. */
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

/* If the call has an output number `states`, writes the new weights to this output as bf16. */
static void write_copy(const struct kernel_call *c, int states)
{
    const real *w = c->out[0];
    uint16_t *copy = c->out[states];
    for (int64_t i = 0; c->n_out > states && i < type_elements(&c->out_type[0]); i++)
        copy[i] = bf16_store((double)w[i]);
}

/* Updates w, m, v [, copy] in place. The inputs after these are the gradient g, of the shape of w,
 * and lr, bias1 = 1 - beta1^t, bias2 = 1 - beta2^t and clip, each of shape (1). */
static enum status run_adamw(const struct kernel_call *c)
{
    void *const *in = c->in + c->n_out;
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
    write_copy(c, 3);
    return ST_OK;
}

/* Updates w, v [, copy] in place. The inputs after these are the gradient g, of the shape of w, and
 * lr and clip, each of shape (1). */
static enum status run_sgdm(const struct kernel_call *c)
{
    void *const *in = c->in + c->n_out;
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
    write_copy(c, 2);
    return ST_OK;
}

const struct kernel REF(ref_state)[] = {
    ROW(STORE, run_store), ROW(ACCUMULATE, run_accumulate),
    ROW(ADAMW, run_adamw), ROW_TYPES(ADAMW_COPY, "aaabaaaaa", "aaab", run_adamw),
    ROW(SGDM, run_sgdm),   ROW_TYPES(SGDM_COPY, "aabaaa", "aab", run_sgdm),
    {.run = NULL},
};

#endif

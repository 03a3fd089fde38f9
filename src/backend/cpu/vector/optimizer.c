/* AdamW over the whole range of parameters. It is bound by memory: 16 bytes read and 12 written for
 * each parameter, 15 operations. */
#include "backend/cpu/vector/common.h"

struct update {
    float clip, shrink, beta1, rest1, beta2, rest2, step, inverse_root, eps;
};

INLINE struct update update_of(const struct kernel_call *c)
{
    const float lr = *(const float *)c->in[4], bias1 = *(const float *)c->in[5];
    const float bias2 = *(const float *)c->in[6];
    return (struct update){
        .clip = *(const float *)c->in[7],
        .shrink = 1.0f - lr * (float)c->attr->adamw.weight_decay,
        .beta1 = (float)c->attr->adamw.beta1,
        .rest1 = (float)(1.0 - c->attr->adamw.beta1), /* in fp32 0.999 would spoil it */
        .beta2 = (float)c->attr->adamw.beta2,
        .rest2 = (float)(1.0 - c->attr->adamw.beta2),
        .step = lr / bias1,
        .inverse_root = 1.0f / sqrtf(bias2),
        .eps = (float)c->attr->adamw.eps,
    };
}

INLINE void adamw_run(const struct kernel_call *c, int64_t first, int64_t last, struct update u)
{
    float *w = c->in[0], *m = c->in[1], *v = c->in[2];
    const float *gradient = c->in[3];
    for (int64_t i = first; i < last; i += W) {
        int64_t left = last - i;
        vf g = take(gradient + i, left) * u.clip;
        vf m1 = u.beta1 * take(m + i, left) + u.rest1 * g;
        vf v1 = u.beta2 * take(v + i, left) + u.rest2 * (g * g);
        vf below = vf_sqrt(v1) * u.inverse_root + u.eps;
        put(m + i, m1, left);
        put(v + i, v1, left);
        put(w + i, take(w + i, left) * u.shrink - u.step * (m1 / below), left);
    }
}

static void adamw_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    struct update u = update_of(c);
    int64_t decayed = at_most(c->attr->adamw.decay_elements, last);
    if (first < decayed) adamw_run(c, first, decayed, u);
    u.shrink = 1.0f;
    adamw_run(c, first < decayed ? decayed : first, last, u);
}

static enum status run_adamw(const struct kernel_call *c)
{
    parallel_ranges(c, type_elements(&c->in_type[0]), 1024, 4, adamw_range);
    return ST_OK;
}

const struct kernel VEC(optimizer_rows)[] = {
    {.op = OP_ADAMW, .variant = ISA_NAME, .fits = VEC(all_f32), .run = run_adamw},
    {0},
};

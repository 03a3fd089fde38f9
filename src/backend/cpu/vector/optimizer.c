/* The kernels of the optimizer, on whole fp32 ranges; all are memory-bound. For each parameter,
 * AdamW reads 16 bytes, writes 12 (14 with the bf16 copy) and does 15 operations. */
#include "backend/cpu/vector/bf16.h"
#include "backend/cpu/vector/common.h"

struct update {
    float clip, decay, beta1, rest1, beta2, rest2, step, inverse_root, eps;
};

/* `in` points to the inputs from the gradient on: the gradient, the learning rate, bias1, bias2 and
 * clip. */
INLINE struct update update_of(const struct kernel_call *c, void *const *in)
{
    const float lr = *(const float *)in[1], bias1 = *(const float *)in[2];
    const float bias2 = *(const float *)in[3];
    return (struct update){
        .clip = *(const float *)in[4],
        .decay = 1.0f - lr * (float)c->attr->adamw.weight_decay,
        .beta1 = (float)c->attr->adamw.beta1,
        .rest1 = (float)(1.0 - c->attr->adamw.beta1), /* in double, because 0.999f is rounded */
        .beta2 = (float)c->attr->adamw.beta2,
        .rest2 = (float)(1.0 - c->attr->adamw.beta2),
        .step = lr / bias1,
        .inverse_root = 1.0f / sqrtf(bias2),
        .eps = (float)c->attr->adamw.eps,
    };
}

/* `copy` may be NULL. */
INLINE void adamw_run(const struct kernel_call *c, const float *gradient, uint16_t *copy,
                      int64_t first, int64_t last, struct update u)
{
    float *w = c->in[0], *m = c->in[1], *v = c->in[2];
    for (int64_t i = first; i < last; i += W) {
        int64_t left = last - i;
        vf g = load(gradient + i, left) * u.clip;
        vf m1 = u.beta1 * load(m + i, left) + u.rest1 * g;
        vf v1 = u.beta2 * load(v + i, left) + u.rest2 * (g * g);
        vf denominator = vf_sqrt(v1) * u.inverse_root + u.eps;
        vf w1 = load(w + i, left) * u.decay - u.step * (m1 / denominator);
        store(m + i, m1, left);
        store(v + i, v1, left);
        store(w + i, w1, left);
        if (copy) store_bf16(copy + i, w1, left);
    }
}

/* Only the first decay_elements elements have weight decay. */
INLINE void adamw_of(const struct kernel_call *c, int64_t first, int64_t last, bool has_copy)
{
    void *const *in = c->in + (has_copy ? 4 : 3);
    uint16_t *copy = has_copy ? c->in[3] : NULL;
    struct update u = update_of(c, in);
    int64_t decayed = min_i64(c->attr->adamw.decay_elements, last);
    if (first < decayed) adamw_run(c, in[0], copy, first, decayed, u);
    u.decay = 1.0f;
    adamw_run(c, in[0], copy, first < decayed ? decayed : first, last, u);
}

static void adamw_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    if (c->n_out == 4)
        adamw_of(c, first, last, true);
    else
        adamw_of(c, first, last, false);
}

static enum status run_adamw(const struct kernel_call *c)
{
    parallel_ranges(c, type_elements(&c->in_type[0]), 1024, 4, adamw_range);
    return ST_OK;
}

/* --- SGD with momentum --- */

struct momentum_update {
    float clip, lr, momentum, decay;
};

/* `copy` may be NULL. */
INLINE void sgdm_run(const struct kernel_call *c, const float *gradient, uint16_t *copy,
                     int64_t first, int64_t last, struct momentum_update u)
{
    float *w = c->in[0], *v = c->in[1];
    for (int64_t i = first; i < last; i += W) {
        int64_t left = last - i;
        vf w1 = load(w + i, left);
        vf g = load(gradient + i, left) * u.clip + u.decay * w1;
        vf v1 = u.momentum * load(v + i, left) + g;
        w1 -= u.lr * v1;
        store(v + i, v1, left);
        store(w + i, w1, left);
        if (copy) store_bf16(copy + i, w1, left);
    }
}

/* Only the first decay_elements elements have weight decay. The inputs are the weights, the
 * momentum, the bf16 copy if there is one, the gradient, lr and clip. */
INLINE void sgdm_of(const struct kernel_call *c, int64_t first, int64_t last, bool has_copy)
{
    void *const *in = c->in + (has_copy ? 3 : 2);
    uint16_t *copy = has_copy ? c->in[2] : NULL;
    struct momentum_update u = {.clip = *(const float *)in[2],
                                .lr = *(const float *)in[1],
                                .momentum = (float)c->attr->sgd.momentum,
                                .decay = (float)c->attr->sgd.weight_decay};
    int64_t decayed = min_i64(c->attr->sgd.decay_elements, last);
    if (first < decayed) sgdm_run(c, in[0], copy, first, decayed, u);
    u.decay = 0;
    sgdm_run(c, in[0], copy, first < decayed ? decayed : first, last, u);
}

static void sgdm_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    if (c->n_out == 3)
        sgdm_of(c, first, last, true);
    else
        sgdm_of(c, first, last, false);
}

static enum status run_sgdm(const struct kernel_call *c)
{
    parallel_ranges(c, type_elements(&c->in_type[0]), 1024, 2, sgdm_range);
    return ST_OK;
}

/* --- the sum of squares: runs of up to RUN numbers in fp32 lanes; their sums add up in fp64 --- */

enum { RUN = 4096 };

INLINE float squares_run(const float *x, int64_t n)
{
    vf sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 * W <= n; i += 4 * W)
        for (int k = 0; k < 4; k++) {
            vf a = vf_load(x + i + k * W);
            sum[k] += a * a;
        }
    for (; i < n; i += W) {
        vf a = load(x + i, n - i);
        sum[0] += a * a;
    }
    return vf_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

static int64_t sum_squares_scratch(const struct kernel *, const struct kernel_call *c)
{
    return part_count(type_elements(&c->in_type[0]), RUN) * (int64_t)sizeof(double);
}

static void sum_squares_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    int64_t n = type_elements(&c->in_type[0]), parts = part_count(n, RUN);
    for (int64_t k = first; k < last; k++) {
        double sum = 0;
        int64_t end = part_begin(n, parts, k + 1);
        for (int64_t i = part_begin(n, parts, k); i < end; i += RUN)
            sum += (double)squares_run((const float *)c->in[0] + i, min_i64(RUN, end - i));
        ((double *)c->scratch)[k] = sum;
    }
}

static enum status run_sum_squares(const struct kernel_call *c)
{
    int64_t n = type_elements(&c->in_type[0]), parts = part_count(n, RUN);
    parallel_ranges(c, parts, 1, n / parts, sum_squares_range);
    double sum = 0;
    for (int64_t k = 0; k < parts; k++) sum += ((const double *)c->scratch)[k];
    *(float *)c->out[0] = (float)sum;
    return ST_OK;
}

/* --- gradient accumulation --- */

static void accumulate_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    float *sum = c->in[0];
    const float *x = c->in[1];
    for (int64_t i = first; i < last; i += W)
        store(sum + i, load(sum + i, last - i) + load(x + i, last - i), last - i);
}

static enum status run_accumulate(const struct kernel_call *c)
{
    parallel_ranges(c, type_elements(&c->in_type[0]), 1024, 1, accumulate_range);
    return ST_OK;
}

const struct kernel VEC(optimizer_rows)[] = {
    ROW(ADAMW, "ffffffff", "fff", run_adamw),
    ROW(ADAMW_COPY, "fffbfffff", "fffb", run_adamw),
    ROW(SGDM, "fffff", "ff", run_sgdm),
    ROW(SGDM_COPY, "ffbfff", "ffb", run_sgdm),
    ROW(SUM_SQUARES, "f", "f", run_sum_squares, .scratch_bytes = sum_squares_scratch),
    ROW(ACCUMULATE, "ff", "f", run_accumulate),
    {0},
};

/* gelu(x) = x P(x), where P is the normal distribution function or, with the tanh approximation, the
 * logistic function of 2u, u = sqrt(2/pi) (x + 0.044715 x^3); tanh u = 2 P - 1.
 *
 * P(x) for negative x is e^(-x^2/2) times a slow function of x, the same for x and -x, and the
 * gradient needs the same exponential: P'(x) = e^(-x^2/2) / sqrt(2 pi). So one exponential and a
 * polynomial do both, in less than half the time of libmvec's erf, and small P keep their digits. */
#include "backend/cpu/vector/act.h"

struct point {
    vf p, slope; /* P and P' */
};

INLINE struct point normal(vf x)
{
    vf z = vf_min(vf_all(20.0f), vf_abs(x)); /* beyond that P is 0 or 1 to the last bit */
    vf bell = vf_exp(-0.5f * z * z);
    vf t = vf_reciprocal(0.31f * z + 1.0f);
    /* P(-z) / bell; the polynomial meets it at the zeros of a Chebyshev polynomial, within 2e-7. */
    vf q = ((((((0.0357725981f * t - 0.141343887f) * t + 0.154661803f) * t - 0.0145614533f) * t +
              0.109938557f) *
                 t +
             0.107823866f) *
                t +
            0.124050934f) *
               t +
           0.123657654f;
    vf tail = q * t * bell;
    return (struct point){vf_select(x < 0.0f, tail, 1.0f - tail), 0.398942280f * bell};
}

INLINE struct point logistic(vf x)
{
    x = vf_min(vf_all(30.0f), vf_max(vf_all(-30.0f), x)); /* beyond that P is 0 or 1 */
    vf square = x * x;
    vf twice_u = x * (0.0713548163f * square + 1.59576912f);
    /* Its smallest is 1e-35, which ends at x = -10.05, so that its inverse stays finite. */
    vf p = vf_reciprocal(1.0f + vf_exp(vf_min(vf_all(80.0f), -twice_u)));
    return (struct point){p, p * (1.0f - p) * (0.214064449f * square + 1.59576912f)};
}

INLINE struct point point_of(vf x, bool tanh)
{
    return tanh ? logistic(x) : normal(x);
}

INLINE void gelu(const struct kernel_call *c, int64_t first, int64_t last, bool tanh)
{
    const act *x = c->in[0];
    act *y = c->out[0];
    for (int64_t i = first; i < last; i += W) {
        vf a = take_act(x + i, last - i);
        put_act(y + i, a * point_of(a, tanh).p, last - i);
    }
}

INLINE void gelu_both(const struct kernel_call *c, int64_t first, int64_t last, bool tanh)
{
    const act *x = c->in[0];
    act *y = c->out[0], *slope = c->out[1];
    for (int64_t i = first; i < last; i += W) {
        vf a = take_act(x + i, last - i);
        struct point at = point_of(a, tanh);
        put_act(y + i, a * at.p, last - i);
        put_act(slope + i, at.p + a * at.slope, last - i);
    }
}

INLINE void gelu_grad(const struct kernel_call *c, int64_t first, int64_t last, bool tanh)
{
    const act *dy = c->in[0], *x = c->in[1];
    act *dx = c->out[0];
    for (int64_t i = first; i < last; i += W) {
        vf a = take_act(x + i, last - i);
        struct point at = point_of(a, tanh);
        put_act(dx + i, take_act(dy + i, last - i) * (at.p + a * at.slope), last - i);
    }
}

/* Each with both kinds of P. */
#define RANGES(name)                                                                        \
    static void name##_erf_range(const struct kernel_call *c, int64_t first, int64_t last)  \
    {                                                                                       \
        name(c, first, last, false);                                                        \
    }                                                                                       \
    static void name##_tanh_range(const struct kernel_call *c, int64_t first, int64_t last) \
    {                                                                                       \
        name(c, first, last, true);                                                         \
    }                                                                                       \
    static enum status run_##name(const struct kernel_call *c)                              \
    {                                                                                       \
        range_fn fn = c->attr->gelu.tanh ? name##_tanh_range : name##_erf_range;            \
        parallel_ranges(c, type_elements(&c->in_type[0]), 256, 4, fn);                      \
        return ST_OK;                                                                       \
    }
RANGES(gelu)
RANGES(gelu_both)
RANGES(gelu_grad)

static bool fits(const struct kernel_call *c)
{
    return VEC(types_are)(c, ACT_DTYPE, "aa", "aa");
}

const struct kernel ACT(gelu_rows)[] = {
    {.op = OP_GELU, .variant = ISA_NAME, .fits = fits, .run = run_gelu},
    {.op = OP_GELU_BOTH, .variant = ISA_NAME, .fits = fits, .run = run_gelu_both},
    {.op = OP_GELU_GRAD, .variant = ISA_NAME, .fits = fits, .run = run_gelu_grad},
    {0},
};

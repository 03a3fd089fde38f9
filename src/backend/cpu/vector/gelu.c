/* gelu(x) = x P(x), where P is the normal distribution function or, with the tanh approximation,
 * the logistic function of 2u, u = sqrt(2/pi) (x + 0.044715 x^3); tanh u = 2 P - 1.
 *
 * For negative x, P(x) is e^(-x^2/2) times a slowly varying function of |x|, and the gradient needs
 * the same exponential: P'(x) = e^(-x^2/2) / sqrt(2 pi). So one exponential and a polynomial give
 * both, in less than half the time of libmvec's erf, and small values of P are accurate. */
#include "backend/cpu/vector/act.h"
#include "backend/cpu/vector/block.h"

struct point {
    vf y, slope; /* gelu(x), gelu'(x) */
};

/* The polynomials are minimax (Remez), of the lowest degree whose relative error is at most 2e-7
 * for fp32 and 1e-4 for bf16. */
#if ACT_IS_BF16
#define BY_TYPE(fp32, bf16) (bf16)
#else
#define BY_TYPE(fp32, bf16) (fp32)
#endif

/* 2^u for u from -252 to 126. */
INLINE vf power(vf u)
{
    const float to_integer = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    vf n = (u + to_integer) - to_integer, r = u - n;
    vf p = BY_TYPE(
        ((((1.32764715e-3f * r + 9.67554137e-3f) * r + 5.55071328e-2f) * r + 0.240221197f) * r +
         0.693146967f) *
                r +
            1.00000007f,
        ((5.51716675e-2f * r + 0.242611122f) * r + 0.693260986f) * r + 0.999928074f);
    return vf_scale2(p, n);
}

INLINE vf inverse(vf a)
{
    return BY_TYPE(vf_reciprocal(a), vf_reciprocal_4(a));
}

INLINE struct point gelu_normal(vf x)
{
    vf z = vf_min(vf_all(18.0f), vf_abs(x)); /* for |x| > 18, P is exactly 0 or 1 in floats */
    vf bell = power(-0.721347520f * z * z);
    /* q = P(-z) / bell is t times a polynomial of t. */
    vf t = inverse(BY_TYPE(0.31f, 0.38f) * z + 1.0f);
    vf q = BY_TYPE(
        ((((((0.0357725981f * t - 0.141343887f) * t + 0.154661803f) * t - 0.0145614533f) * t +
           0.109938557f) *
              t +
          0.107823866f) *
             t +
         0.124050934f) *
                t +
            0.123657654f,
        (((-0.0899283276f * t + 0.18887642f) * t + 0.0919797830f) * t + 0.157829459f) * t +
            0.151225138f);
    q *= t;
    /* y = x P(-z) for negative x and x - x P(-z) otherwise; the slopes at x and -x add up to 1. */
    vf left = bell * (q - 0.398942280f * z);
    return (struct point){vf_max((vf){0}, x) - z * (q * bell), vf_by_sign(x, left, 1.0f - left)};
}

INLINE struct point gelu_logistic(vf x)
{
    /* For |x| > 11, P rounds to 0 or 1. y is limited to -11, too, because the product of a huge
     * negative y and a P that is tiny, but not 0, is not near 0. */
    vf y = vf_max(vf_all(-11.0f), x);
    x = vf_min(vf_all(11.0f), y);
    vf square = x * x;
    /* e^-2u, limited to 2^115, whose inverse is still a normal number. */
    vf e = power(vf_min(vf_all(115.0f), x * (-0.102943240f * square - 2.30220820f)));
    vf p = inverse(1.0f + e);
    vf slope = p * (1.0f - p) * (0.214064449f * square + 1.59576912f);
    return (struct point){y * p, p + x * slope};
}

INLINE struct point point_of(vf x, bool tanh)
{
    return tanh ? gelu_logistic(x) : gelu_normal(x);
}

INLINE void gelu(const act *x, act *y, int64_t n, bool tanh)
{
    for (int64_t i = 0; i < n; i += W) {
        store_act(y + i, point_of(load_act(x + i, n - i), tanh).y, n - i);
    }
}

INLINE void gelu_and_derivative(const act *x, act *y, act *slope, int64_t n, bool tanh)
{
    for (int64_t i = 0; i < n; i += W) {
        struct point at = point_of(load_act(x + i, n - i), tanh);
        store_act(y + i, at.y, n - i);
        store_act(slope + i, at.slope, n - i);
    }
}

INLINE void gelu_grad(const act *dy, const act *x, act *dx, int64_t n, bool tanh)
{
    for (int64_t i = 0; i < n; i += W) {
        vf slope = point_of(load_act(x + i, n - i), tanh).slope;
        store_act(dx + i, load_act(dy + i, n - i) * slope, n - i);
    }
}

static void gelu_block(const struct block *b)
{
    if (b->attr->gelu.tanh)
        gelu(b->a, b->y, b->n, true);
    else
        gelu(b->a, b->y, b->n, false);
}

static void gelu_grad_block(const struct block *b)
{
    if (b->attr->gelu.tanh)
        gelu_grad(b->a, b->b, b->y, b->n, true);
    else
        gelu_grad(b->a, b->b, b->y, b->n, false);
}

static void gelu_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    const act *x = c->in[0];
    act *y = c->out[0];
    gelu_block(&(struct block){.attr = c->attr, .a = x + first, .y = y + first, .n = last - first});
}

static void gelu_grad_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    const act *dy = c->in[0], *x = c->in[1];
    act *dx = c->out[0];
    gelu_grad_block(&(struct block){
        .attr = c->attr, .a = dy + first, .b = x + first, .y = dx + first, .n = last - first});
}

static void gelu_and_derivative_range(const struct kernel_call *c, int64_t first, int64_t last)
{
    const act *x = (const act *)c->in[0] + first;
    act *y = (act *)c->out[0] + first, *slope = (act *)c->out[1] + first;
    if (c->attr->gelu.tanh)
        gelu_and_derivative(x, y, slope, last - first, true);
    else
        gelu_and_derivative(x, y, slope, last - first, false);
}

#define RUN(name)                                                                \
    static enum status run_##name(const struct kernel_call *c)                   \
    {                                                                            \
        parallel_ranges(c, type_elements(&c->in_type[0]), 256, 4, name##_range); \
        return ST_OK;                                                            \
    }
RUN(gelu)
RUN(gelu_and_derivative)
RUN(gelu_grad)

const block_fn ACT(gelu_blocks)[OP_COUNT] = {
    [OP_GELU] = gelu_block,
    [OP_GELU_GRAD] = gelu_grad_block,
};

const struct kernel ACT(gelu_rows)[] = {
    ROW(GELU, "aa", "aa", run_gelu),
    ROW(GELU_BOTH, "aa", "aa", run_gelu_and_derivative),
    ROW(GELU_GRAD, "aa", "aa", run_gelu_grad),
    {0},
};

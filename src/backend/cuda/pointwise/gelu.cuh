/* gelu.cuh - GELU and its slope at a point, as exact as a result of type T can show.
 *
 * gelu(x) = x P(x), where P is the normal distribution function or, with the tanh approximation, the logistic function
 * of 2u, u = sqrt(2/pi) (x + 0.044715 x^3); tanh u = 2 P - 1. P(-z) is e^(-z^2/2) times a slow function of z, and the
 * slope needs the same exponential: P' = e^(-x^2/2) / sqrt(2 pi). So one exponential, one inverse and a polynomial do both. */
#pragma once
#include "rows.cuh"

struct point {
    float y, slope; /* gelu(x), gelu'(x) */
};

/* The polynomials are the best of their degrees, and their degrees the least whose error is lost in the rounding of a
 * result: 2e-7 in float, 1e-4 in bf16. */
template <typename T> DEVICE float tail_of(float z) /* P(-z) / e^(-z^2/2) */
{
    if constexpr (sizeof(T) == 2) {
        float t = inverse_of(0.38f * z + 1.0f);
        return ((((-0.0899283276f * t + 0.18887642f) * t + 0.0919797830f) * t + 0.157829459f) * t +
                0.151225138f) * t;
    } else {
        float t = inverse_of(0.31f * z + 1.0f);
        float q = ((0.0357725981f * t - 0.141343887f) * t + 0.154661803f) * t - 0.0145614533f;
        q = ((q * t + 0.109938557f) * t + 0.107823866f) * t + 0.124050934f;
        return (q * t + 0.123657654f) * t;
    }
}

template <typename T> DEVICE point normal(float x)
{
    float z = fabsf(x);
    z = z > 18.0f ? 18.0f : z; /* beyond that P is 0 or 1 to the last bit; a NaN stays one */
    float bell = ex2_approx(-0.721347520f * z * z), q = tail_of<T>(z);
    /* y = x P(-z) for negative x, x - x P(-z) for others, and the slopes add to 1. */
    float left = bell * (q - 0.398942280f * z);
    point r = {fmaxf(x, 0.0f) - z * (q * bell), x < 0.0f ? left : 1.0f - left};
    return r;
}

DEVICE point logistic(float x)
{
    float square = x * x;
    float p = inverse_of(1.0f + ex2_approx(x * (-0.102943240f * square - 2.30220820f))); /* e^-2u */
    /* Beyond 11 the slope is 0 or 1, and x^2 could be infinite. */
    float bent = fminf(fmaxf(x, -11.0f), 11.0f);
    float steep = bent * (0.214064449f * (bent * bent) + 1.59576912f);
    point r = {x * p, p + (p - p * p) * steep};
    return r;
}

template <typename T, bool APPROXIMATE> DEVICE point gelu_point(float x)
{
    return APPROXIMATE ? logistic(x) : normal<T>(x);
}

/* Either again where each instruction counts, for results in bf16: P = (1 + tanh u)/2 by the hardware's tanh, which may be 2^-11
 * of it off and is 8e-6 off on an H200; gelu takes 6 instructions, a gradient 11, and 8 and 13 in the exact form. There
 * u = x (c0 + c1 x^2 + c2 x^4) with the three numbers for which gelu and its slope are together least off: by 3.7e-5 and 9.3e-5,
 * with that tanh 3.8e-5 and 9.6e-5. x^2 stops before u turns round, where P is 0 or 1. */
template <bool APPROXIMATE> DEVICE float brief_u(float x, float square)
{
    return x * (APPROXIMATE ? 0.0356774081f * square + 0.797884561f
                            : (-0.000347558141f * square + 0.0370038849f) * square + 0.797422815f);
}
template <bool APPROXIMATE> DEVICE float brief_gelu(float x)
{
    float square = APPROXIMATE ? x * x : fminf(x * x, 40.0f);
    float t = tanh_approx(brief_u<APPROXIMATE>(x, square)), half = 0.5f * x;
    return half * t + half;
}
/* dy gelu'(x) */
template <bool APPROXIMATE> DEVICE float brief_grad(float dy, float x)
{
    float square = fminf(x * x, APPROXIMATE ? 1000.0f : 40.0f), half = 0.5f * dy;
    float t = tanh_approx(brief_u<APPROXIMATE>(x, square));
    float of_u = APPROXIMATE ? 0.107032224f * square + 0.797884561f
                             : (-0.00173779070f * square + 0.111011655f) * square + 0.797422815f;
    return half * (x * ((1.0f - t * t) * of_u) + t) + half;
}

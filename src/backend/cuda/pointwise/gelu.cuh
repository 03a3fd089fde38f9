/* gelu.cuh - GELU and its slope at a point, accurate enough for a result of type T.
 *
 * gelu(x) = x P(x), where P is the normal distribution function or, in the tanh approximation, the
 * logistic function of 2u, u = sqrt(2/pi) (x + 0.044715 x^3); tanh u = 2 P - 1. P(-z) is e^(-z^2/2)
 * times a slowly varying function of z, and the slope needs the same exponential: P' = e^(-x^2/2) /
 * sqrt(2 pi). So one exponential, one reciprocal and one polynomial give both. */
#pragma once
#include "rows.cuh"

struct point {
    float y, slope; /* gelu(x), gelu'(x) */
};

/* Best polynomials of the lowest degree with an error below rounding: float 2e-7, bf16 1e-4. */
template <typename T> DEVICE float tail_of(float z) /* P(-z) / e^(-z^2/2) */
{
    if constexpr (sizeof(T) == 2) {
        float t = rcp_approx(0.38f * z + 1.0f);
        return ((((-0.0899283276f * t + 0.18887642f) * t + 0.0919797830f) * t + 0.157829459f) * t +
                0.151225138f) * t;
    } else {
        float t = rcp_approx(0.31f * z + 1.0f);
        float q = ((0.0357725981f * t - 0.141343887f) * t + 0.154661803f) * t - 0.0145614533f;
        q = ((q * t + 0.109938557f) * t + 0.107823866f) * t + 0.124050934f;
        return (q * t + 0.123657654f) * t;
    }
}

template <typename T> DEVICE point normal(float x)
{
    float z = fabsf(x);
    z = z > 18.0f ? 18.0f : z; /* beyond, P is 0 or 1 to the last bit; NaN stays NaN */
    float bell = ex2_approx(-0.721347520f * z * z), q = tail_of<T>(z);
    /* y = x P(-z) for negative x, x - x P(-z) for others, and the slopes add to 1. */
    float left = bell * (q - 0.398942280f * z);
    point r = {fmaxf(x, 0.0f) - z * (q * bell), x < 0.0f ? left : 1.0f - left};
    return r;
}

DEVICE point logistic(float x)
{
    float square = x * x;
    float p = rcp_approx(1.0f + ex2_approx(x * (-0.102943240f * square - 2.30220820f))); /* e^-2u */
    /* Beyond 11 the slope is 0 or 1, and x^2 could overflow. */
    float clamped = fminf(fmaxf(x, -11.0f), 11.0f);
    float steep = clamped * (0.214064449f * (clamped * clamped) + 1.59576912f);
    point r = {x * p, p + (p - p * p) * steep};
    return r;
}

template <typename T, bool APPROXIMATE> DEVICE point gelu_point(float x)
{
    return APPROXIMATE ? logistic(x) : normal<T>(x);
}

/* Both forms of GELU for epilogues that are bound by instructions and give bf16: P = (1 + tanh u)/2
 * by the hardware's tanh, whose error may be 2^-11 and is 8e-6 on an H200. gelu takes 6
 * instructions, a gradient 11; 8 and 13 in the exact form. In the exact form u = x (c0 + c1 x^2 +
 * c2 x^4), with coefficients that minimize the errors of gelu and its slope: 3.7e-5 and 9.3e-5, or
 * 3.8e-5 and 9.6e-5 with the hardware's tanh. x^2 is clamped where P is 0 or 1, before u stops
 * growing. */
template <bool APPROXIMATE> DEVICE float fast_u(float x, float square)
{
    return x * (APPROXIMATE ? 0.0356774081f * square + 0.797884561f
                            : (-0.000347558141f * square + 0.0370038849f) * square + 0.797422815f);
}
template <bool APPROXIMATE> DEVICE float fast_gelu(float x)
{
    float square = APPROXIMATE ? x * x : fminf(x * x, 40.0f);
    float t = tanh_approx(fast_u<APPROXIMATE>(x, square)), half = 0.5f * x;
    return half * t + half;
}
/* dy gelu'(x) */
template <bool APPROXIMATE> DEVICE float fast_grad(float dy, float x)
{
    float square = fminf(x * x, APPROXIMATE ? 1000.0f : 40.0f), half = 0.5f * dy;
    float t = tanh_approx(fast_u<APPROXIMATE>(x, square));
    float of_u = APPROXIMATE ? 0.107032224f * square + 0.797884561f
                             : (-0.00173779070f * square + 0.111011655f) * square + 0.797422815f;
    return half * (x * ((1.0f - t * t) * of_u) + t) + half;
}

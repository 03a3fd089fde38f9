/* attention_grad_f32.cuh - the gradient of one score, for attention backward in float. */
#pragma once
#include "device.cuh"

/* The factor by which dropout multiplies a probability; 0 if the probability is dropped. */
DEVICE float keep_scale(u32 seed, u32 site, u32 step, u32 bh, u32 q, u32 k, int threshold)
{
    return keeps_score(seed, site, step, bh, q, k, threshold) ? dropout_scale(threshold) : 0;
}
/* For one pair of query and key: replaces s by the gradient of the score (without `scale`), and dp
 * by the probability after dropout. */
DEVICE void gradient(float &s, float &dp, float lse, float delta, float scale, float keep,
                     bool seen)
{
    float p = seen ? expf(s * scale - lse) : 0;
    s = seen ? p * (dp * keep - delta) : 0;
    dp = p * keep;
}

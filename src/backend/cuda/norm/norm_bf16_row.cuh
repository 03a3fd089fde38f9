/* norm_bf16_row.cuh - a bf16 row in registers, its sum with another row, and its norm; norm_bf16.cu
 * and norm_codes.cu share this code, so they get the same bits. COLUMNS, LANES (norm_bf16.cuh);
 * BIAS, DROPOUT: 0 or 1. */
#pragma once
#include "norm_bf16.cuh"

struct row {
    eight step[STEPS];
};
struct parameters {
    const float *w, *bias;
};
struct statistics {
    float mean, rstd;
};

/* All lanes of the warp must call. */
DEVICE statistics statistics_of(const row &x, float eps)
{
    float sum = 0, squares = 0;
    EACH_STEP EACH_WORD sum += low_of(x.step[s].w[i]) + high_of(x.step[s].w[i]);
    const float m = row_sum(sum) * (1.0f / COLUMNS);
    EACH_STEP EACH_WORD {
        const float a = low_of(x.step[s].w[i]) - m, b = high_of(x.step[s].w[i]) - m;
        squares += a * a;
        squares += b * b;
    }
    const statistics r = {m, 1.0f / sqrtf(row_sum(squares) * (1.0f / COLUMNS) + eps)};
    return r;
}

/* The lane's columns of step s of the norm. */
DEVICE eight normalized(const row &x, int s, const statistics &of, const parameters &p)
{
    const float m = of.mean, r = of.rstd;
    const floats<N> w = load<N>(p.w + column_at(s));
    floats<N> bias;
    if (BIAS) bias = load<N>(p.bias + column_at(s));
    eight out;
    EACH_WORD {
        float a = (low_of(x.step[s].w[i]) - m) * (r * w[2 * i]),
              b = (high_of(x.step[s].w[i]) - m) * (r * w[2 * i + 1]);
        if (BIAS) a += bias[2 * i], b += bias[2 * i + 1];
        out.w[i] = pack_bf16(a, b);
    }
    return out;
}

/* a + dropout(b), rounded to bf16, for the row that starts at `first`. All lanes of the warp must
 * call. */
DEVICE row sum_of(const bf16 *a, const bf16 *b, i64 first, const dropout_args &by)
{
    row v, branch;
    EACH_STEP {
        v.step[s] = load_eight(a + first + column_at(s));
        branch.step[s] = load_eight(b + first + column_at(s));
    }
    keep_bits of_branch;
    if (DROPOUT) of_branch = random_keep_bits(first, by);
    EACH_STEP EACH_WORD {
        const u32 old = v.step[s].w[i],
                  add = branch.step[s].w[i] & (DROPOUT ? mask_of(of_branch, s, i) : ~0u);
        const float times = DROPOUT ? by.scale : 1.0f;
        v.step[s].w[i] =
            pack_bf16(low_of(old) + times * low_of(add), high_of(old) + times * high_of(add));
    }
    return v;
}

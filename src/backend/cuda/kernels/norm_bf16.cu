/* norm_bf16.cu - layer norms of norm.cu for rows of bf16 that are whole accesses (norm_bf16.cuh): y = (x - mean) rstd w + bias, and
 * of s = a + dropout(b), which is kept, too. COLUMNS, LANES; BIAS: 1, or 0; DROPOUT: 1, or 0.
 *
 * A row lies in registers. Bound by memory where instructions allow it, 2 accesses an element, 4 with the sum: lanes without a
 * column, bytes selected one by one and draws of which half is used cost a quarter of the time at 384 columns. */
#include "norm_bf16.cuh"

enum { NORM_THREADS = 128, ROWS_OF_BLOCK = NORM_THREADS / LANES };

struct row {
    eight step[STEPS];
};
struct parameters {
    const float *w, *bias;
};
/* Lanes of a row behind the last one work on the first, and write nothing. */
struct place {
    i64 row, first;
    bool there;
};
DEVICE place place_of(i64 rows)
{
    place p;
    p.row = (i64)blockIdx.x * ROWS_OF_BLOCK + (int)threadIdx.x / LANES;
    p.there = p.row < rows;
    p.first = p.there ? p.row * COLUMNS : 0;
    return p;
}

DEVICE void normalise(const row &x, const parameters &p, const place &at, bf16 *y, float *mean, float *rstd, float eps)
{
    float sum = 0, squares = 0;
    EACH_STEP EACH_WORD sum += low_of(x.step[s].w[i]) + high_of(x.step[s].w[i]);
    const float m = row_sum(sum) * (1.0f / COLUMNS);
    EACH_STEP EACH_WORD {
        const float a = low_of(x.step[s].w[i]) - m, b = high_of(x.step[s].w[i]) - m;
        squares += a * a;
        squares += b * b;
    }
    const float r = 1.0f / sqrtf(row_sum(squares) * (1.0f / COLUMNS) + eps);
    if (!at.there) return;
    EACH_STEP {
        const floats<N> w = load<N>(p.w + column_at(s));
        floats<N> bias;
        if (BIAS) bias = load<N>(p.bias + column_at(s));
        eight out;
        EACH_WORD {
            float a = (low_of(x.step[s].w[i]) - m) * (r * w[2 * i]), b = (high_of(x.step[s].w[i]) - m) * (r * w[2 * i + 1]);
            if (BIAS) a += bias[2 * i], b += bias[2 * i + 1];
            out.w[i] = pack_bf16(a, b);
        }
        store_eight(y + at.first + column_at(s), out);
    }
    if (lane_of_row() != 0) return;
    mean[at.row] = m;
    rstd[at.row] = r;
}

KERNEL(NORM_THREADS)
layernorm_bf16(bf16 *y, float *mean, float *rstd, const bf16 *x, const float *w,
#if BIAS
               const float *bias,
#endif
               float eps, i64 rows)
{
#if !BIAS
    const float *bias = 0;
#endif
    const place at = place_of(rows);
    const parameters p = {w, bias};
    row v;
    EACH_STEP v.step[s] = load_eight(x + at.first + column_at(s));
    normalise(v, p, at, y, mean, rstd, eps);
}

/* s may be a. The norm is that of the sums as they are kept. */
KERNEL(NORM_THREADS)
add_layernorm_bf16(bf16 *sums, bf16 *y, float *mean, float *rstd, const bf16 *a, const bf16 *b, const int *step, const float *w,
#if BIAS
                   const float *bias,
#endif
                   u32 seed, u32 site, u32 less, u32 carry, float scale, float eps, i64 rows)
{
#if !BIAS
    const float *bias = 0;
#endif
    const place at = place_of(rows);
    const parameters p = {w, bias};
    row v, branch;
    EACH_STEP {
        v.step[s] = load_eight(a + at.first + column_at(s));
        branch.step[s] = load_eight(b + at.first + column_at(s));
    }
    kept of_branch;
    if (DROPOUT) {
        const dropping by = {seed, site, (u32)*step, less, carry, scale};
        of_branch = draw_row(at.first, by);
    }
    EACH_STEP {
        EACH_WORD {
            const u32 old = v.step[s].w[i], add = branch.step[s].w[i] & (DROPOUT ? mask_of(of_branch, s, i) : ~0u);
            const float by = DROPOUT ? scale : 1.0f;
            v.step[s].w[i] = pack_bf16(low_of(old) + by * low_of(add), high_of(old) + by * high_of(add));
        }
        if (at.there) store_eight(sums + at.first + column_at(s), v.step[s]);
    }
    normalise(v, p, at, y, mean, rstd, eps);
}

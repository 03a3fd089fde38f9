/* norm_grad.cu - the gradient of a layer norm, with h = (x - mean) rstd, g = dy w: dx = rstd (g - avg(g) - h avg(g h)), to
 * which ADD adds a gradient that came another way; dw = the sum of dy h over the rows, dbias that of dy.
 *
 * T_X, COLUMNS, LANES, N: norm.cuh; BIAS; GROUPS: rows that a block takes at once. The grid is about one block for each
 * multiprocessor; each goes through its share of the rows, and each lane sums dw and dbias of its columns in registers. Then
 * the block's sums become a part, and norm_parts adds the parts. Grid and layout fix the order: deterministic.
 *
 * Bound by memory: 3 accesses an element, 4 with ADD; x and dy of the next row are under way while this one is
 * worked on, where a lane has the registers for it (AHEAD). */
#include "norm.cuh"

#define THREADS (LANES * GROUPS)
enum { SUMS = BIAS ? 2 * COLUMNS : COLUMNS }; /* of a part: dw, then dbias */

/* An access as it lies in memory. */
typedef vector_of<N, T_X> raw;
DEVICE void load_raw(raw (&v)[STEPS], const T_X *p)
{
    EACH_STEP {
        if (!is_column(s)) continue;
#pragma unroll
        for (int i = 0; i < raw::TIMES; i++)
            v[s].w[i] = ((const typename raw::word *)(p + column_at(s)))[i];
    }
}

/* dx of one row; adds to the lane's sums. dx may be dy or more. */
DEVICE void grad_row(const raw (&x)[STEPS], const raw (&dy)[STEPS], const T_X *more, const float *w, T_X *dx, float mean,
                     float rstd, floats<N> (&dw)[STEPS], floats<N> (&dbias)[STEPS])
{
    float sum = 0, products = 0;
    EACH_STEP {
        if (!is_column(s)) continue;
        floats<N> wi = load_floats(w, column_at(s));
        EACH_ELEMENT {
            float d = to_float(dy[s].x[e]), dh = d * ((to_float(x[s].x[e]) - mean) * rstd);
            sum += d * wi[e];
            products += dh * wi[e];
            dw[s][e] += dh;
            if (BIAS) dbias[s][e] += d;
        }
    }
    sum = row_sum(sum) * (1.0f / COLUMNS);
    products = row_sum(products) * (1.0f / COLUMNS);
    EACH_STEP {
        if (!is_column(s)) continue;
        floats<N> wi = load_floats(w, column_at(s)), a;
        EACH_ELEMENT {
            float h = (to_float(x[s].x[e]) - mean) * rstd;
            a[e] = rstd * (to_float(dy[s].x[e]) * wi[e] - sum - h * products);
        }
        if (ADD) {
            floats<N> b = load<N>(more + column_at(s));
            EACH_ELEMENT a[e] += b[e];
        }
        store<N>(dx + column_at(s), a);
    }
}

/* Adds up the groups' sums of a block, in their order, into its part. */
DEVICE void join_groups(float *part, float (*all)[COLUMNS], int group, const floats<N> (&sums)[STEPS])
{
    EACH_STEP if (is_column(s)) store<N>(&all[group][column_at(s)], sums[s]);
    __syncthreads();
    for (int i = threadIdx.x; i < COLUMNS; i += THREADS) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < GROUPS; k++) sum += all[k][i];
        part[i] = sum;
    }
    __syncthreads();
}

KERNEL(THREADS)
layernorm_grad(T_X *dx, float *parts,
#if ADD
               const T_X *more,
#endif
               const T_X *dy, const T_X *x, const float *w, const float *mean, const float *rstd, i64 rows)
{
#if !ADD
    const T_X *more = 0;
#endif
    const int group = threadIdx.x / LANES;
    const i64 stride = (i64)gridDim.x * GROUPS;
    i64 row = (i64)blockIdx.x * GROUPS + group;
    floats<N> dw[STEPS], dbias[STEPS];
    EACH_STEP EACH_ELEMENT dw[s][e] = dbias[s][e] = 0;
#if AHEAD
    raw x1[STEPS], dy1[STEPS];
    if (row < rows) {
        load_raw(x1, x + row * COLUMNS);
        load_raw(dy1, dy + row * COLUMNS);
    }
#endif
    for (; row < rows; row += stride) {
        const i64 at = row * COLUMNS;
        raw xi[STEPS], dyi[STEPS];
#if AHEAD
        EACH_STEP {
            xi[s] = x1[s];
            dyi[s] = dy1[s];
        }
        if (row + stride < rows) {
            load_raw(x1, x + at + stride * COLUMNS);
            load_raw(dy1, dy + at + stride * COLUMNS);
        }
#else
        load_raw(xi, x + at);
        load_raw(dyi, dy + at);
#endif
        grad_row(xi, dyi, more + at, w, dx + at, mean[row], rstd[row], dw, dbias);
    }
    float *part = parts + (i64)blockIdx.x * SUMS;
    if constexpr (GROUPS > 1) {
        __shared__ __align__(16) float all[GROUPS][COLUMNS];
        join_groups(part, all, group, dw);
        if (BIAS) join_groups(part + COLUMNS, all, group, dbias);
    } else {
        EACH_STEP {
            if (!is_column(s)) continue;
            store<N>(part + column_at(s), dw[s]);
            if (BIAS) store<N>(part + COLUMNS + column_at(s), dbias[s]);
        }
    }
}

/* A block takes 32 columns, each of its warps every so many parts. */
enum { PART_WARPS = 16 };
KERNEL(PART_WARPS * WARP)
norm_parts(float *dw,
#if BIAS
           float *dbias,
#endif
           const float *parts, int count)
{
    __shared__ float sums[PART_WARPS][WARP];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, column = blockIdx.x * WARP + lane;
    float sum = 0;
    if (column < SUMS)
        for (int i = warp; i < count; i += PART_WARPS) sum += parts[(i64)i * SUMS + column];
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || column >= SUMS) return;
    sum = 0;
#pragma unroll
    for (int i = 0; i < PART_WARPS; i++) sum += sums[i][lane];
    if (column < COLUMNS) dw[column] = sum;
#if BIAS
    if (column >= COLUMNS) dbias[column - COLUMNS] = sum;
#endif
}

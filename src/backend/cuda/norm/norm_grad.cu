/* norm_grad.cu - the gradient of a layer norm, with h = (x - mean) rstd, g = dy w: dx = rstd (g -
 * avg(g) - h avg(g h)); with ADD, plus the gradient of the residual stream; dw = the sum of dy h
 * over the rows, dbias = the sum of dy. DROP: dropout of the rounded dx is a second output.
 *
 * T_X, COLUMNS, LANES and EACH are described in norm.cuh; BIAS: dbias is computed, too; GROUPS: the
 * number of rows that a block processes at once. The grid has about one block per SM. Each block
 * loops over its rows, and each lane sums dw and dbias of its columns in registers. The block's
 * sums become a part, and norm_parts sums the parts. Grid and layout fix the order of additions, so
 * results are deterministic.
 *
 * Bound by memory: 3 accesses per element, 4 with ADD, 5 with DROP. All loads of a row are issued
 * at once: prefetching costs occupancy and is slower (docs/MEASURING.md). */
#include "norm.cuh"
#include "norm_parts.cuh"

#define THREADS (LANES * GROUPS)

/* A row stays in registers between its sums and its gradient, unless it is so long that dw and
 * dbias need the registers: then the row is read again, from cache. */
enum { HELD = LANES < 768 };
struct held_row {
    raw x[STEPS], dy[STEPS];
};
DEVICE void load_row(held_row &k, const T_X *x, const T_X *dy)
{
    if (HELD)
        EACH_STEP if (is_column(s))
        {
            k.x[s] = load_raw(x + column_at(s));
            k.dy[s] = load_raw(dy + column_at(s));
        }
}

struct sums {
    floats<N> dw[STEPS], dbias[STEPS];
};
struct row_in {
    const T_X *x, *dy, *more;
    float mean, rstd;
};
struct row_out {
    T_X *dx, *dropped;
    i64 first; /* offset in the tensor */
};
struct dropout_args {
    u32 seed, site, step;
    int threshold;
};
/* Computes dx of one row and adds to the lane's sums of dw and dbias. dx may be dy or more. */
DEVICE void grad_row(const held_row &k, const row_in &in, const float *w, const row_out &out,
                     const dropout_args &by, sums &all)
{
    raw more[STEPS];
    if (ADD && HELD)
        EACH_STEP if (is_column(s)) more[s] = load_raw(in.more + column_at(s));
    float sum = 0, products = 0;
    EACH_STEP {
        if (!is_column(s)) continue;
        const raw x = HELD ? k.x[s] : load_raw(in.x + column_at(s));
        const raw dy = HELD ? k.dy[s] : load_raw(in.dy + column_at(s));
        floats<N> wi = load<N>(w + column_at(s));
        EACH_ELEMENT {
            float d = to_float(dy.x[e]), dh = d * ((to_float(x.x[e]) - in.mean) * in.rstd);
            sum += d * wi[e];
            products += dh * wi[e];
            all.dw[s][e] += dh;
            if (BIAS) all.dbias[s][e] += d;
        }
    }
    sum = row_sum(sum) * (1.0f / COLUMNS);
    products = row_sum(products) * (1.0f / COLUMNS);
    EACH_STEP {
        if (!is_column(s)) continue;
        const raw x = HELD ? k.x[s] : load_raw(in.x + column_at(s));
        const raw dy = HELD ? k.dy[s] : load_raw(in.dy + column_at(s));
        floats<N> wi = load<N>(w + column_at(s)), a;
        EACH_ELEMENT {
            float h = (to_float(x.x[e]) - in.mean) * in.rstd;
            a[e] = in.rstd * (to_float(dy.x[e]) * wi[e] - sum - h * products);
        }
        if (ADD) {
            const raw b = HELD ? more[s] : load_raw(in.more + column_at(s));
            EACH_ELEMENT a[e] += to_float(b.x[e]);
        }
        store<N>(out.dx + column_at(s), a);
        if (DROP) {
            EACH_ELEMENT a[e] = to_float(to<T_X>(a[e]));
            apply_dropout(a, out.first + column_at(s), by.seed, by.site, by.step, by.threshold);
            store<N>(out.dropped + column_at(s), a);
        }
    }
}

/* Sums over the groups of a block, in order, into its part. */
DEVICE void join_groups(float *part, float (*all)[COLUMNS], int group,
                        const floats<N> (&mine)[STEPS])
{
    EACH_STEP if (is_column(s)) store<N>(&all[group][column_at(s)], mine[s]);
    __syncthreads();
    for (int i = threadIdx.x; i < COLUMNS; i += THREADS) {
        float sum = 0;
        UNROLL for (int k = 0; k < GROUPS; k++) sum += all[k][i];
        part[i] = sum;
    }
    __syncthreads();
}

KERNEL(THREADS)
layernorm_grad(T_X *dx,
#if DROP
               T_X *dropped,
#endif
               float *parts,
#if ADD
               const T_X *more,
#endif
               const T_X *dy, const T_X *x, const float *w, const float *mean, const float *rstd,
#if DROP
               const int *step, u32 seed, u32 site, int threshold,
#endif
               i64 rows)
{
#if !ADD
    const T_X *more = x; /* unused */
#endif
#if DROP
    const dropout_args by = {seed, site, (u32)*step, threshold};
#else
    T_X *dropped = dx; /* unused */
    const dropout_args by = {0, 0, 0, 0};
#endif
    const int group = threadIdx.x / LANES;
    const i64 stride = (i64)gridDim.x * GROUPS;
    i64 row = (i64)blockIdx.x * GROUPS + group;
    sums mine;
    EACH_STEP EACH_ELEMENT mine.dw[s][e] = mine.dbias[s][e] = 0;
    held_row now;
    float mean_next = row < rows ? mean[row] : 0, rstd_next = row < rows ? rstd[row] : 0;
    for (; row < rows; row += stride) {
        const i64 at = row * COLUMNS;
        const row_in in = {x + at, dy + at, more + at, mean_next, rstd_next};
        if (row + stride < rows) mean_next = mean[row + stride], rstd_next = rstd[row + stride];
        load_row(now, in.x, in.dy);
        const row_out out = {dx + at, dropped + at, at};
        grad_row(now, in, w, out, by, mine);
    }
    float *part = parts + (i64)blockIdx.x * SUMS;
    if constexpr (GROUPS > 1) {
        __shared__ __align__(16) float all[GROUPS][COLUMNS];
        join_groups(part, all, group, mine.dw);
        if (BIAS) join_groups(part + COLUMNS, all, group, mine.dbias);
    } else {
        EACH_STEP {
            if (!is_column(s)) continue;
            store<N>(part + column_at(s), mine.dw[s]);
            if (BIAS) store<N>(part + COLUMNS + column_at(s), mine.dbias[s]);
        }
    }
}

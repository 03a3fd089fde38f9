/* rmsnorm_grad.cu - the gradient of an RMS norm (rmsnorm_grad.cuh) for any number of rows, with dw,
 * the sum of dy x r over the rows. T_X, COLUMNS, LANES, EACH: norm.cuh; ADD; GROUPS: rows that a
 * block processes at once.
 *
 * The grid is about one block per SM; each block loops over its rows, and each lane sums dw of its
 * columns in registers. The block's sums become a part, and norm_parts sums the parts. Grid and
 * layout fix the order: deterministic. Bound by memory: 3 accesses per element, 4 with ADD. */
#include "rmsnorm_grad.cuh"
#define BIAS 0
#include "norm_parts.cuh"

#define THREADS (LANES * GROUPS)

/* Sums over the groups of a block, in order, into its part. */
DEVICE void join_groups(float *part, const floats<N> (&dw)[STEPS])
{
    __shared__ __align__(16) float all[GROUPS][COLUMNS];
    EACH_STEP if (is_column(s)) store<N>(&all[threadIdx.x / LANES][column_at(s)], dw[s]);
    __syncthreads();
    for (int i = threadIdx.x; i < COLUMNS; i += THREADS) {
        float sum = 0;
        UNROLL for (int k = 0; k < GROUPS; k++) sum += all[k][i];
        part[i] = sum;
    }
}

KERNEL(THREADS)
rmsnorm_grad(T_X *dx, float *parts,
#if ADD
             const T_X *more,
#endif
             const T_X *dy, const T_X *x, const float *w, const float *rrms, i64 rows)
{
#if !ADD
    const T_X *more = x; /* unused */
#endif
    const i64 stride = (i64)gridDim.x * GROUPS;
    const tensors t = {x, dy, more};
    floats<N> weights[STEPS], dw[STEPS];
    load_weights(weights, w);
    EACH_STEP EACH_ELEMENT dw[s][e] = 0;
    for (i64 row = (i64)blockIdx.x * GROUPS + threadIdx.x / LANES; row < rows; row += stride) {
        row_in in;
        const float r = rrms[row];
        load_row(in, t, row * COLUMNS);
        grad_row<true>(dx + row * COLUMNS, in, weights, r, dw);
    }
    float *part = parts + (i64)blockIdx.x * COLUMNS;
    if constexpr (GROUPS > 1)
        join_groups(part, dw);
    else
        EACH_STEP if (is_column(s)) store<N>(part + column_at(s), dw[s]);
}

/* rmsnorm_grad_one_launch.cu - the gradient of an RMS norm with ADD (rmsnorm_grad.cuh), dx and dw
 * in one launch, for rows that fit in L2. T_X, COLUMNS, LANES, EACH (a whole access): norm.cuh.
 *
 * r is an input, so dw, the sum of dy x r over the rows, needs no sum over a row. The first blocks
 * of the grid sum columns (two lanes have 32 bytes of each row), while the other blocks compute dx.
 * dx may be `more` but not dy or x, which is why there is no variant without ADD. Each column
 * belongs to one block with a fixed order of additions: deterministic.
 *
 * Bound by L2: 4 accesses per element, and dy and x once more; a second launch would cost more. */
#define ADD 1
#include "rmsnorm_grad.cuh"

enum { COLUMN_LANES = 2, BLOCK_COLUMNS = COLUMN_LANES * N };
enum { SHARES = ROW_THREADS / COLUMN_LANES, TOGETHER = 8 };

/* Sums over the rows of a warp, then over the warps of the block. */
DEVICE void join_shares(float *dw, int column, floats<N> &sum)
{
    __shared__ float all[ROW_THREADS / WARP][BLOCK_COLUMNS];
    UNROLL for (int d = COLUMN_LANES; d < WARP; d *= 2)
        EACH_ELEMENT sum[e] += __shfl_xor_sync(~0u, sum[e], d);
    const int lane = threadIdx.x % WARP;
    if (lane < COLUMN_LANES)
        EACH_ELEMENT all[threadIdx.x / WARP][lane * N + e] = sum[e];
    __syncthreads();
    const int mine = (int)threadIdx.x;
    if (mine >= BLOCK_COLUMNS || column + mine >= COLUMNS) return;
    float total = 0;
    UNROLL for (int i = 0; i < ROW_THREADS / WARP; i++) total += all[i][mine];
    dw[column + mine] = total;
}

/* dw of the columns from `column` on: N per lane, over every SHARES-th row, TOGETHER in flight. */
DEVICE void sum_columns(float *dw, const tensors &t, const float *rrms, int column, i64 rows)
{
    const int mine = column + (int)threadIdx.x % COLUMN_LANES * N;
    floats<N> sum;
    EACH_ELEMENT sum[e] = 0;
    for (i64 row = threadIdx.x / COLUMN_LANES; mine < COLUMNS && row < rows;
         row += TOGETHER * SHARES) {
        raw x[TOGETHER], dy[TOGETHER];
        float r[TOGETHER];
        UNROLL for (int k = 0; k < TOGETHER; k++) {
            const i64 at = row + k * SHARES;
            if (at >= rows) continue;
            x[k] = load_raw(t.x + at * COLUMNS + mine);
            dy[k] = load_raw(t.dy + at * COLUMNS + mine);
            r[k] = rrms[at];
        }
        UNROLL for (int k = 0; k < TOGETHER; k++) {
            if (row + k * SHARES >= rows) continue;
            EACH_ELEMENT sum[e] += to_float(dy[k].x[e]) * (to_float(x[k].x[e]) * r[k]);
        }
    }
    join_shares(dw, column, sum);
}

KERNEL_MIN(ROW_THREADS, 1)
rmsnorm_grad_one_launch(T_X *dx, float *dw, const T_X *more, const T_X *dy, const T_X *x,
                    const float *w, const float *rrms, i64 rows, int column_blocks)
{
    const tensors t = {x, dy, more};
    const int block = (int)blockIdx.x - column_blocks;
    if (block < 0) {
        sum_columns(dw, t, rrms, (int)blockIdx.x * BLOCK_COLUMNS, rows);
        return;
    }
    const i64 row = (i64)block * ROWS_OF_BLOCK + (int)threadIdx.x / LANES;
    if (row >= rows) return;
    floats<N> weights[STEPS], none[STEPS];
    row_in in;
    load_row(in, t, row * COLUMNS);
    load_weights(weights, w);
    grad_row<false>(dx + row * COLUMNS, in, weights, rrms[row], none);
}

/* norm_bf16_grad.cu - the gradient of norm_grad.cu without a bias, for bf16 rows of whole accesses
 * (norm_bf16.cuh): dx = rstd (g - avg(g) - h avg(g h)), h = (x - mean) rstd, g = dy w; with ADD,
 * plus the gradient of the residual stream; dw = the sum of dy h; DROP: dropout of the rounded dx
 * is a second output. COLUMNS, LANES; STEPS is at most 3: the sums of dw and the weights stay in
 * registers, of which there are 128.
 *
 * The grid is about two blocks per SM; their warps loop over the rows. The inputs of a row are
 * prefetched into shared memory, AHEAD rows ahead, and so need no registers. Each lane copies its
 * own columns and waits for no other lane. At the end the block's sums become a part, and
 * norm_parts sums the parts. Grid and layout fix the order: deterministic.
 *
 * Bound by memory: 3 accesses per element, 4 with ADD, 5 with DROP. The instructions take nearly as
 * long. */
#include "norm_bf16.cuh"
#define BIAS 0
#include "norm_parts.cuh"

enum { WARPS = 8, THREADS = WARPS * WARP, ROWS_OF_BLOCK = WARPS * ROWS_OF_WARP };
enum { AHEAD = 2, TENSORS = ADD ? 3 : 2 };
enum { ACCESS = WARP * 16, OF_X = 0, OF_DY = 1, OF_MORE = 2 };
extern __shared__ __align__(1024) u8 shared_memory[];

struct inputs {
    const bf16 *x, *dy, *more;
    const float *mean, *rstd;
};
/* Prefetched rows: this lane's shared-memory address, and the statistics of each row. */
struct prefetched {
    u32 at;
    float mean[AHEAD], rstd[AHEAD];
};
DEVICE u32 slot(u32 at, int stage, int tensor, int s)
{
    return at + ((stage * TENSORS + tensor) * STEPS + s) * ACCESS;
}
DEVICE eight read_slot(u32 at)
{
    eight r;
    load_shared_16(r.w, at);
    return r;
}
/* Starts one group of copies, which is empty if there is no row number `row`. */
DEVICE void prefetch(prefetched &c, int stage, const inputs &in, i64 row, i64 rows)
{
    if (row < rows) {
        const i64 first = row * COLUMNS;
        c.mean[stage] = in.mean[row], c.rstd[stage] = in.rstd[row];
        EACH_STEP cp_async_16(slot(c.at, stage, OF_X, s), in.x + first + column_at(s), 16);
        EACH_STEP cp_async_16(slot(c.at, stage, OF_DY, s), in.dy + first + column_at(s), 16);
        if (ADD)
            EACH_STEP cp_async_16(slot(c.at, stage, OF_MORE, s), in.more + first + column_at(s),
                                  16);
    }
    cp_async_commit();
}

struct outputs {
    bf16 *dx, *dropped;
};
/* Computes dx of a row and adds to the lane's sums of dw. All lanes of the warp must call. dx may
 * be dy or more. */
DEVICE void grad_row(const prefetched &c, int stage, i64 row, bool there,
                     const floats<N> (&w)[STEPS], floats<N> (&dw)[STEPS], const outputs &out,
                     const dropout_args &by)
{
    const float m = c.mean[stage], r = c.rstd[stage];
    float sum = 0, products = 0;
    if (there)
        EACH_STEP
        {
            const eight x = read_slot(slot(c.at, stage, OF_X, s)),
                        dy = read_slot(slot(c.at, stage, OF_DY, s));
            EACH_WORD {
                const float d0 = low_of(dy.w[i]), d1 = high_of(dy.w[i]);
                const float p0 = d0 * ((low_of(x.w[i]) - m) * r),
                            p1 = d1 * ((high_of(x.w[i]) - m) * r);
                sum += d0 * w[s][2 * i];
                sum += d1 * w[s][2 * i + 1];
                products += p0 * w[s][2 * i];
                products += p1 * w[s][2 * i + 1];
                dw[s][2 * i] += p0;
                dw[s][2 * i + 1] += p1;
            }
        }
    sum = row_sum(sum) * (1.0f / COLUMNS);
    products = row_sum(products) * (1.0f / COLUMNS) * -r;
    const i64 first = row * COLUMNS;
    keep_bits of_dx;
    if (DROP) of_dx = random_keep_bits(first, by);
    if (!there) return;
    EACH_STEP {
        const eight x = read_slot(slot(c.at, stage, OF_X, s)),
                    dy = read_slot(slot(c.at, stage, OF_DY, s));
        eight more, dx;
        if (ADD) more = read_slot(slot(c.at, stage, OF_MORE, s));
        EACH_WORD {
            float a = r * (low_of(dy.w[i]) * w[s][2 * i] - sum + (low_of(x.w[i]) - m) * products);
            float b =
                r * (high_of(dy.w[i]) * w[s][2 * i + 1] - sum + (high_of(x.w[i]) - m) * products);
            if (ADD) a += low_of(more.w[i]), b += high_of(more.w[i]);
            dx.w[i] = pack_bf16(a, b);
        }
        store_eight(out.dx + first + column_at(s), dx);
        if (!DROP) continue;
        EACH_WORD dx.w[i] = pack_bf16(low_of(dx.w[i]) * by.scale, high_of(dx.w[i]) * by.scale) &
                            mask_of(of_dx, s, i);
        store_eight(out.dropped + first + column_at(s), dx);
    }
}

/* Sums over the rows of a warp, then over the warps, into the block's part. */
DEVICE void sum_block(float *part, floats<N> (&dw)[STEPS])
{
    float(*all)[COLUMNS] = (float(*)[COLUMNS])shared_memory;
    __syncthreads(); /* earlier readers of rows */
    EACH_STEP {
        UNROLL for (int e = 0; e < N; e++)
            UNROLL for (int d = LANES; d < WARP; d *= 2)
                dw[s][e] += __shfl_xor_sync(~0u, dw[s][e], d);
        if (threadIdx.x % WARP < LANES) store<N>(&all[threadIdx.x / WARP][column_at(s)], dw[s]);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < COLUMNS; i += THREADS) {
        float sum = 0;
        UNROLL for (int k = 0; k < WARPS; k++) sum += all[k][i];
        part[i] = sum;
    }
}

KERNEL_MIN(THREADS, 2)
layernorm_grad_bf16(bf16 *dx,
#if DROP
                    bf16 *dropped,
#endif
                    float *parts,
#if ADD
                    const bf16 *more,
#endif
                    const bf16 *dy, const bf16 *x, const float *w, const float *mean,
                    const float *rstd,
#if DROP
                    const int *step, u32 seed, u32 site, u32 less, u32 carry, float keep_scale,
#endif
                    i64 rows)
{
#if !ADD
    const bf16 *more = 0;
#endif
#if DROP
    const dropout_args by = {seed, site, (u32)*step, less, carry, keep_scale};
#else
    bf16 *dropped = 0;
    const dropout_args by = {0, 0, 0, 0, 0, 0};
#endif
    const inputs in = {x, dy, more, mean, rstd};
    const outputs out = {dx, dropped};
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const i64 stride = (i64)gridDim.x * ROWS_OF_BLOCK;
    i64 of_warp = (i64)blockIdx.x * ROWS_OF_BLOCK + warp * ROWS_OF_WARP,
        row = of_warp + lane / LANES;
    prefetched c;
    c.at = shared_address(shared_memory) + warp * (AHEAD * TENSORS * STEPS * ACCESS) + lane * 16;
    UNROLL for (int k = 0; k < AHEAD; k++) prefetch(c, k, in, row + k * stride, rows);
    floats<N> weights[STEPS], dw[STEPS];
    EACH_STEP {
        weights[s] = load<N>(w + column_at(s));
        UNROLL for (int e = 0; e < N; e++) dw[s][e] = 0;
    }
    while (of_warp < rows) {
        UNROLL for (int stage = 0; stage < AHEAD; stage++) {
            if (of_warp >= rows) break;
            cp_async_wait<AHEAD - 1>();
            grad_row(c, stage, row, row < rows, weights, dw, out, by);
            prefetch(c, stage, in, row + AHEAD * stride, rows);
            row += stride, of_warp += stride;
        }
    }
    cp_async_wait<0>();
    sum_block(parts + (i64)blockIdx.x * COLUMNS, dw);
}

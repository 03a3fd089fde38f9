/* norm_codes.cu - residual sums and 8-bit codes of their layer norms: s = a + dropout(b), and the
 * codes of y = (s - mean) rstd w + bias, in row order and transposed, with their amax. y is rounded
 * to bf16 first, so the codes are the same as from norm_bf16.cu followed by quantize.cu.
 *
 * COLUMNS, LANES (norm_bf16.cuh); BIAS, DROPOUT: 0 or 1; E4M3: 1, or 0 for e5m2. ROWS: 16 or 32.
 * rows is a multiple of 16. Bound by memory: a, b, s and two codes: 8 bytes per element (two
 * kernels: 12).
 *
 * A block has ROWS rows; each warp processes several of them in turn. A row stays in registers; its
 * codes go to memory and, in row order, to shared memory. At the end a thread transposes a chunk of
 * 16 rows of four columns and writes four runs of 16 bytes. The chunks of a column belong to
 * neighboring lanes and start in different banks. The scale is known before the kernel runs, as in
 * quantize.cu. */
#include "norm_bf16_row.cuh"
#include "quantize.cuh"

enum { THREADS = 256, WARPS = THREADS / WARP, TOGETHER = WARPS * ROWS_OF_WARP };
enum { CHUNK = 16, CHUNKS = ROWS / CHUNK };
enum { WIDE = COLUMNS / 4, SHIFT = WARP / CHUNKS }; /* words of a row; offset of each chunk */
static_assert(ROWS % TOGETHER == 0 && WIDE % WARP == 0, "whole rounds; rows start in one bank");

/* The first word of row r of the tile. */
DEVICE int row_at(int r)
{
    return r * WIDE + r / CHUNK * SHIFT;
}

/* Codes of the four elements of two bf16 words. */
DEVICE u32 four_codes(u32 a, u32 b, float factor)
{
    return two_codes(low_of(a) * factor, high_of(a) * factor) |
           two_codes(low_of(b) * factor, high_of(b) * factor) << 16;
}
DEVICE float larger_of(float largest, u32 two)
{
    return fmaxf(largest, fmaxf(fabsf(low_of(two)), fabsf(high_of(two))));
}

/* Writes the columns of the tile that begins at row `top`. */
DEVICE void put_columns(const u32 *tile, u8 *transposed, int top, int rows)
{
    for (int n = threadIdx.x; n < WIDE * CHUNKS; n += THREADS) {
        const int chunk = n % CHUNKS, word = n / CHUNKS;
        if (top + chunk * CHUNK >= rows) continue;
        u32 run[4][4];
        UNROLL for (int k = 0; k < 4; k++) {
            u32 row[4], column[4];
            UNROLL for (int r = 0; r < 4; r++)
                row[r] = tile[row_at(chunk * CHUNK) + (4 * k + r) * WIDE + word];
            transpose(row, column);
            UNROLL for (int j = 0; j < 4; j++) run[j][k] = column[j];
        }
        UNROLL for (int j = 0; j < 4; j++)
            store_16(transposed + (i64)(4 * word + j) * rows + top + chunk * CHUNK, run[j][0],
                     run[j][1], run[j][2], run[j][3]);
    }
}

KERNEL_MIN(THREADS, STEPS > 3 ? 3 : 4)
quantize_add_layernorm(float *amax, u8 *codes, u8 *transposed, float *scale, bf16 *sums,
                       float *mean, float *rstd, const bf16 *a, const int *step, const bf16 *b,
                       const float *w,
#if BIAS
                       const float *bias,
#endif
                       u32 seed, u32 site, u32 less, u32 carry, float keep_scale, float eps,
                       int rows, int first)
{
#if !BIAS
    const float *bias = 0;
#endif
    __shared__ __align__(16) u32 tile[ROWS * WIDE + CHUNKS * SHIFT];
    __shared__ u32 parts[WARPS];
    const int top = (int)blockIdx.x * ROWS;
    const int slot = threadIdx.x % AMAX_STEPS;
    const float factor = __uint_as_float(
        (u32)(127 - scale_exponent(amax[slot], slot, (u32)*step % AMAX_STEPS, first)) << 23);
    const parameters p = {w, bias};
    const dropout_args by = {seed, site, (u32)*step, less, carry, keep_scale};
    float largest = 0.0f;
#pragma unroll 1
    for (int r = (int)threadIdx.x / LANES; r < ROWS; r += TOGETHER) {
        /* lanes beyond the last row compute row 0; their results are not used */
        const bool there = top + r < rows;
        const i64 at = there ? (i64)(top + r) * COLUMNS : 0;
        const row v = sum_of(a, b, at, by);
        if (there) EACH_STEP store_eight(sums + at + column_at(s), v.step[s]);
        const statistics of = statistics_of(v, eps);
        EACH_STEP {
            const eight y = normalized(v, s, of, p);
            const uint2 two =
                make_uint2(four_codes(y.w[0], y.w[1], factor), four_codes(y.w[2], y.w[3], factor));
            *(uint2 *)(tile + row_at(r) + column_at(s) / 4) = two;
            if (there) {
                EACH_WORD largest = larger_of(largest, y.w[i]);
                *(uint2 *)(codes + at + column_at(s)) = two;
            }
        }
        if (!there || lane_of_row() != 0) continue;
        mean[top + r] = of.mean;
        rstd[top + r] = of.rstd;
    }
    const u32 of_warp = __reduce_max_sync(~0u, __float_as_uint(largest));
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = of_warp;
    __syncthreads();
    put_columns(tile, transposed, top, rows);
    if (threadIdx.x) return;
    const int now = (u32)*step % AMAX_STEPS; /* recomputed: keeping it would cost registers */
    u32 all = 0;
    UNROLL for (int i = 0; i < WARPS; i++) all = max(all, parts[i]);
    atomicMax((int *)amax + now, (int)all);
    if (blockIdx.x) return;
    amax[(now + 1) % AMAX_STEPS] = 0.0f;
    *scale = __uint_as_float((254u << 23) - __float_as_uint(factor)); /* its reciprocal */
}

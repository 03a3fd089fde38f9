/* quantize.cu - 8-bit codes of a matrix (rows, columns), in row order and transposed, and the
 * largest magnitude of its elements (amax). The matrix is x, gelu(x) or x gelu'(y) if OF is X, GELU
 * or GELU_GRAD; TANH selects GELU's tanh approximation.
 *
 * T_X: float or bf16. E4M3: 1, or 0 for e5m2. WARPS: 4 or 8. WHOLE: 1 if all tiles are complete.
 * rows and columns are multiples of 16. Bound by memory: x (and y) read once, two bytes written per
 * element: 4 bytes in bf16, 6 with y. An element takes 9 instructions, 16 with GELU and 24 with its
 * gradient; while memory moves an element's bytes, 25, 30 and 44 instructions could run.
 *
 * A block has a tile of 16 WARPS rows and 64 columns. A thread loads four rows of eight columns at
 * once, writes their codes, and packs the four codes of each column into one word of shared memory.
 * A column consists of chunks of 16 rows, placed depending on the column, so that the words of a
 * warp (one chunk, eight columns eight apart) lie in different banks, and so do the chunks of a
 * column. Then columns are written, 16 bytes per thread in runs of 16 WARPS. Little stays in
 * registers, so that many blocks at different stages keep memory busy. The scale comes from earlier
 * steps (op_float8.c), so blocks do not wait for each other. The amax does not depend on the order
 * of blocks. It is the maximum of the bits, because non-negative floats have the order of their
 * bits. */
#include "gelu.cuh"
#include "quantize.cuh"

#define THREADS (32 * WARPS)
#define COLUMNS 64
#define ROWS (16 * WARPS)
#define CHUNKS WARPS       /* per column */
#define WORDS (4 * CHUNKS) /* per column */

#define X 0
#define GELU 1
#define GELU_GRAD 2

/* Eight elements of a row in memory format. */
struct eight {
    u32 w[2 * sizeof(T_X)];
};
DEVICE void load_eight(eight &a, const T_X *p)
{
    UNROLL for (int i = 0; i < (int)sizeof(T_X) / 2; i++) {
        const uint4 four = __ldcs((const uint4 *)p + i);
        a.w[4 * i] = four.x, a.w[4 * i + 1] = four.y;
        a.w[4 * i + 2] = four.z, a.w[4 * i + 3] = four.w;
    }
}
DEVICE float element(const eight &a, int e)
{
    if constexpr (sizeof(T_X) == 2)
        return __uint_as_float(e % 2 ? a.w[e / 2] & 0xffff0000u : a.w[e / 2] << 16);
    else
        return __uint_as_float(a.w[e]);
}
DEVICE float value_of(float x, float y)
{
    if (OF == GELU) return gelu_point<T_X, TANH>(x).y;
    if (OF == GELU_GRAD) return x * gelu_point<T_X, TANH>(y).slope;
    return x;
}

/* The first shared-memory word of chunk k of column j of the n-th eight columns. */
DEVICE u32 chunk_at(u32 n, u32 j, u32 k)
{
    if (CHUNKS == 8) return (8 * n + j) * WORDS + 4 * (k ^ n);
    return (8 * n + (j ^ n % 2)) * WORDS + 4 * (k ^ n / 2);
}

/* A thread's share of a tile. */
struct piece {
    eight x[4], y[4];
};
/* Writes a piece's codes to memory and, by columns, to the tile; returns the amax. */
DEVICE float encode(const piece &a, u8 *codes, u32 *tile, int columns, float factor)
{
    const u32 tx = threadIdx.x % 8, ty = threadIdx.x / 8;
    float largest = 0.0f;
    u32 row[2][4], of_column[4];
    UNROLL for (int r = 0; r < 4; r++) {
        float v[8];
        UNROLL for (int e = 0; e < 8; e++) {
            v[e] = value_of(element(a.x[r], e), element(a.y[r], e));
            largest = fmaxf(largest, fabsf(v[e]));
            v[e] *= factor;
        }
        row[0][r] = two_codes(v[0], v[1]) | two_codes(v[2], v[3]) << 16;
        row[1][r] = two_codes(v[4], v[5]) | two_codes(v[6], v[7]) << 16;
        *(uint2 *)(codes + (i64)r * columns) = make_uint2(row[0][r], row[1][r]);
    }
    UNROLL for (u32 half = 0; half < 2; half++) {
        transpose(row[half], of_column);
        UNROLL for (u32 j = 0; j < 4; j++)
            tile[chunk_at(tx, 4 * half + j, ty / 4) + ty % 4] = of_column[j];
    }
    return largest;
}

KERNEL_MIN(THREADS, (sizeof(T_X) == 2 ? 40 : 16) / WARPS)
quantize(float *amax, u8 *codes, u8 *transposed, float *scale, const T_X *x, const int *step,
         const T_X *y, int rows, int columns, int first)
{
    __shared__ __align__(16) u32 tile[COLUMNS * WORDS];
    __shared__ u32 parts[WARPS];
    const int left = blockIdx.x * COLUMNS, top = blockIdx.y * ROWS,
              slot = (int)(threadIdx.x % AMAX_STEPS);
    const int row = top + (int)(threadIdx.x / 8 * 4), column = left + (int)(threadIdx.x % 8 * 8);
    const bool there = WHOLE || (row < rows && column < columns);
    const i64 at = (i64)row * columns + column;
    const float known = amax[slot];
    const int now = (u32)*step % AMAX_STEPS;
    piece a;
    if (there)
        UNROLL for (int r = 0; r < 4; r++) {
            load_eight(a.x[r], x + at + (i64)r * columns);
            if (OF == GELU_GRAD) load_eight(a.y[r], y + at + (i64)r * columns);
        }
    const int exponent = scale_exponent(known, slot, now, first);
    const float factor = __uint_as_float((u32)(127 - exponent) << 23);
    const float largest = there ? encode(a, codes + at, tile, columns, factor) : 0.0f;
    const u32 of_warp = __reduce_max_sync(~0u, __float_as_uint(largest));
    if (threadIdx.x % WARP == 0) parts[threadIdx.x / WARP] = of_warp;
    __syncthreads();
    UNROLL for (int i = 0; i < COLUMNS * CHUNKS / THREADS; i++) {
        const u32 n = i * THREADS + threadIdx.x, c = n / CHUNKS, k = n % CHUNKS;
        if (WHOLE || (left + (int)c < columns && top + 16 * (int)k < rows))
            *(uint4 *)(transposed + (i64)(left + c) * rows + top + 16 * k) =
                *(const uint4 *)(tile + chunk_at(c / 8, c % 8, k));
    }
    if (threadIdx.x) return;
    u32 all = 0;
    UNROLL for (int i = 0; i < WARPS; i++) all = max(all, parts[i]);
    atomicMax((int *)amax + now, (int)all);
    if (blockIdx.x || blockIdx.y) return;
    amax[(now + 1) % AMAX_STEPS] = 0.0f;
    *scale = __uint_as_float((u32)(127 + exponent) << 23);
}

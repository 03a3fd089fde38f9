/* reduce.cu - sums and maxima of rows, sums of columns.
 *
 * T_X: type of x (rows, n); column sums are float. Bound by memory: x is read once; the partial
 * results for a second launch are about 1 % of it. Sums are in float: a thread adds four vectors at
 * a time, and the elements of a vector as a tree. Then the sums of the threads are added as a tree.
 * Shapes and grid fix the order of additions. */
#include "device.cuh"

#define THREADS 256
#define WARPS   (THREADS / WARP)
enum { N = 16 / (int)sizeof(T_X) };

struct sum {
    DEVICE float identity() { return 0; }
    DEVICE float join(float a, float b) { return a + b; }
};
/* NaN stays NaN. */
struct maximum {
    DEVICE float identity() { return -INFINITY_F; }
    DEVICE float join(float a, float b) { return a > b || a != a ? a : b; }
};

template <typename R, int M> DEVICE float tree(floats<M> a)
{
    UNROLL for (int d = M / 2; d; d /= 2)
        UNROLL for (int e = 0; e < d; e++) a[e] = R::join(a[e], a[e + d]);
    return a[0];
}
template <typename R> DEVICE float reduce_warp(float a)
{
    UNROLL for (int d = WARP / 2; d; d /= 2) a = R::join(a, __shfl_xor_sync(~0u, a, d));
    return a;
}
/* The first warp gets the result. */
template <typename R> DEVICE float reduce_block(float a)
{
    __shared__ float part[WARPS];
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    a = reduce_warp<R>(a);
    if (lane == 0) part[warp] = a;
    __syncthreads();
    return reduce_warp<R>(lane < WARPS ? part[lane] : R::identity());
}

/* Reduces n elements with `lanes` threads, at least a warp; this thread is number `lane`. Odd row
 * lengths misalign rows: the elements before the first multiple of 16 bytes go first, one per
 * thread. */
template <typename R, typename T> DEVICE float reduce_run(const T *x, i64 n, int lane, int lanes)
{
    enum { M = 16 / (int)sizeof(T) };
    i64 head = (i64)((16 - ((u64)x & 15)) & 15) / (int)sizeof(T);
    if (head > n) head = n;
    float r = lane < head ? to_float(x[lane]) : R::identity();
    x += head, n -= head;
    for (i64 i = lane; i < n / M; i += 4 * lanes) {
        floats<M> a[4];
        floats<4> t;
        UNROLL for (int k = 0; k < 4; k++)
            if (i + k * lanes < n / M) a[k] = load<M>(x + (i + k * lanes) * M);
        UNROLL for (int k = 0; k < 4; k++)
            t[k] = i + k * lanes < n / M ? tree<R>(a[k]) : R::identity();
        r = R::join(r, tree<R>(t));
    }
    if (n / M * M + lane < n) r = R::join(r, to_float(x[n / M * M + lane]));
    return r;
}

/* --- rows: a warp, a block, or several blocks each, whose parts a second launch reduces --- */

template <typename R, typename T> DEVICE void warps(const T *x, T_X *y, i64 rows, i64 n)
{
    const i64 row = (i64)blockIdx.x * WARPS + threadIdx.x / WARP;
    if (row >= rows) return;
    float r = reduce_warp<R>(reduce_run<R>(x + row * n, n, threadIdx.x % WARP, WARP));
    if (threadIdx.x % WARP == 0) y[row] = to<T_X>(r);
}
template <typename R> DEVICE void blocks(const T_X *x, T_X *y, i64 n)
{
    const i64 row = blockIdx.x;
    float r = reduce_block<R>(reduce_run<R>(x + row * n, n, threadIdx.x, THREADS));
    if (threadIdx.x == 0) y[row] = to<T_X>(r);
}
template <typename R> DEVICE void parts(const T_X *x, float *part, i64 n)
{
    const i64 row = blockIdx.y, first = n * blockIdx.x / gridDim.x,
              last = n * (blockIdx.x + 1) / gridDim.x;
    float r =
        reduce_block<R>(reduce_run<R>(x + row * n + first, last - first, threadIdx.x, THREADS));
    if (threadIdx.x == 0) part[row * gridDim.x + blockIdx.x] = r;
}

#define ROW_WARPS(entry, T, R)                                                         \
    KERNEL(THREADS) entry(const T *x, T_X *y, i64 rows, i64 n)                         \
    {                                                                                  \
        warps<R>(x, y, rows, n);                                                       \
    }
#define ROW_BLOCKS(entry, R)                                                           \
    KERNEL(THREADS) entry(const T_X *x, T_X *y, i64 n)                                 \
    {                                                                                  \
        blocks<R>(x, y, n);                                                            \
    }
#define ROW_PARTS(entry, R)                                                            \
    KERNEL(THREADS) entry(const T_X *x, float *part, i64 n)                            \
    {                                                                                  \
        parts<R>(x, part, n);                                                          \
    }

ROW_WARPS(sum_row_warps, T_X, sum)
ROW_BLOCKS(sum_row_blocks, sum)
ROW_PARTS(sum_row_parts, sum)
ROW_WARPS(sum_row_join, float, sum)
ROW_WARPS(max_row_warps, T_X, maximum)
ROW_BLOCKS(max_row_blocks, maximum)
ROW_PARTS(max_row_parts, maximum)
ROW_WARPS(max_row_join, float, maximum)

/* --- columns: a block sums its share of the rows for ACROSS * M columns, 256 bytes of a row;
 * ACROSS by DOWN threads; out (gridDim.y, n) --- */

template <int M, int ACROSS> DEVICE void columns(const T_X *x, float *out, i64 rows, i64 n)
{
    enum { DOWN = THREADS / ACROSS };
    __shared__ float part[DOWN][ACROSS * M];
    const int across = threadIdx.x % ACROSS, down = threadIdx.x / ACROSS;
    const i64 stripe = (i64)blockIdx.x * ACROSS * M, column = stripe + across * M;
    const i64 last = rows * (blockIdx.y + 1) / gridDim.y;
    i64 row = rows * blockIdx.y / gridDim.y + down;
    floats<M> zero, s;
    UNROLL for (int e = 0; e < M; e++) s[e] = zero[e] = 0;
    if (column < n) {
        for (; row < last; row += 4 * DOWN) {
            floats<M> a[4];
            UNROLL for (int k = 0; k < 4; k++) {
                if (row + k * DOWN < last)
                    a[k] = load<M>(x + (row + k * DOWN) * n + column);
                else
                    a[k] = zero;
            }
            UNROLL for (int e = 0; e < M; e++) s[e] += (a[0][e] + a[1][e]) + (a[2][e] + a[3][e]);
        }
    }
    UNROLL for (int e = 0; e < M; e++) part[down][across * M + e] = s[e];
    __syncthreads();
    if (threadIdx.x >= ACROSS * M || stripe + threadIdx.x >= n) return;
    floats<4> t = {{0, 0, 0, 0}};
    UNROLL for (int d = 0; d < DOWN; d++) t[d % 4] += part[d][threadIdx.x];
    out[(i64)blockIdx.y * n + stripe + threadIdx.x] = tree<sum>(t);
}

/* For rows of whole vectors; sum_columns_any takes any n. */
KERNEL(THREADS) sum_columns(const T_X *x, float *out, i64 rows, i64 n)
{
    columns<N, 16>(x, out, rows, n);
}
KERNEL(THREADS) sum_columns_any(const T_X *x, float *out, i64 rows, i64 n)
{
    columns<1, 64>(x, out, rows, n);
}

/* part (parts, n) -> y (n): one column per lane; the warps share the parts. */
KERNEL(THREADS) sum_columns_join(const float *part, float *y, int parts, i64 n)
{
    __shared__ float sums[WARPS][WARP];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const i64 column = (i64)blockIdx.x * WARP + lane;
    float s = 0;
    if (column < n) {
#pragma unroll 8
        for (int p = warp; p < parts; p += WARPS) s += part[p * n + column];
    }
    sums[warp][lane] = s;
    __syncthreads();
    if (warp || column >= n) return;
    floats<WARPS> t;
    UNROLL for (int w = 0; w < WARPS; w++) t[w] = sums[w][lane];
    y[column] = tree<sum>(t);
}

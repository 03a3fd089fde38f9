/* mask.cu - elements masked by position, or dropped at random.
 *
 * T_X: type of x and y, which may share memory. Bound by memory: x is read once (not where the
 * causal mask hides it), y written once. */
#include "elements.cuh"

enum { N = per_access<T_X>::N, STEP = THREADS * N, TIMES = 16 / N };

/* Columns from `open` on become `value`; CAUSAL: elements above the diagonal of square matrices. */
template <bool CAUSAL>
DEVICE void mask(const T_X *x, T_X *y, i64 n, int columns, int open, float value)
{
    const i64 first = first_element<N, TIMES>(), tail = tail_element<N>(n);
    floats<N> a[TIMES];
    coord at[TIMES];
    UNROLL for (int k = 0; k < TIMES; k++) {
        if (first + k * STEP + N > n) continue;
        at[k] = coord_of(first + k * STEP, columns);
        if (CAUSAL) at[k].row = coord_of(at[k].row, columns).column;
        const int last_open = CAUSAL ? (int)at[k].row : open - 1;
        const bool hidden = at[k].column > last_open && at[k].column + N <= columns;
        if (!hidden) a[k] = load<N>(x + first + k * STEP);
    }
    UNROLL for (int k = 0; k < TIMES; k++) {
        if (first + k * STEP + N > n) continue;
        int row = (int)at[k].row, column = at[k].column;
        UNROLL for (int e = 0; e < N; e++) {
            if (column > (CAUSAL ? row : open - 1)) a[k][e] = value;
            if (++column == columns) {
                column = 0;
                if (CAUSAL && ++row == columns) row = 0;
            }
        }
        store<N>(y + first + k * STEP, a[k]);
    }
    if (tail < n) {
        coord p = coord_of(tail, columns);
        int last_open = CAUSAL ? coord_of(p.row, columns).column : open - 1;
        y[tail] = to<T_X>(p.column > last_open ? value : to_float(x[tail]));
    }
}

KERNEL(THREADS) causal_mask(const T_X *x, T_X *y, i64 n, int columns, float value)
{
    mask<true>(x, y, n, columns, 0, value);
}
KERNEL(THREADS) column_mask(const T_X *x, T_X *y, i64 n, int columns, int open, float value)
{
    mask<false>(x, y, n, columns, open, value);
}

/* --- dropout by element; MASK: the mask alone, x is not read --- */

template <bool MASK>
DEVICE void drop_elements(const T_X *x, const int *step, T_X *y, i64 n, u32 seed, u32 site,
                          int threshold)
{
    const i64 first = first_element<N, TIMES>(), tail = tail_element<N>(n);
    floats<N> a[TIMES];
    UNROLL for (int k = 0; k < TIMES; k++) {
        if (MASK) a[k] = all_of<N>(1);
        if (!MASK && first + k * STEP + N <= n) a[k] = load<N>(x + first + k * STEP);
    }
    random_bytes<N, TIMES> d = random_elements<N, TIMES>(first, seed, site, (u32)*step);
    UNROLL for (int k = 0; k < TIMES; k++) {
        if (first + k * STEP + N > n) continue;
        UNROLL for (int e = 0; e < N; e++) a[k][e] *= keep_factor(d, k, e, threshold);
        store<N>(y + first + k * STEP, a[k]);
    }
    if (tail < n)
        y[tail] = to<T_X>((MASK ? 1 : to_float(x[tail])) *
                          keep_factor_at(tail, seed, site, (u32)*step, threshold));
}

KERNEL(THREADS)
dropout(const T_X *x, const int *step, T_X *y, i64 n, u32 seed, u32 site, int threshold)
{
    drop_elements<false>(x, step, y, n, seed, site, threshold);
}
KERNEL(THREADS) dropout_mask(const int *step, T_X *y, i64 n, u32 seed, u32 site, int threshold)
{
    drop_elements<true>(nullptr, step, y, n, seed, site, threshold);
}

/* --- dropout of matrices, with attention's random bytes: a block has 16 tiles of 16 x 16 --- */

enum { TILE = 16, TILES = 16 };

/* Byte [row][tile][column] of the tiles from `first` on; each thread generates one 4 x 4 set. */
DEVICE void random_tiles(u8 (*byte)[TILES][TILE], i64 first, int down, int across, u32 seed,
                         u32 site, u32 step)
{
    const int tile = threadIdx.x / TILE, a = threadIdx.x / 4 % 4, b = threadIdx.x % 4;
    const coord strip = coord_of(first + tile, across), head = coord_of(strip.row, down);
    words d = dropout_attention(seed, site, step, (u32)head.row, head.column, strip.column, a, b);
    UNROLL for (int i = 0; i < 4; i++) {
        u8 *at = &byte[2 * a + i % 2 + i / 2 * 8][tile][2 * b];
        *(u16 *)at = (u16)d.w[i];
        *(u16 *)(at + 8) = (u16)(d.w[i] >> 16);
    }
}

/* x, y (matrices, rows, columns). M elements per access: N if `columns` is a multiple of N, else 1.
 */
template <int M, bool MASK>
DEVICE void drop_tiles(const T_X *x, T_X *y, const u8 (*byte)[TILES][TILE], i64 first, int matrices,
                       int rows, int columns, int threshold)
{
    enum { PARTS = TILE / M };
    const int down = ceil_div(rows, TILE), across = ceil_div(columns, TILE);
    const float scale = dropout_scale(threshold);
    UNROLL for (int k = 0; k < PARTS; k++) {
        const int v = threadIdx.x + k * THREADS;
        const int tile = v / PARTS % TILES, part = v % PARTS * M, row = v / PARTS / TILES;
        const coord strip = coord_of(first + tile, across), head = coord_of(strip.row, down);
        const int q = head.column * TILE + row, column = strip.column * TILE + part;
        if (head.row >= matrices || q >= rows || column >= columns) continue;
        const i64 i = (head.row * rows + q) * columns + column;
        floats<M> a = MASK ? all_of<M>(1) : load<M>(x + i);
        UNROLL for (int e = 0; e < M; e++)
            a[e] *= byte[row][tile][part + e] >= threshold ? scale : 0.0f;
        store<M>(y + i, a);
    }
}

template <bool MASK>
DEVICE void drop_matrices(const T_X *x, const int *step, T_X *y, int matrices, int rows,
                          int columns, u32 seed, u32 site, int threshold)
{
    __shared__ __align__(16) u8 byte[TILE][TILES][TILE];
    const i64 first = (i64)blockIdx.x * TILES;
    random_tiles(byte, first, ceil_div(rows, TILE), ceil_div(columns, TILE), seed, site,
                 (u32)*step);
    __syncthreads();
    if (columns % N == 0)
        drop_tiles<N, MASK>(x, y, byte, first, matrices, rows, columns, threshold);
    else
        drop_tiles<1, MASK>(x, y, byte, first, matrices, rows, columns, threshold);
}

KERNEL(THREADS)
dropout_matrices(const T_X *x, const int *step, T_X *y, int matrices, int rows, int columns,
                 u32 seed, u32 site, int threshold)
{
    drop_matrices<false>(x, step, y, matrices, rows, columns, seed, site, threshold);
}
KERNEL(THREADS)
dropout_mask_matrices(const int *step, T_X *y, int matrices, int rows, int columns, u32 seed,
                      u32 site, int threshold)
{
    drop_matrices<true>(nullptr, step, y, matrices, rows, columns, seed, site, threshold);
}

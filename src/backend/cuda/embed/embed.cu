/* embed.cu - gathers rows of tables, and elements of rows, by ids.
 *
 * T_X: type of the tables, of x and of dy; T_Y: type of the result. Bound by memory: the result is
 * written once; a table row is read per id, often from cache. An id outside its table gives NaN; in
 * pick_grad, which gathers nothing, such an id gives a row of zeros. */
#include "elements.cuh"

enum { N = sizeof(T_X) > sizeof(T_Y) ? per_access<T_X>::N : per_access<T_Y>::N };
enum { STEP = THREADS * N, TIMES = 16 / N };
#define NOT_A_NUMBER __int_as_float(0x7fffffff)

/* N elements of table row `id`, from `column` on. */
DEVICE floats<N> of_row(const T_X *table, int id, int rows, int C, int column)
{
    if ((u32)id >= (u32)rows) return all_of<N>(NOT_A_NUMBER);
    return load<N>(table + (i64)id * C + column);
}
DEVICE float one_of_row(const T_X *table, int id, int rows, int C, int column)
{
    return (u32)id < (u32)rows ? to_float(table[(i64)id * C + column]) : NOT_A_NUMBER;
}

/* table (rows,C), ids -> y (...,C), n elements in all; C is a multiple of N */
KERNEL(THREADS) embed(const T_X *table, const int *ids, T_Y *y, i64 n, int rows, int C)
{
    const i64 first = first_element<N, TIMES>();
    floats<N> a[TIMES];
    UNROLL for (int k = 0; k < TIMES; k++) {
        if (first + k * STEP >= n) continue;
        coord p = coord_of(first + k * STEP, C);
        a[k] = of_row(table, ids[p.row], rows, C, p.column);
    }
    UNROLL for (int k = 0; k < TIMES; k++)
        if (first + k * STEP < n) store<N>(y + first + k * STEP, a[k]);
}

/* The same for any C, one element per thread. */
KERNEL(THREADS) embed_any(const T_X *table, const int *ids, T_Y *y, i64 n, int rows, int C)
{
    const i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    coord p = coord_of(i, C);
    y[i] = to<T_Y>(one_of_row(table, ids[p.row], rows, C, p.column));
}

/* --- sums of rows of two tables. A thread computes SUMMED columns of one position: it reads these
 * columns of the position's row in the second table once, then loops over sequences, with the loads
 * of TOGETHER sequences in flight. --- */

enum { SUMMED = 8, TOGETHER = 4 };

/* Part of a row. The load is issued even for an invalid id, so no branch separates the loads. */
DEVICE floats<SUMMED> part_of_row(const T_X *table, int id, int rows, int C, int column)
{
    const bool there = (u32)id < (u32)rows;
    floats<SUMMED> a = load<SUMMED>(table + (i64)(there ? id : 0) * C + column);
    UNROLL for (int e = 0; e < SUMMED; e++) a[e] = there ? a[e] : NOT_A_NUMBER;
    return a;
}
/* Dropout bytes for a part of a row in each of TOGETHER sequences, `between` elements apart. One
 * Philox call gives 16 bytes, enough for two neighboring threads. The even thread calls Philox for
 * even k and the odd thread for odd k, and they exchange halves by a shuffle, so all threads of a
 * warp must call this function. */
struct bytes {
    u32 w[TOGETHER][SUMMED / 4];
};
DEVICE bytes random_parts(i64 first, i64 between, u32 seed, u32 site, u32 step)
{
    const bool odd = threadIdx.x & 1;
    bytes r;
    UNROLL for (int k = 0; k < TOGETHER; k += 2) {
        const words d =
            dropout_pointwise(seed, site, step, (u64)(first + (k + odd) * between) / 16);
        const u32 low = __shfl_xor_sync(~0u, odd ? d.w[0] : d.w[2], 1);
        const u32 high = __shfl_xor_sync(~0u, odd ? d.w[1] : d.w[3], 1);
        r.w[k][0] = odd ? low : d.w[0], r.w[k][1] = odd ? high : d.w[1];
        r.w[k + 1][0] = odd ? d.w[2] : low, r.w[k + 1][1] = odd ? d.w[3] : high;
    }
    return r;
}

/* tokens (rows,C), ids (sequences,T), positions (length,C), position_ids (T), step -> y
 * (sequences,T,C) with dropout; C is a multiple of 16 */
KERNEL(THREADS)
embed_sum(const T_X *tokens, const int *ids, const T_X *positions, const int *position_ids,
          const int *step, T_Y *y, int sequences, int rows, int length, int T, int C, u32 seed,
          u32 site, int threshold)
{
    const coord p = coord_of((i64)blockIdx.x * THREADS + threadIdx.x, C / SUMMED);
    /* Threads past the last position compute the first position and store nothing, so that whole
     * warps reach random_parts. */
    const bool there = p.row < T;
    const int t = there ? (int)p.row : 0, column = p.column * SUMMED;
    const i64 between = (i64)T * C;
    const floats<SUMMED> position = part_of_row(positions, position_ids[t], length, C, column);
    for (int s = blockIdx.y * TOGETHER; s < sequences; s += gridDim.y * TOGETHER) {
        const i64 first = ((i64)s * T + t) * C + column;
        int id[TOGETHER];
        floats<SUMMED> a[TOGETHER];
        UNROLL for (int k = 0; k < TOGETHER; k++)
            id[k] = ids[(i64)min(s + k, sequences - 1) * T + t];
        UNROLL for (int k = 0; k < TOGETHER; k++)
            a[k] = part_of_row(tokens, id[k], rows, C, column);
        bytes d;
        if (threshold) d = random_parts(first, between, seed, site, (u32)*step);
        UNROLL for (int k = 0; k < TOGETHER; k++) {
            if (!there || s + k >= sequences) continue;
            UNROLL for (int e = 0; e < SUMMED; e++) {
                const bool kept = !threshold || byte_at(d.w[k][e / 4], e % 4) >= threshold;
                a[k][e] += position[e];
                if (threshold) a[k][e] *= kept ? dropout_scale(threshold) : 0.0f;
            }
            store<SUMMED>(y + first + k * between, a[k]);
        }
    }
}

/* The same for any C, one element per thread; n elements in all. */
KERNEL(THREADS)
embed_sum_any(const T_X *tokens, const int *ids, const T_X *positions, const int *position_ids,
              const int *step, T_Y *y, i64 n, int rows, int length, int T, int C, u32 seed,
              u32 site, int threshold)
{
    const i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    coord p = coord_of(i, C);
    float a = one_of_row(tokens, ids[p.row], rows, C, p.column) +
              one_of_row(positions, position_ids[coord_of(p.row, T).column], length, C, p.column);
    y[i] = to<T_Y>(threshold ? a * keep_factor_at(i, seed, site, (u32)*step, threshold) : a);
}

/* x (rows,V), ids (rows) -> y (rows) */
KERNEL(THREADS) pick(const T_X *x, const int *ids, T_Y *y, i64 rows, int V)
{
    const i64 row = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (row < rows)
        y[row] = to<T_Y>((u32)ids[row] < (u32)V ? to_float(x[row * V + ids[row]]) : NOT_A_NUMBER);
}

/* ids (rows), dy (rows) -> y (rows,V), n elements: dy at the id, else 0. Bound by writing y. */
KERNEL(THREADS) pick_grad(const int *ids, const T_X *dy, T_Y *y, i64 n, int V)
{
    const i64 first = first_element<N, TIMES>(), tail = tail_element<N>(n);
    UNROLL for (int k = 0; k < TIMES; k++) {
        if (first + k * STEP + N > n) continue;
        floats<N> a = all_of<N>(0);
        coord p = coord_of(first + k * STEP, V);
        int id = ids[p.row];
        UNROLL for (int e = 0; e < N; e++) {
            if (p.column == id) a[e] = to_float(dy[p.row]);
            if (++p.column < V) continue;
            p.column = 0;
            p.row++;
            if (e + 1 < N && p.row * V < n) id = ids[p.row];
        }
        store<N>(y + first + k * STEP, a);
    }
    if (tail < n) {
        coord p = coord_of(tail, V);
        y[tail] = p.column == ids[p.row] ? to<T_Y>(to_float(dy[p.row])) : to<T_Y>(0);
    }
}

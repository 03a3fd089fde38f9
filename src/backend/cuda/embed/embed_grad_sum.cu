/* embed_grad_sum.cu - the gradient of a table whose rows were added at the same positions of
 * several sequences, as a position embedding: row v of the table (V,C) sums the rows of dy
 * (sequences,n,C) at the positions whose id is v.
 *
 * T_X: type of dy; the table is float. Bound by memory: dy is read once, the table written once.
 *
 * Usually each position has its own id. So a block handles one position: it loads the position's
 * rows of all sequences first, then searches the ids. The block of the first position of an id
 * writes that id's table row, adding the rows of later positions with the same id; block v writes
 * zeros to row v if no position has id v. A row is cut into stripes of `across` threads of M
 * columns; groups of threads share the sequences. Shapes fix the order: deterministic. Ids outside
 * the table are ignored. */
#include "device.cuh"

#define MOST_THREADS 256
/* TOGETHER, LOADS: rows and ids that a thread loads at once */
enum { N = 16 / (int)sizeof(T_X), TOGETHER = sizeof(T_X) == 2 ? 8 : 4, LOADS = 8 };

/* Adds the rows of sequences first, first + step ... */
template <int M>
DEVICE void add_rows(floats<M> &s, const T_X *dy, i64 between, int first, int step, int sequences)
{
    typedef vector_of<M, T_X> vector;
    for (int i = first; i < sequences; i += TOGETHER * step) {
        vector a[TOGETHER]; /* in memory format: half the registers */
        UNROLL for (int k = 0; k < TOGETHER; k++) {
            if (i + k * step >= sequences) continue;
            UNROLL for (int w = 0; w < vector::TIMES; w++)
                a[k].w[w] = ((const typename vector::word *)(dy + (i + k * step) * between))[w];
        }
        UNROLL for (int k = 0; k < TOGETHER; k++) {
            if (i + k * step >= sequences) continue;
            UNROLL for (int e = 0; e < M; e++) s[e] += to_float(a[k].x[e]);
        }
    }
}

/* Whether an earlier or a later position has the id of position i; whether any position has id i.
 */
struct found {
    bool earlier, later, used;
};
DEVICE found search_ids(const int *ids, int n, int i, int own)
{
    __shared__ int seen[3];
    if (threadIdx.x < 3) seen[threadIdx.x] = 0;
    found f = {false, false, false};
    for (int first = threadIdx.x; first < n; first += LOADS * blockDim.x) {
        int id[LOADS];
        UNROLL for (int k = 0; k < LOADS; k++)
            id[k] = first + k * (int)blockDim.x < n ? ids[first + k * blockDim.x] : -1;
        UNROLL for (int k = 0; k < LOADS; k++) {
            const int at = first + k * (int)blockDim.x;
            if (at >= n) continue;
            f.earlier |= id[k] == own && at < i;
            f.later |= id[k] == own && at > i;
            f.used |= id[k] == i;
        }
    }
    __syncthreads();
    if (f.earlier) seen[0] = 1;
    if (f.later) seen[1] = 1;
    if (f.used) seen[2] = 1;
    __syncthreads();
    f.earlier = seen[0], f.later = seen[1], f.used = seen[2];
    return f;
}

template <int M>
DEVICE void position_sum(const int *ids, const T_X *__restrict__ dy, float *table, int n,
                         int sequences, int V, int C, int across)
{
    __shared__ float sums[MOST_THREADS * M];
    const int groups = blockDim.x / across, group = threadIdx.x / across, i = blockIdx.x;
    const int stripe = blockIdx.y * across * M, lane = threadIdx.x % across,
              column = stripe + lane * M;
    const bool adds = group < groups && column < C;
    const int own = i < n ? ids[i] : -1;
    const i64 between = (i64)n * C;
    floats<M> s;
    UNROLL for (int e = 0; e < M; e++) s[e] = 0;
    if (adds && i < n) add_rows<M>(s, dy + (i64)i * C + column, between, group, groups, sequences);
    const found f = search_ids(ids, n, i, own);
    const bool mine = (u32)own < (u32)V && !f.earlier;
    if (mine && f.later && adds)
        for (int t = i + 1; t < n; t++)
            if (ids[t] == own)
                add_rows<M>(s, dy + (i64)t * C + column, between, group, groups, sequences);
    if (group < groups) store<M>(sums + (group * across + lane) * M, s);
    __syncthreads();
    for (int k = threadIdx.x; k < across * M && stripe + k < C; k += blockDim.x) {
        float sum = 0;
        for (int g = 0; g < groups; g++) sum += sums[g * across * M + k];
        if (mine) table[(i64)own * C + stripe + k] = sum;
        if (i < V && !f.used) table[(i64)i * C + stripe + k] = 0;
    }
}

/* embed_grad_sum is for rows of whole vectors, embed_grad_sum_any for any rows. Block i has
 * position i and table row i, if these exist. */
KERNEL(MOST_THREADS)
embed_grad_sum(const int *ids, const T_X *dy, float *table, int n, int sequences, int V, int C,
               int across)
{
    position_sum<N>(ids, dy, table, n, sequences, V, C, across);
}
KERNEL(MOST_THREADS)
embed_grad_sum_any(const int *ids, const T_X *dy, float *table, int n, int sequences, int V, int C,
                   int across)
{
    position_sum<1>(ids, dy, table, n, sequences, V, C, across);
}

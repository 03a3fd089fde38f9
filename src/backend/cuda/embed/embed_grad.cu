/* embed_grad.cu - the gradient of a table: row v is the sum of the rows of dy (n,C) whose id is v.
 *
 * T_X: type of dy; the table (V,C) is float. Bound by memory: for GPT-2's table 154 MB are written,
 * mostly zeros, and 25 MB of dy are read. There are no atomics; sums are added in the order of the
 * rows of dy, so runs repeat.
 *     order   indices of dy's rows, sorted stably by id, and their ids: each block counts the ids
 *             below its range and sorts those within it
 *     sums    cuts the sorted rows into chunks of CHUNK, so that blocks share a frequent id. An id
 *             within a chunk is finished; one that crosses a border leaves parts. Chunks are small
 *             and add row by row: with few registers, all chunks of 16384 rows are resident. Other
 *             blocks write the table rows without an id: zeros, or rows of `onto`, which may be the
 *             table. All sums are added to `onto` unless it is NULL.
 *     joins   adds the parts, in the block of the first border of each id
 * For small tables `scan` does all: one block per table row searches the ids. Ids outside the table
 * are ignored. */
#include "device.cuh"

#define SORTERS 512
#define RANGE   512 /* most ids of a block */
#define ADDERS  128
#define MOST_SUMMERS 256 /* most threads of an adding block */
#define CHUNK   16
#define SCANNED 2048
enum { N = 4, SORT_WARPS = SORTERS / WARP, ADD_WARPS = ADDERS / WARP };
enum { LOADS = 16 }; /* ids that a lane loads at once */

/* --- order --- */

DEVICE int warp_count(int a)
{
    UNROLL for (int d = WARP / 2; d; d /= 2) a += __shfl_xor_sync(~0u, a, d);
    return a;
}
/* Exclusive prefix sum of `a` over the 512 threads. */
DEVICE int sum_before(int a)
{
    __shared__ int warp_total[SORT_WARPS];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    int s = a, before = 0;
    UNROLL for (int d = 1; d < WARP; d *= 2) {
        int other = __shfl_up_sync(~0u, s, d);
        if (lane >= d) s += other;
    }
    if (lane == WARP - 1) warp_total[warp] = s;
    __syncthreads();
    for (int w = 0; w < warp; w++) before += warp_total[w];
    return before + s - a;
}
DEVICE u32 peers_of(int key)
{
    return __match_any_sync(~0u, key);
}
DEVICE u32 lanes_below()
{
    return (1u << threadIdx.x % WARP) - 1;
}

/* A warp searches the indices first ... last - 1 and appends to `list`, from `at` on and in order,
 * the indices whose id is in low ... low + width - 1. */
DEVICE void collect(const int *__restrict__ ids, int *list, int at, int first, int last, int low,
                    int width)
{
    const int lane = threadIdx.x % WARP;
    for (int i = first; i < last; i += LOADS * WARP) {
        int id[LOADS];
        UNROLL for (int k = 0; k < LOADS; k++)
            id[k] = i + k * WARP + lane < last ? ids[i + k * WARP + lane] : -1;
        UNROLL for (int k = 0; k < LOADS; k++) {
            bool hit = id[k] >= low && id[k] - low < width;
            u32 hits = __ballot_sync(~0u, hit);
            if (hit) list[at + __popc(hits & lanes_below())] = i + k * WARP + lane;
            at += __popc(hits);
        }
    }
}

/* ids (n) -> order (n), indices sorted by id; keys (n), their ids; start (V+1) of each id. list
 * (n): scratch. */
KERNEL_MIN(SORTERS, 2)
embed_order(const int *ids, int *list, int *order, int *keys, int *start, int n, int V, int range)
{
    __shared__ int seen[SORT_WARPS][RANGE], below[SORT_WARPS], within[SORT_WARPS];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int low = blockIdx.x * range, width = V - low < range ? V - low : range;
    const int first = (int)((i64)n * warp / SORT_WARPS),
              last = (int)((i64)n * (warp + 1) / SORT_WARPS);
    int less = 0, in = 0;
#pragma unroll 16
    for (int i = first + lane; i < last; i += WARP) {
        int id = ids[i];
        less += id >= 0 && id < low;
        in += id >= low && id - low < width;
    }
    less = warp_count(less), in = warp_count(in);
    if (lane == 0) below[warp] = less, within[warp] = in;
    for (int k = lane; k < range; k += WARP) seen[warp][k] = 0;
    __syncthreads();
    int base = 0, hits = 0, mine = 0;
    for (int w = 0; w < SORT_WARPS; w++) {
        base += below[w];
        if (w == warp) mine = hits;
        hits += within[w];
    }
    collect(ids, list, base + mine, first, last, low, width);
    __syncthreads();
    /* Counts each id in this warp's share of the list, then computes where the first index of the
     * id goes. */
    const int from = base + (int)((i64)hits * warp / SORT_WARPS),
              to = base + (int)((i64)hits * (warp + 1) / SORT_WARPS);
    for (int j = from; j < to; j += WARP) {
        int key = j + lane < to ? ids[list[j + lane]] - low : -1;
        u32 peers = peers_of(key);
        if (key >= 0 && !(peers & lanes_below())) seen[warp][key] += __popc(peers);
        __syncwarp();
    }
    __syncthreads();
    int key = threadIdx.x, total = 0;
    if (key < width)
        for (int w = 0; w < SORT_WARPS; w++) total += seen[w][key];
    int at = base + sum_before(total);
    if (key < width) {
        start[low + key] = at;
        if (low + key == V - 1) start[V] = at + total;
        for (int w = 0; w < SORT_WARPS; w++) {
            int count = seen[w][key];
            seen[w][key] = at;
            at += count;
        }
    }
    __syncthreads();
    for (int j = from; j < to; j += WARP) {
        int index = j + lane < to ? list[j + lane] : 0, k = j + lane < to ? ids[index] - low : -1;
        u32 peers = peers_of(k);
        if (k >= 0) {
            const int to = seen[warp][k] + __popc(peers & lanes_below());
            order[to] = index, keys[to] = low + k;
        }
        __syncwarp();
        if (k >= 0 && !(peers & lanes_below())) seen[warp][k] += __popc(peers);
        __syncwarp();
    }
}

/* --- sums --- */

/* Evict-first: the data is not read again soon. */
template <int M> DEVICE void store_last(float *p, const floats<M> &a)
{
    if constexpr (M == 4)
        __stcs((float4 *)p, make_float4(a[0], a[1], a[2], a[3]));
    else
        store<M>(p, a);
}

/* Sums chunk `chunk` for M columns per thread of a stripe. part (chunks,2,C): the sum of the id
 * that started before the chunk and, if this is another id, the sum of the id that continues after
 * the chunk. */
template <int M>
DEVICE void chunk_sums(const int *order, const int *keys, const T_X *__restrict__ dy,
                       const float *onto, float *table, float *part, int chunk, int stripe,
                       int total, int C)
{
    /* key: of the row before the chunk, of each row of the chunk, of the row after the chunk */
    __shared__ int index[CHUNK], key[CHUNK + 2];
    const int first = chunk * CHUNK, count = total - first < CHUNK ? total - first : CHUNK;
    if (count <= 0) return;
    if (threadIdx.x < CHUNK + 2) {
        const int at = first + (int)threadIdx.x - 1;
        key[threadIdx.x] = at >= 0 && at < total ? keys[at] : -1;
        if (threadIdx.x < count) index[threadIdx.x] = order[first + threadIdx.x];
    }
    __syncthreads();
    const int column = (stripe * (int)blockDim.x + threadIdx.x) * M;
    if (column >= C) return;
    bool started = key[0] == key[1];
    floats<M> s;
    UNROLL for (int e = 0; e < M; e++) s[e] = 0;
    for (int j = 0; j < count; j++) {
        const int v = key[j + 1];
        const bool continues = key[j + 2] == v, border = j == count - 1,
                   whole = !started && !continues;
        const floats<M> a = load_streaming<M>(dy + (i64)index[j] * C + column);
        floats<M> there;
        if (onto && whole) there = load_streaming<M>(onto + (i64)v * C + column);
        UNROLL for (int e = 0; e < M; e++) s[e] += a[e];
        if (continues && !border) continue;
        if (onto && whole)
            UNROLL for (int e = 0; e < M; e++) s[e] += there[e];
        float *to = started     ? part + (i64)chunk * 2 * C
                    : continues ? part + ((i64)chunk * 2 + 1) * C
                                : table + (i64)v * C;
        store_last<M>(to + column, s);
        started = false;
        UNROLL for (int e = 0; e < M; e++) s[e] = 0;
    }
}

/* Writes the table rows without an id: zeros, or rows of `onto`. */
template <int M>
DEVICE void other_rows(const int *start, const float *onto, float *table, int first, int step,
                       int V, int C)
{
    if (onto == table) return;
    floats<M> zero;
    UNROLL for (int e = 0; e < M; e++) zero[e] = 0;
    for (int v = first; v < V; v += step) {
        if (start[v] != start[v + 1]) continue;
        for (int i = threadIdx.x * M; i < C; i += blockDim.x * M) {
            const i64 at = (i64)v * C + i;
            store_last<M>(table + at, onto ? load<M>(onto + at) : zero);
        }
    }
}

/* The first chunks * stripes blocks add; the other blocks write the table rows without an id. M
 * columns per thread. */
template <int M>
DEVICE void sums(const int *order, const int *keys, const int *start, const T_X *dy,
                 const float *onto, float *table, float *part, int chunks, int stripes, int V,
                 int C)
{
    const int block = blockIdx.x, adding = chunks * stripes;
    if (block < adding)
        chunk_sums<M>(order, keys, dy, onto, table, part, block / stripes, block % stripes,
                      start[V], C);
    else
        other_rows<M>(start, onto, table, block - adding, gridDim.x - adding, V, C);
}

/* For rows of whole vectors; the _any entries take any C. */
KERNEL(MOST_SUMMERS)
embed_sums(const int *order, const int *keys, const int *start, const T_X *dy, const float *onto,
           float *table, float *part, int chunks, int stripes, int V, int C)
{
    sums<N>(order, keys, start, dy, onto, table, part, chunks, stripes, V, C);
}
KERNEL(MOST_SUMMERS)
embed_sums_any(const int *order, const int *keys, const int *start, const T_X *dy,
               const float *onto, float *table, float *part, int chunks, int stripes, int V, int C)
{
    sums<1>(order, keys, start, dy, onto, table, part, chunks, stripes, V, C);
}

/* --- joins: block x has the border after chunk x --- */

template <int M>
DEVICE void joins(const int *keys, const int *start, const float *onto, float *table,
                  const float *__restrict__ part, int V, int C)
{
    const int chunk = blockIdx.x, border = (chunk + 1) * CHUNK,
              column = (blockIdx.y * (int)blockDim.x + threadIdx.x) * M;
    if (border >= start[V] || column >= C) return;
    const int v = keys[border];
    if (keys[border - 1] != v || start[v] < chunk * CHUNK) return;
    const int last = (start[v + 1] - 1) / CHUNK;
    const i64 at = (i64)v * C + column;
    /* An id that starts exactly at its chunk's start also uses the second part. */
    floats<M> s = load<M>(part + ((i64)chunk * 2 + 1) * C + column);
#pragma unroll 8
    for (int c = chunk + 1; c <= last; c++) {
        const floats<M> a = load<M>(part + (i64)c * 2 * C + column);
        UNROLL for (int e = 0; e < M; e++) s[e] += a[e];
    }
    if (onto) {
        const floats<M> there = load<M>(onto + at);
        UNROLL for (int e = 0; e < M; e++) s[e] += there[e];
    }
    store<M>(table + at, s);
}

KERNEL(MOST_SUMMERS) embed_joins(const int *keys, const int *start, const float *onto, float *table,
                                 const float *part, int V, int C)
{
    joins<N>(keys, start, onto, table, part, V, C);
}
KERNEL(MOST_SUMMERS)
embed_joins_any(const int *keys, const int *start, const float *onto, float *table,
                const float *part, int V, int C)
{
    joins<1>(keys, start, onto, table, part, V, C);
}

/* --- small tables --- */

KERNEL(ADDERS)
embed_scan(const float *onto, const int *ids, const T_X *__restrict__ dy, float *table, int n,
           int C)
{
    __shared__ int list[SCANNED], counts[ADD_WARPS];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, v = blockIdx.x;
    const int first = n * warp / ADD_WARPS, last = n * (warp + 1) / ADD_WARPS;
    int at = first;
    for (int i = first; i < last; i += WARP) {
        bool hit = i + lane < last && ids[i + lane] == v;
        u32 hits = __ballot_sync(~0u, hit);
        if (hit) list[at + __popc(hits & ((1u << lane) - 1))] = i + lane;
        at += __popc(hits);
    }
    if (lane == 0) counts[warp] = at - first;
    __syncthreads();
    for (int column = threadIdx.x; column < C; column += ADDERS) {
        float s = 0;
        for (int w = 0; w < ADD_WARPS; w++)
            for (int j = 0; j < counts[w]; j++)
                s += to_float(dy[(i64)list[n * w / ADD_WARPS + j] * C + column]);
        const i64 at = (i64)v * C + column;
        table[at] = onto ? onto[at] + s : s;
    }
}

/* embed_few.cu - the gradient of a table with few rows: row v is the sum of the rows of dy (n,C)
 * whose id is v. C is a multiple of 64. T_X: type of dy; WARPS: of a block. The table is float.
 *
 * A block has 64 columns and a share of the rows of dy. Each warp keeps all V table rows of these
 * columns in shared memory, two columns a lane, and adds its rows of dy in turn. The sum over the
 * warps is a part (V,C), and embed_parts sums the parts. There are no atomics and the grid fixes
 * the order: deterministic. Ids outside the table go to an extra row.
 *
 * dy is read once. A warp has two shared-memory additions in flight, so many warps are needed.
 * Bound by the latency of these additions and, where V allows few warps, by memory latency. */
#include "device.cuh"

enum { THREADS = WARPS * WARP, WIDE = 64, BATCH = 16 };
extern __shared__ __align__(1024) u8 shared_memory[];

/* Two columns in memory format. */
typedef word_of<2 * (int)sizeof(T_X)>::type raw;
DEVICE float2 floats_of(u32 two)
{
    return make_float2(__uint_as_float(two << 16), __uint_as_float(two & 0xffff0000u));
}
DEVICE float2 floats_of(uint2 two)
{
    return make_float2(__uint_as_float(two.x), __uint_as_float(two.y));
}

/* Adds 32 rows of dy or, unless ALL, `left` rows. `mine` is the byte offset of this lane's table
 * row. */
template <bool ALL> DEVICE void add_rows(u8 *table, const T_X *p, i64 pitch, int mine, int left)
{
    UNROLL for (int half = 0; half < WARP; half += BATCH) {
        raw a[BATCH];
        UNROLL for (int k = 0; k < BATCH; k++) {
            a[k] = ALL || half + k < left ? __ldcs((const raw *)p) : raw();
            p += pitch;
        }
        UNROLL for (int k = 0; k < BATCH; k += 2) {
            float2 *first = (float2 *)(table + __shfl_sync(~0u, mine, half + k));
            float2 *second = (float2 *)(table + __shfl_sync(~0u, mine, half + k + 1));
            const float2 one = floats_of(a[k]), next = floats_of(a[k + 1]);
            float2 s = *first, t = *second;
            s.x += one.x, s.y += one.y;
            if (first == second) t = s;
            t.x += next.x, t.y += next.y;
            *first = s;
            *second = t;
        }
    }
}

/* parts (blocks of y,V,C) */
KERNEL(THREADS)
embed_few(const int *ids, const T_X *dy, float *parts, int n, int V, int C, int share)
{
    enum { ROW = WIDE * (int)sizeof(float) };
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    u8 *table = shared_memory + warp * (V + 1) * ROW + lane * (int)sizeof(float2);
    for (int v = 0; v < V; v++) *(float2 *)(table + v * ROW) = make_float2(0, 0);
    const int begin = blockIdx.y * share, end = min(begin + share, n);
    const int of_warp = ceil_div(end - begin, WARPS), first = begin + warp * of_warp,
              last = min(first + of_warp, end);
    const T_X *p = dy + blockIdx.x * WIDE + lane * 2;
    int next = first + lane < last ? ids[first + lane] : -1;
    for (int at = first; at < last; at += WARP) {
        const int mine = ((u32)next < (u32)V ? next : V) * ROW;
        next = at + WARP + lane < last ? ids[at + WARP + lane] : -1;
        if (at + WARP <= last)
            add_rows<true>(table, p + (i64)at * C, C, mine, 0);
        else
            add_rows<false>(table, p + (i64)at * C, C, mine, last - at);
    }
    __syncthreads();
    const float *all = (const float *)shared_memory;
    float *to = parts + (i64)blockIdx.y * V * C + blockIdx.x * WIDE;
    for (int i = threadIdx.x; i < V * WIDE; i += THREADS) {
        float sum = 0;
        UNROLL for (int w = 0; w < WARPS; w++) sum += all[w * (V + 1) * WIDE + i];
        to[(i64)(i / WIDE) * C + i % WIDE] = sum;
    }
}

/* table (n) = [onto (n) +] the sum of parts (count,n), AT_ONCE in flight; onto: table or NULL. */
enum { ADDERS = 128, AT_ONCE = 24 };
KERNEL(ADDERS) embed_parts(const float *onto, float *table, const float *parts, int count, int n)
{
    const int i = blockIdx.x * ADDERS + threadIdx.x;
    if (i >= n) return;
    const float there = onto ? onto[i] : 0.0f;
    float sum = 0;
    for (int first = 0; first < count; first += AT_ONCE) {
        float a[AT_ONCE];
        UNROLL for (int k = 0; k < AT_ONCE; k++)
            a[k] = first + k < count ? parts[(i64)(first + k) * n + i] : 0.0f;
        UNROLL for (int k = 0; k < AT_ONCE; k++) sum += a[k];
    }
    table[i] = onto ? there + sum : sum;
}

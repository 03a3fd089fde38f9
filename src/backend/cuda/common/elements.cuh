/* elements.cuh - how blocks and threads divide a flat tensor, and the row and column of an element.
 *
 * Each thread of a block of THREADS takes TIMES vectors of N elements. The k-th vectors of all
 * threads are contiguous, so each access of a warp is coalesced. The tail after the last whole
 * vector, fewer than N elements, goes to the first threads of the last block. Tensors start at
 * multiples of 64 bytes, so the vectors of a flat tensor are aligned. */
#pragma once
#include "device.cuh"

#define THREADS 256

/* Elements of a 16-byte access. */
template <typename T> struct per_access {
    enum { N = 16 / (int)sizeof(T) };
};

template <int N, int TIMES> DEVICE i64 first_element()
{
    return ((i64)blockIdx.x * TIMES * THREADS + threadIdx.x) * N;
}
/* This thread's element of the tail, or n if it has none. */
template <int N> DEVICE i64 tail_element(i64 n)
{
    i64 i = n / N * N + threadIdx.x;
    return blockIdx.x == gridDim.x - 1 && i < n ? i : n;
}

template <int N> DEVICE floats<N> all_of(float a)
{
    floats<N> r;
    UNROLL for (int e = 0; e < N; e++) r[e] = a;
    return r;
}

struct coord {
    i64 row;
    int column;
};
/* Most tensors have fewer than 2^32 elements, and 32-bit division is several times cheaper. */
DEVICE coord coord_of(i64 i, int columns)
{
    coord p;
    if (i >> 32)
        p.row = i / columns;
    else
        p.row = (u32)i / (u32)columns;
    p.column = (int)(i - p.row * columns);
    return p;
}
DEVICE void advance(coord &p, int columns)
{
    if (++p.column < columns) return;
    p.column = 0;
    p.row++;
}

/* Random bytes of elements, for dropout. A Philox call returns the bytes of 16 elements, which
 * belong to 16 / N neighboring threads. Each of these threads makes the call for a different
 * vector k, and the threads exchange words by shuffles, so all threads of a warp must call this
 * function. `first` is the result of first_element. */
template <int N, int TIMES> struct random_bytes {
    u32 w[TIMES][N / 4];
};
template <int N, int TIMES>
DEVICE random_bytes<N, TIMES> random_elements(i64 first, u32 seed, u32 site, u32 step)
{
    const int SHARE = 16 / N, lane = threadIdx.x % WARP, mine = lane % SHARE;
    static_assert(N >= 4 && TIMES % (16 / N) == 0, "a draw for each group of times");
    random_bytes<N, TIMES> r;
    UNROLL for (int k = 0; k < TIMES; k += SHARE) {
        words d =
            dropout_pointwise(seed, site, step, (u64)(first + (i64)(k + mine) * THREADS * N) / 16);
        UNROLL for (int s = 0; s < SHARE; s++) {
            u32 from[4];
            UNROLL for (int j = 0; j < 4; j++) from[j] = __shfl_sync(~0u, d.w[j], lane - mine + s);
            UNROLL for (int j = 0; j < N / 4; j++) {
                u32 w = from[j];
                UNROLL for (int m = 1; m < SHARE; m++) w = mine == m ? from[m * (N / 4) + j] : w;
                r.w[k + s][j] = w;
            }
        }
    }
    return r;
}
/* The factor of element e of vector k: 0 or the dropout scale. */
template <int N, int TIMES>
DEVICE float keep_factor(const random_bytes<N, TIMES> &d, int k, int e, int threshold)
{
    return byte_at(d.w[k][e / 4], e % 4) >= threshold ? dropout_scale(threshold) : 0.0f;
}
DEVICE float keep_factor_at(i64 i, u32 seed, u32 site, u32 step, int threshold)
{
    words d = dropout_pointwise(seed, site, step, (u64)i / 16);
    u32 low = i & 4 ? d.w[1] : d.w[0], high = i & 4 ? d.w[3] : d.w[2];
    return byte_at(i & 8 ? high : low, (int)(i % 4)) >= threshold ? dropout_scale(threshold) : 0.0f;
}

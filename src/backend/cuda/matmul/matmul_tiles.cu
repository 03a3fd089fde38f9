/* Matmuls on FMA units, for machines without cuBLASLt: C = op(A) op(B) [+ bias], any shape.
 *
 * A (M,K) or with TA (K,M), B (K,N) or with TB (N,K), C (M,N), all row-major; bias (N) or NULL.
 * T_A: type of A and B. A block computes a 128 x 64 tile of C, 16 of K at a time through shared
 * memory, while the next 16 are loaded. A thread has 8 x 4 f32 sums, each in the order of K. Bound
 * by FMAs (32 per three 16-byte shared-memory reads): about half of the f32 peak. */
#include "device.cuh"

enum { TILE_M = 128, TILE_N = 64, TILE_K = 16, THREADS = 256, EACH_M = 8, EACH_N = 4, PAD = 4 };
enum { LOADS_A = TILE_M * TILE_K / THREADS, LOADS_B = TILE_N * TILE_K / THREADS };

/* Position of a thread's i-th element of a tile (ACROSS, TILE_K); loads are coalesced. */
template <int ACROSS, bool K_IS_INNER> DEVICE void element_of(int i, int *across, int *k)
{
    enum { INNER = K_IS_INNER ? TILE_K : ACROSS };
    int inner = threadIdx.x % INNER, outer = threadIdx.x / INNER + i * (THREADS / INNER);
    *across = K_IS_INNER ? outer : inner;
    *k = K_IS_INNER ? inner : outer;
}

/* Loads a thread's elements of a tile. Elements outside the matrix are 0. */
template <int ACROSS, int LOADS, bool K_IS_INNER>
DEVICE void load_tile(float (&to)[LOADS], const T_A *p, int first, int across_all, int k_first,
                      int k_all)
{
    UNROLL for (int i = 0; i < LOADS; i++) {
        int across, k;
        element_of<ACROSS, K_IS_INNER>(i, &across, &k);
        across += first, k += k_first;
        i64 at = K_IS_INNER ? (i64)across * k_all + k : (i64)k * across_all + across;
        to[i] = across < across_all && k < k_all ? to_float(p[at]) : 0;
    }
}

template <int ACROSS, int LOADS, bool K_IS_INNER>
DEVICE void store_tile(float *tile, const float (&from)[LOADS])
{
    UNROLL for (int i = 0; i < LOADS; i++) {
        int across, k;
        element_of<ACROSS, K_IS_INNER>(i, &across, &k);
        tile[k * (ACROSS + PAD) + across] = from[i];
    }
}

DEVICE void multiply(float (&sum)[EACH_M][EACH_N], const float *tile_a, const float *tile_b)
{
    int m = threadIdx.x / (TILE_N / EACH_N) * EACH_M, n = threadIdx.x % (TILE_N / EACH_N) * EACH_N;
#pragma unroll 4
    for (int k = 0; k < TILE_K; k++) {
        floats<EACH_M> a = load<EACH_M>(tile_a + k * (TILE_M + PAD) + m);
        floats<EACH_N> b = load<EACH_N>(tile_b + k * (TILE_N + PAD) + n);
        UNROLL for (int i = 0; i < EACH_M; i++)
            UNROLL for (int j = 0; j < EACH_N; j++) sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
    }
}

DEVICE void write(T_C *c, const T_BIAS *bias, const float (&sum)[EACH_M][EACH_N], int m0, int n0,
                  int M, int N)
{
    m0 += threadIdx.x / (TILE_N / EACH_N) * EACH_M, n0 += threadIdx.x % (TILE_N / EACH_N) * EACH_N;
    UNROLL for (int i = 0; i < EACH_M; i++)
        UNROLL for (int j = 0; j < EACH_N; j++) {
            int m = m0 + i, n = n0 + j;
            if (m < M && n < N)
                c[(i64)m * N + n] = to<T_C>(sum[i][j] + (bias ? to_float(bias[n]) : 0));
        }
}

/* The x index of a block selects the tile of C, row by row; the y index selects the first matrix of
 * the batch. The block then processes every gridDim.y-th matrix. */
KERNEL(256)
matmul(const T_A *a, const T_A *b, const T_BIAS *bias, T_C *c, int M, int N, int K, int batch)
{
    __shared__ __align__(16) float tile_a[TILE_K * (TILE_M + PAD)], tile_b[TILE_K * (TILE_N + PAD)];
    int across = ceil_div(N, TILE_N);
    int m0 = blockIdx.x / across * TILE_M, n0 = blockIdx.x % across * TILE_N;
    for (int z = blockIdx.y; z < batch; z += gridDim.y) {
        const T_A *az = a + (i64)z * M * K, *bz = b + (i64)z * K * N;
        float sum[EACH_M][EACH_N] = {}, next_a[LOADS_A], next_b[LOADS_B];
        load_tile<TILE_M, LOADS_A, !TA>(next_a, az, m0, M, 0, K);
        load_tile<TILE_N, LOADS_B, TB>(next_b, bz, n0, N, 0, K);
        for (int k0 = 0; k0 < K; k0 += TILE_K) {
            __syncthreads(); /* waits for the threads that still read the tiles */
            store_tile<TILE_M, LOADS_A, !TA>(tile_a, next_a);
            store_tile<TILE_N, LOADS_B, TB>(tile_b, next_b);
            __syncthreads();
            load_tile<TILE_M, LOADS_A, !TA>(next_a, az, m0, M, k0 + TILE_K, K);
            load_tile<TILE_N, LOADS_B, TB>(next_b, bz, n0, N, k0 + TILE_K, K);
            multiply(sum, tile_a, tile_b);
        }
        write(c + (i64)z * M * N, bias, sum, m0, n0, M, N);
    }
}

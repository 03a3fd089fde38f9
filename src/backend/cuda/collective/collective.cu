/* collective.cu - sums floats over ranks that share the GPU, in the order of the ranks.
 *
 * Compiled with RANKS. Sums elements first ... end - 1, where `first` is a multiple of 16, and
 * writes the sums to the memories of ranks to_first ... to_end - 1. Bound by memory: for each
 * element RANKS floats are read, and one is written for each rank that gets the sum. */
#include "device.cuh"

#define THREADS 256
enum { N = 4 }; /* 16 bytes per access */

KERNEL(THREADS)
sum_ranks(float *rank0, float *rank1, float *rank2, float *rank3, float *rank4, float *rank5,
          float *rank6, float *rank7, i64 first, i64 end, int to_first, int to_end)
{
    float *const all[] = {rank0, rank1, rank2, rank3, rank4, rank5, rank6, rank7};
    const i64 i = first + ((i64)blockIdx.x * THREADS + threadIdx.x) * N;
    if (i + N <= end) {
        floats<N> x[RANKS];
        UNROLL for (int r = 0; r < RANKS; r++) x[r] = load<N>(all[r] + i);
        UNROLL for (int r = 1; r < RANKS; r++)
            UNROLL for (int e = 0; e < N; e++) x[0][e] += x[r][e];
        UNROLL for (int r = 0; r < RANKS; r++)
            if (r >= to_first && r < to_end) store<N>(all[r] + i, x[0]);
        return;
    }
    for (i64 k = i; k < end; k++) { /* the tail: fewer than N */
        float sum = all[0][k];
        UNROLL for (int r = 1; r < RANKS; r++) sum += all[r][k];
        UNROLL for (int r = 0; r < RANKS; r++)
            if (r >= to_first && r < to_end) all[r][k] = sum;
    }
}

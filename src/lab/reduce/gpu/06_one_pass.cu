/* 06_one_pass.cu - the last block adds the sums of the blocks, in a fixed order.
 *
 * Atomic additions come in any order, so the last digits of the sum differ from run to run. Here
 * each block stores its sum and increments a counter. The block that increments the counter last
 * knows that all blocks have stored their sums, and adds the sums in the order of the blocks. So
 * every run gives the same bits, nothing has to be set to zero before a call, and one kernel launch
 * still suffices. */
#include "device.cuh"

#define TIMES 4
#define BLOCKS 2048 /* at most */

__device__ float sum_of_block[BLOCKS];
__device__ unsigned done; /* blocks that are done; wraps to zero after the last */

KERNEL(256) reduce(float *sum, const ELEMENT *x, i64 n)
{
    constexpr int EACH = 16 / sizeof(ELEMENT);
    __shared__ bool last;
    i64 step = (i64)gridDim.x * 256 * EACH;
    i64 i = ((i64)blockIdx.x * 256 + threadIdx.x) * EACH;
    float a = 0;
    for (; i + (TIMES - 1) * step + EACH <= n; i += TIMES * step) {
        floats<EACH> v[TIMES];
        UNROLL for (int k = 0; k < TIMES; k++) v[k] = load_streaming<EACH>(x + i + k * step);
        UNROLL for (int k = 0; k < TIMES; k++) UNROLL for (int e = 0; e < EACH; e++) a += v[k][e];
    }
    for (; i < n; i += step)
        for (i64 k = i; k < i + EACH && k < n; k++) a += to_float(x[k]);
    a = block_sum<256>(a);
    if (threadIdx.x == 0) {
        sum_of_block[blockIdx.x] = a;
        __threadfence(); /* makes the sum visible before the counter changes */
        last = atomicInc(&done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence(); /* the sums are read after the counter */
    a = 0;
    for (unsigned k = threadIdx.x; k < gridDim.x; k += 256) a += __ldcg(&sum_of_block[k]);
    a = block_sum<256>(a);
    if (threadIdx.x == 0) *sum = a;
}

/* 05_several.cu - many elements per thread, 16 bytes at a time.
 *
 * So far a block was born to add 256 elements, and most of its life was the tree. Now there are a
 * few blocks for each multiprocessor. A thread adds EACH elements with each load, four loads under
 * way, and walks over the array; the tree comes once, at the end. What is left is reading: this is
 * where a sum becomes as fast as memory. */
#include "device.cuh"

#define TIMES 4

KERNEL(256) reduce(float *sum, const ELEMENT *x, i64 n)
{
    constexpr int EACH = 16 / sizeof(ELEMENT);
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
    if (threadIdx.x == 0) atomicAdd(sum, a);
}

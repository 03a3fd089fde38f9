/* 05_several.cu - each thread adds many elements before the block adds its threads.
 *
 * So far every element went through a tree or through shuffles. Now each thread walks over the
 * array, with four loads of 16 bytes under way, and adds all elements that it loads to one
 * register. The threads are added once, at the end of a block, and there are only a few blocks for
 * each multiprocessor. Almost all of the time is reading: the sum becomes as fast as memory. */
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

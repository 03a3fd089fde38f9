/* 04_several.cu - several loads under way in each thread.
 *
 * Each thread asks for four times 16 bytes before it computes, so memory works on the next elements
 * while the thread computes the first. Warps that take turns on a multiprocessor do the same for
 * each other, and there are many of them: expect little more than before. Where registers or shared
 * memory leave room for only a few warps, this is what keeps memory busy. */
#include "device.cuh"

#define TIMES 4

__device__ float alpha = 1;

DEVICE float elu_of(float a)
{
    return a < 0 ? alpha * expm1f(a) : a;
}

KERNEL(256) elu(ELEMENT *y, const ELEMENT *x, i64 n)
{
    constexpr int EACH = 16 / sizeof(ELEMENT), STEP = 256 * EACH;
    i64 first = (i64)blockIdx.x * TIMES * STEP + threadIdx.x * EACH;
    if (first + (TIMES - 1) * STEP + EACH <= n) {
        floats<EACH> a[TIMES];
        UNROLL for (int k = 0; k < TIMES; k++) a[k] = load_streaming<EACH>(x + first + k * STEP);
        UNROLL for (int k = 0; k < TIMES; k++) {
            UNROLL for (int e = 0; e < EACH; e++) a[k][e] = elu_of(a[k][e]);
            store<EACH>(y + first + k * STEP, a[k]);
        }
        return;
    }
    for (int k = 0; k < TIMES; k++)
        for (i64 i = first + k * STEP; i < first + k * STEP + EACH && i < n; i++)
            y[i] = to<ELEMENT>(elu_of(to_float(x[i])));
}

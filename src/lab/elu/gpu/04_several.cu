/* 04_several.cu - several loads under way in each thread.
 *
 * Each thread loads 16 elements, 16 bytes at a time, before it computes, so memory delivers the
 * later elements while the thread computes the first ones. The many warps of a multiprocessor
 * already overlap loads and arithmetic in this way, so expect little gain. If registers or shared
 * memory leave space for only a few warps, such loads are what keeps memory busy. KERNEL_MIN allows
 * 64 registers, since the compiler would otherwise save registers and load later. */
#include "rows.cuh"

#define ALPHA 1.0f

DEVICE float elu_of(float a)
{
    float e = ALPHA * expm1_for<ELEMENT>(fminf(a, 0));
    return a < 0 ? e : a;
}

KERNEL_MIN(256, 4) elu(ELEMENT *y, const ELEMENT *x, i64 n)
{
    constexpr int EACH = 16 / sizeof(ELEMENT), TIMES = 16 / EACH, STEP = 256 * EACH;
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

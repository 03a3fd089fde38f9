/* 01_operators.cu - one operator after the other, each in a pass over memory.
 *
 * y = x < 0 ? alpha (e^x - 1) : x is five operators: exponential, subtraction, multiplication,
 * comparison, choice. A framework that runs each operator by itself launches five kernels, each of
 * which reads its operands from memory and writes a tensor of the same size. Here one kernel makes
 * the five passes: in each pass all blocks together walk over the whole tensor, so if the tensor is
 * large, no cache still holds what the pass before wrote. A thread reads only results that it wrote
 * itself, so the passes need no barrier. 42 bytes move for each float instead of 8. Intermediate
 * results have the type of the elements, so in bf16 each of them is rounded. */
#include "device.cuh"

__device__ float alpha = 1; /* a variable, so that the compiler does not know its value */

KERNEL(256) elu(ELEMENT *y, const ELEMENT *x, i64 n, void *scratch)
{
    ELEMENT *a = (ELEMENT *)scratch;
    bool *negative = (bool *)(a + n);
    i64 first = (i64)blockIdx.x * 256 + threadIdx.x, step = (i64)gridDim.x * 256;
    float by = alpha;
    for (i64 i = first; i < n; i += step) a[i] = to<ELEMENT>(expf(to_float(x[i])));
    for (i64 i = first; i < n; i += step) a[i] = to<ELEMENT>(to_float(a[i]) - 1);
    for (i64 i = first; i < n; i += step) a[i] = to<ELEMENT>(to_float(a[i]) * by);
    for (i64 i = first; i < n; i += step) negative[i] = to_float(x[i]) < 0;
    for (i64 i = first; i < n; i += step) y[i] = negative[i] ? a[i] : x[i];
}

/* 01_add.cu - adds 1 to each float, `additions` times.
 *
 * With one addition the kernel does almost nothing, so its time is the cost of its launch. The sum
 * stays in a register: one kernel with a thousand additions is the fusion of a thousand kernels
 * with one addition. A float addition waits four clocks for the addition before, so `additions`
 * also sets how long a kernel takes. */
#include "device.cuh"

KERNEL(256) launch(float *y, i64 n, i64 additions)
{
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float sum = y[i];
    for (i64 k = 0; k < additions; k++) sum += 1;
    y[i] = sum;
}

/* norm_parts.cuh - last launch of a norm's gradient: sums the parts (count,SUMS) of the blocks. The
 * SUMS columns of a part are dw and, with BIAS, dbias.
 *
 * A block has 32 columns. Each warp sums every PART_WARPS-th part with TOGETHER loads in flight:
 * the launch is bound by memory latency. */
#pragma once
#include "device.cuh"

enum { SUMS = BIAS ? 2 * COLUMNS : COLUMNS, PART_WARPS = 16, TOGETHER = 9 };

KERNEL(PART_WARPS * WARP)
norm_parts(float *dw,
#if BIAS
           float *dbias,
#endif
           const float *parts, int count)
{
    __shared__ float sums[PART_WARPS][WARP];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP,
              column = blockIdx.x * WARP + lane;
    float sum = 0;
    for (int i = warp; i < count; i += TOGETHER * PART_WARPS) {
        float a[TOGETHER];
        UNROLL for (int k = 0; k < TOGETHER; k++) {
            const int part = i + k * PART_WARPS;
            a[k] = column < SUMS && part < count ? parts[(i64)part * SUMS + column] : 0.0f;
        }
        UNROLL for (int k = 0; k < TOGETHER; k++) sum += a[k];
    }
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp != 0 || column >= SUMS) return;
    sum = 0;
    UNROLL for (int i = 0; i < PART_WARPS; i++) sum += sums[i][lane];
    if (column < COLUMNS) dw[column] = sum;
#if BIAS
    if (column >= COLUMNS) dbias[column - COLUMNS] = sum;
#endif
}

/* rows.cuh - shared by kernels over rows: exponentials, and the lanes that process a row together.
 *
 * Sources that use lanes are compiled with LANES, the number of threads of a row. With 32 lanes a
 * block has four rows, with a larger multiple of 32 it has one row. */
#pragma once
#include "mma.cuh"

/* e^a, accurate enough for a result of type T: for bf16, two ulps of float are negligible. */
template <typename T> DEVICE float exp_for(float a)
{
    if constexpr (sizeof(T) == 2)
        return ex2_approx(LOG2_E * a);
    else
        return expf(a);
}

/* e^a - 1 for a <= 0, as accurate as exp_for: near 0, three terms of the series suffice for bf16.
 */
template <typename T> DEVICE float expm1_for(float a)
{
    if constexpr (sizeof(T) == 2)
        return a > -0.03f ? a + a * a * (0.5f + a * (1 / 6.0f)) : exp_for<T>(a) - 1;
    else
        return expm1f(a);
}

#define NAN_F __int_as_float(0x7fffffff)

#ifdef LANES
#define ROWS_OF_BLOCK (LANES == WARP ? 4 : 1)
#define ROW_THREADS (LANES * ROWS_OF_BLOCK)

DEVICE int lane_of_row()
{
    return (int)threadIdx.x % LANES;
}
DEVICE i64 row_of_lane()
{
    return (i64)blockIdx.x * ROWS_OF_BLOCK + (int)threadIdx.x / LANES;
}
/* Barrier and memory fence for the lanes of a row. */
DEVICE void row_sync()
{
    if (LANES == WARP)
        __syncwarp();
    else
        __syncthreads();
}
/* The sum and the maximum over the lanes of a row; all lanes of the row must call. */
DEVICE float row_sum(float a)
{
    return block_sum<LANES>(a);
}
DEVICE float row_max(float a)
{
    return block_max<LANES>(a);
}
#endif

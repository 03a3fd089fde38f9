/* rows.cuh - what kernels over rows share: exponentials, and the lanes that take a row together.
 *
 * A text that uses lanes is compiled with LANES, the threads of one row: 32, then a block has four rows, or more, a
 * multiple of 32, then it has one. */
#pragma once
#include "mma.cuh"

/* e^a, as exact as a result of type T can show: in bf16 two units of the last place of a float are nothing. */
template <typename T> DEVICE float exp_for(float a)
{
    if constexpr (sizeof(T) == 2)
        return ex2_approx(LOG2_E * a);
    else
        return expf(a);
}

/* 1/a to one unit of the last place; 0 from 2^126 on. */
DEVICE float inverse_of(float a)
{
    return __fdividef(1.0f, a);
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
/* Until all lanes of the row are here, and see what the others have written. */
DEVICE void row_sync()
{
    if (LANES == WARP)
        __syncwarp();
    else
        __syncthreads();
}
/* Over the lanes of a row, which all call. */
DEVICE float row_sum(float a)
{
    return block_sum<LANES>(a);
}
DEVICE float row_max(float a)
{
    return block_max<LANES>(a);
}
#endif

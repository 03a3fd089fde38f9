/* rope_table.cu - positions (T) -> (T,D): cosine and sine of position THETA^(-2i/D) in columns 2i
 * and 2i + 1. Runs once a step, in double, because in float an angle of 1000 would be 6e-5 off.
 * Bound by arithmetic. */
#include "elements.cuh"

KERNEL(THREADS) rope_table(float *table, const int *position, i64 pairs, int D)
{
    const i64 i = (i64)blockIdx.x * THREADS + threadIdx.x;
    if (i >= pairs) return;
    const coord p = coord_of(i, D / 2);
    const double angle = position[p.row] * pow((double)THETA, -2.0 * p.column / D);
    table[2 * i] = (float)cos(angle);
    table[2 * i + 1] = (float)sin(angle);
}

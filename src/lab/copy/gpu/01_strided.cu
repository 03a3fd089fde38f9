/* 01_strided.cu - neighbouring threads touch elements far apart.
 *
 * The 32 threads of a warp load together. Memory delivers sectors of 32 bytes, eight floats: if the
 * threads touch neighbouring floats, a warp needs 4 sectors; if they touch floats that are 8 or
 * more apart, it needs 32 and uses an eighth of each. The other elements of a sector are needed
 * much later, by other blocks, when it has long left the caches. So a stride of 2 should double the
 * time and one of 8 multiply it by 8; beyond that each sector has one useful float, and only row
 * buffers and address translation can become worse. */
#include "device.cuh"

KERNEL(256) copy(ELEMENT *to, const ELEMENT *from, i64 n)
{
    i64 rows = (n + STRIDE - 1) / STRIDE; /* threads walk down the columns of a matrix */
    i64 t = (i64)blockIdx.x * 256 + threadIdx.x;
    i64 i = t % rows * STRIDE + t / rows;
    if (t / rows < STRIDE && i < n) to[i] = from[i];
}

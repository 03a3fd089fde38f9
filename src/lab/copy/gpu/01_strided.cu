/* 01_strided.cu - neighboring threads touch elements far apart.
 *
 * The 32 threads of a warp load together. Memory delivers sectors of 32 bytes, eight floats: if the
 * threads touch neighboring floats, a warp needs 4 sectors; if they touch floats that are 8 or
 * more apart, the warp needs 32 sectors and uses an eighth of each. Other blocks need the other
 * elements of a sector much later, when the sector has long left the caches. So a stride of 2
 * should double the time, and a stride of 8 should multiply the time by 8. With larger strides each
 * sector still has one useful float; only the use of DRAM row buffers and address translation can
 * become worse. (In bf16 a sector has 16 elements, so strides up to 16 make a difference.) */
#include "device.cuh"

KERNEL(256) copy(ELEMENT *to, const ELEMENT *from, i64 n)
{
    i64 rows = (n + STRIDE - 1) / STRIDE; /* threads walk down the columns of a matrix */
    i64 t = (i64)blockIdx.x * 256 + threadIdx.x;
    i64 i = t % rows * STRIDE + t / rows;
    if (t / rows < STRIDE && i < n) to[i] = from[i];
}

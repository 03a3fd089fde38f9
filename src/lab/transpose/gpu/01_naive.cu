/* 01_naive.cu - reads rows and writes columns.
 *
 * The threads of a warp read 32 neighbors of a row, so the reads are coalesced. They write these
 * elements to 32 different rows of the result, `rows` elements apart, so each element is in another
 * sector of 32 bytes. The other elements of a sector come from other rows of the source, which
 * other warps process at other times. L2 could keep a sector until all of it is written; the time
 * shows that L2 mostly does not. */
#include "device.cuh"

KERNEL(256) transpose(ELEMENT *to, const ELEMENT *from, i64 rows, i64 columns)
{
    i64 column = (i64)blockIdx.x * 32 + threadIdx.x, first = (i64)blockIdx.y * 32 + threadIdx.y;
    UNROLL for (int k = 0; k < 32; k += 8) {
        i64 row = first + k;
        if (row < rows && column < columns) to[column * rows + row] = from[row * columns + column];
    }
}

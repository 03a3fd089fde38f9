/* 02_write.cu - each SM writes its part of the working set again and again, 16 bytes per lane.
 *
 * L1 is write-through: stores go to L2. Word i is i times a constant, so that a reader can check
 * that all words were written. */
#include "device.cuh"

#define TIMES 8
#define WORD  2654435761u

/* Block b writes n words of 16 bytes at to + b * stride; each thread makes `steps` stores. */
KERNEL(1024) memory_write(uint4 *to, i64 n, i64 stride, i64 steps)
{
    u32 length = (u32)n, at = threadIdx.x, first = (u32)(blockIdx.x * stride);
    to += blockIdx.x * stride;
    for (i64 i = 0; i < steps; i += TIMES) {
        UNROLL for (int k = 0; k < TIMES; k++)
        {
            u32 x = (first + at) * 4u * WORD;
            to[at] = make_uint4(x, x + WORD, x + 2 * WORD, x + 3 * WORD);
            at += 1024;
            if (at >= length) at -= length;
        }
    }
}

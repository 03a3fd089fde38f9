/* 03_coalesced.cu - neighboring threads touch neighboring elements.
 *
 * A warp loads 32 floats from 128 contiguous bytes. The hardware combines the loads into one
 * request for 4 sectors, of which every byte is useful: the loads are "coalesced". Each thread
 * still copies one element. */
#include "device.cuh"

KERNEL(256) copy(ELEMENT *to, const ELEMENT *from, i64 n)
{
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (i < n) to[i] = from[i];
}

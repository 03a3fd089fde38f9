/* attention_hopper_counter.cuh - dynamic scheduling of items: slower blocks take fewer items.
 *
 * The counter is a module variable, zero before and after every launch. So the launches of a module
 * must not overlap; they do not, because a context loads its own modules and runs planned kernels
 * on one stream (stream 0, backend.h). An aborted launch leaves a wrong count. */
#pragma once
#include "device.cuh"

/* A block's first item is its own index. The last block that finds no more items resets both
 * variables. */
__device__ u32 items_taken, blocks_done;
DEVICE int next_item()
{
    return (int)(gridDim.x + atomicAdd(&items_taken, 1u));
}
/* Called once by each block, after it received a number beyond the last item. */
DEVICE void finish_items()
{
    if (atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1) items_taken = 0;
}

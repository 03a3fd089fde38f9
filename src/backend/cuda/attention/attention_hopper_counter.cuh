/* attention_hopper_counter.cuh - the items of a launch, as blocks get to them: who is late takes fewer.
 *
 * Items are counted in the module, from zero, and a launch leaves zero behind: so launches of one module stand on one stream (a
 * context has no other for kernels), none begins before the one ahead of it has ended, and a launch that is broken off
 * spoils the module. */
#pragma once
#include "device.cuh"

/* A block's first item has its own number. The last block to find none left sets both to zero, for the next launch. */
__device__ u32 items_taken, blocks_done;
DEVICE int next_item()
{
    return (int)(gridDim.x + atomicAdd(&items_taken, 1u));
}
/* By each block, once, when it has been told a number that no item has. */
DEVICE void no_more_items()
{
    if (atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1) items_taken = 0;
}

/* occupancy.h - how many blocks of a kernel a multiprocessor (SM) holds at once, and what limits
 * them: a pure function of the kernel's resources and the GPU's compute capability.
 *
 * The limits are those of "Technical Specifications per Compute Capability" in the CUDA C++
 * Programming Guide; how hardware allocates is described by the comments of cuda_occupancy.h of the
 * CUDA toolkit. Registers are allocated to warps, in units of 256, within one of four parts of an
 * SM, each with a quarter of the registers. Shared memory is allocated to blocks in units of 128
 * bytes (256 before compute capability 8.0); from 8.0 on 1 KiB more of it is reserved for each
 * block. An SM's shared memory is counted at its largest carveout. */
#ifndef TUNING_OCCUPANCY_H
#define TUNING_OCCUPANCY_H

#include "base/base.h"

enum { OCCUPANCY_WARP = 32 };

/* What an SM has. */
struct occupancy_limits {
    int arch; /* compute capability times ten */
    int registers, warps, blocks;
    int64_t shared_bytes;
    int64_t block_shared_bytes; /* that one block may use, after opting in */
    int64_t reserved_bytes;     /* of each block, beside what it uses */
    int shared_unit;            /* an allocation of shared memory is a multiple of it */
};

/* NULL: the compute capability is not in the table. */
const struct occupancy_limits *occupancy_limits(int arch);

struct occupancy_kernel {
    int threads;                         /* of a block */
    int registers;                       /* of a thread */
    int64_t static_bytes, dynamic_bytes; /* shared memory of a block */
};

struct occupancy {
    int blocks, warps; /* of an SM; 0: the kernel cannot be launched */
    /* "blocks", "threads", "registers" or "shared memory": the first of them that allows no more
     * blocks. */
    const char *limit;
};

void occupancy_of(const struct occupancy_limits *l, const struct occupancy_kernel *k,
                  struct occupancy *ret);

struct occupancy_grid {
    double waves; /* blocks of the grid over blocks that the GPU holds at once */
    double tail;  /* share of the last wave's places that are empty; 0: the last wave is full */
};

/* Of a grid of `blocks` > 0 on a GPU of `processors` SMs; NAN if the kernel cannot be launched. */
void occupancy_grid(const struct occupancy *o, int64_t blocks, int processors,
                    struct occupancy_grid *ret);

#endif

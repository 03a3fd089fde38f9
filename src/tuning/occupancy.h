/* occupancy.h - how many blocks of a kernel a multiprocessor (SM) holds at once, and what limits
 * them: a pure function of the kernel's resources and the GPU's compute capability.
 *
 * The limits are those of "Technical Specifications per Compute Capability" in the CUDA C++
 * Programming Guide; cuda_occupancy.h of the CUDA toolkit describes the allocation. An SM has four
 * parts with a quarter of the registers each; a warp gets registers of one part, in units of 256. A
 * block gets shared memory in units of 128 bytes (256 before compute capability 8.0). From 8.0 on
 * the system reserves 1 KiB more for each block. L1 and shared memory are assumed to be split so
 * that shared memory is as large as possible (carveout). */
#ifndef TUNING_OCCUPANCY_H
#define TUNING_OCCUPANCY_H

#include "base/base.h"

enum { OCCUPANCY_WARP = 32 };

/* The resources of an SM. */
struct occupancy_limits {
    int arch; /* compute capability times ten */
    int registers, warps, blocks;
    int64_t shared_bytes;
    int64_t block_shared_bytes; /* maximum shared memory per block, after opting in */
    int64_t reserved_bytes;     /* shared memory reserved per block, in addition to the kernel's */
    int shared_unit;            /* the unit in which shared memory is allocated, bytes */
};

/* Finds the limits of a compute capability; NULL: it is not in the table. */
const struct occupancy_limits *occupancy_limits(int arch);

struct occupancy_kernel {
    int threads;                         /* per block */
    int registers;                       /* per thread */
    int64_t static_bytes, dynamic_bytes; /* shared memory per block */
};

struct occupancy {
    int blocks, warps; /* resident on an SM; 0: the kernel cannot be launched */
    /* "blocks", "threads", "registers" or "shared memory": the resource that limits `blocks`; the
     * first of these if several do. */
    const char *limit;
};

void occupancy_of(const struct occupancy_limits *l, const struct occupancy_kernel *k,
                  struct occupancy *ret);

struct occupancy_grid {
    double waves; /* blocks of the grid / blocks that the GPU holds at once */
    double tail;  /* fraction of the last wave's block slots that are empty; 0: it is full */
};

/* Computes waves and tail of a grid of `blocks` > 0 on a GPU with `processors` SMs; both are NAN if
 * the kernel cannot be launched. */
void occupancy_grid(const struct occupancy *o, int64_t blocks, int processors,
                    struct occupancy_grid *ret);

#endif

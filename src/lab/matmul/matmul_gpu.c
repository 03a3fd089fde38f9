/* The rungs of `matmul` on a GPU, and their counts: what a block of threads computes, how many
 * bytes it asks of L2 and moves through shared memory. */
#include "lab/ladders.h"

/* --- CUDA cores ------------------------------------------------------------------------------- */

static double size_of(const struct lab_problem *p)
{
    return (double)dtype_size(p->dtype);
}

static double out_bytes(const struct lab_problem *p)
{
    return (double)p->out * size_of(p);
}

/* A block for each tile of rows x columns of C, with x from left to right. */
static void tiles_of(const struct lab_problem *p, int rows, int columns, struct kernel_shape *ret)
{
    ret->grid[0] = (unsigned)ceil_div(p->n[1], columns);
    ret->grid[1] = (unsigned)ceil_div(p->n[0], rows);
    ret->grid[2] = 1;
}

static void of_32(const struct lab_problem *p, struct kernel_shape *ret)
{
    *ret = (struct kernel_shape){.block = {32, 32, 1}};
    tiles_of(p, 32, 32, ret);
}

/* For each k a warp reads one element of A, a sector of 32 bytes, and 32 neighbours of B. */
static double coalesced(const struct lab_problem *p)
{
    return p->flops / 2 * (32 + 32 * size_of(p)) / 32 + out_bytes(p);
}

#define LOADS "loads: an FMA waits for two elements of L1 or L2"

const struct lab_rung lab_matmul_gpu[] = {
#include "lab/matmul/rungs_fp32.h"
#include "lab/matmul/rungs_mma.h"
#include "lab/matmul/rungs_hopper.h"
    {"Strobe's own", .variant = "wgmma", .types = LAB_BF16,
     .idea = "the kernel of training, which chooses its tile for the size"},
    {"cuBLASLt", .variant = "cublaslt", .types = LAB_F32 | LAB_TF32 | LAB_BF16, .ceiling = true,
     .idea = "the vendor's library: the fastest of the 8 algorithms that it suggests"},
    {0},
};

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

/* One thread for each element of a tile of 32 x 32, or for 2, 4 or 8 of a column. */
static void of_32_by(const struct lab_problem *p, unsigned factor, struct kernel_shape *ret)
{
    *ret = (struct kernel_shape){.block = {32, 32 / factor, 1}};
    tiles_of(p, 32, 32, ret);
}
static void of_32(const struct lab_problem *p, struct kernel_shape *ret)
{
    of_32_by(p, 1, ret);
}
static void of_32_by_2(const struct lab_problem *p, struct kernel_shape *ret)
{
    of_32_by(p, 2, ret);
}
static void of_32_by_4(const struct lab_problem *p, struct kernel_shape *ret)
{
    of_32_by(p, 4, ret);
}
static void of_32_by_8(const struct lab_problem *p, struct kernel_shape *ret)
{
    of_32_by(p, 8, ret);
}
static void of_128(const struct lab_problem *p, struct kernel_shape *ret)
{
    *ret = (struct kernel_shape){.block = {256, 1, 1}};
    tiles_of(p, 128, 128, ret);
}
static void of_128_by_4_warps(const struct lab_problem *p, struct kernel_shape *ret)
{
    *ret = (struct kernel_shape){.block = {128, 1, 1}};
    tiles_of(p, 128, 128, ret);
}
static void of_128x256(const struct lab_problem *p, struct kernel_shape *ret)
{
    *ret = (struct kernel_shape){.block = {256, 1, 1}};
    tiles_of(p, 128, 256, ret);
}

/* For each k a warp reads 32 elements of A in as many sectors of 32 bytes, and one of B. */
static double uncoalesced(const struct lab_problem *p)
{
    return p->flops / 2 * (32 * 32 + 32) / 32 + out_bytes(p);
}
/* For each k a warp reads one element of A, a sector of 32 bytes, and 32 neighbours of B. */
static double coalesced(const struct lab_problem *p)
{
    return p->flops / 2 * (32 + 32 * size_of(p)) / 32 + out_bytes(p);
}

/* For each k a block reads a column of its tile of A and a row of its tile of B. */
static double moved_of(const struct lab_problem *p, double rows, double columns)
{
    return p->flops / 2 * (1 / rows + 1 / columns) * size_of(p) + out_bytes(p);
}
static double moved_32(const struct lab_problem *p)
{
    return moved_of(p, 32, 32);
}
static double moved_128(const struct lab_problem *p)
{
    return moved_of(p, 128, 128);
}
static double moved_128x256(const struct lab_problem *p)
{
    return moved_of(p, 128, 256);
}

/* Floats that blocks write for rows x columns of C, and that warps read, each once, for their parts
 * of these. */
static double shared_of(const struct lab_problem *p, double rows, double columns, double warp_rows,
                        double warp_columns)
{
    double writes = 1 / rows + 1 / columns, reads = 1 / warp_rows + 1 / warp_columns;
    return p->flops / 2 * (writes + reads) * 4;
}
static double shared_tiled(const struct lab_problem *p)
{
    return shared_of(p, 32, 32, 1, 32);
}
static double shared_coarse_2(const struct lab_problem *p)
{
    return shared_of(p, 32, 32, 2, 32);
}
static double shared_coarse_4(const struct lab_problem *p)
{
    return shared_of(p, 32, 32, 4, 32);
}
static double shared_coarse_8(const struct lab_problem *p)
{
    return shared_of(p, 32, 32, 8, 32);
}
static double shared_coarse_8x8(const struct lab_problem *p)
{
    return shared_of(p, 128, 128, 16, 128);
}
static double shared_warps(const struct lab_problem *p)
{
    return shared_of(p, 128, 128, 64, 64);
}
static double shared_buffers(const struct lab_problem *p)
{
    return shared_of(p, 128, 256, 64, 64);
}

#define CUDA_CORES (LAB_F32 | LAB_BF16)
#define SHARED     "loads from shared memory: each sum needs its own element of A"

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

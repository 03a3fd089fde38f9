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

/* --- tensor cores by mma.sync ----------------------------------------------------------------- */

/* Blocks of 8 warps with tiles of rows x columns, which are `depth` bytes deep along k. */
static void mma_of(const struct lab_problem *p, int rows, int columns, int depth, int stages,
                   struct kernel_shape *ret)
{
    *ret = (struct kernel_shape){.block = {256, 1, 1},
                                 .shared_bytes = (int64_t)stages * (rows + columns) * depth};
    tiles_of(p, rows, columns, ret);
}
static void mma_128(const struct lab_problem *p, struct kernel_shape *ret)
{
    mma_of(p, 128, 128, 64, 0, ret);
}
static void mma_128_two(const struct lab_problem *p, struct kernel_shape *ret)
{
    mma_of(p, 128, 128, 64, 2, ret);
}
static void mma_128_four(const struct lab_problem *p, struct kernel_shape *ret)
{
    mma_of(p, 128, 128, 64, 4, ret);
}
/* Blocks are numbered in an order of their own. */
static void mma_256(const struct lab_problem *p, struct kernel_shape *ret)
{
    mma_of(p, 128, 256, 128, 3, ret);
    ret->grid[0] *= ret->grid[1];
    ret->grid[1] = 1;
}

/* Every block reads its rows of A and its columns of B once. */
static double of_tiles(const struct lab_problem *p, int rows, int columns)
{
    double blocks = (double)(ceil_div(p->n[0], rows) * ceil_div(p->n[1], columns));
    return blocks * (rows + columns) * (double)p->n[2] * size_of(p) + out_bytes(p);
}
static double moved_128(const struct lab_problem *p)
{
    return of_tiles(p, 128, 128);
}
static double moved_256(const struct lab_problem *p)
{
    return of_tiles(p, 128, 256);
}
/* It writes them to shared memory, and each of its 8 warps reads the rows and columns of its own
 * sums: 64 rows, and a quarter of the columns. */
static double through_shared(const struct lab_problem *p, int columns)
{
    double blocks = (double)(ceil_div(p->n[0], 128) * ceil_div(p->n[1], columns));
    return blocks * (128 + columns + 8 * (64 + columns / 4)) * (double)p->n[2] * size_of(p);
}
static double shared_128(const struct lab_problem *p)
{
    return through_shared(p, 128);
}
static double shared_256(const struct lab_problem *p)
{
    return through_shared(p, 256);
}

const struct lab_rung lab_matmul_gpu[] = {
/* The order of the rows is that of the table. clang-format would sort them by name. */
/* clang-format off */
#include "lab/matmul/rungs_fp32.h"
#include "lab/matmul/rungs_mma.h"
#include "lab/matmul/rungs_hopper.h"
    /* clang-format on */
    {"Strobe's own", .variant = "wgmma", .types = LAB_BF16,
     .idea = "the kernel of training, which chooses its tile for the size"},
    {"cuBLASLt", .variant = "cublaslt", .types = LAB_F32 | LAB_TF32 | LAB_BF16, .ceiling = true,
     .idea = "the vendor's library: the fastest of the 8 algorithms that it suggests"},
    {0},
};

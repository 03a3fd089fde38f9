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

/* --- wgmma and TMA (compute capability 9.0) --------------------------------------------------- */

enum { BOX_BYTES = 128, WARPGROUP_ROWS = 64, PANEL_ROWS = 16 }; /* of a row of a box; of a wgmma */

static const char *unaligned(const struct lab_problem *p)
{
    int64_t whole = 16 / dtype_size(p->dtype);
    if (p->n[1] % whole == 0 && p->n[2] % whole == 0) return NULL;
    return "TMA needs rows that begin at multiples of 16 bytes";
}

static struct lab_map matrix(const struct lab_problem *p, int of, int64_t rows, int64_t columns,
                             int box_rows)
{
    int64_t size = dtype_size(p->dtype);
    return (struct lab_map){.of = of,
                            .map = {.dtype = p->dtype,
                                    .tf32 = p->type == LAB_TF32 && of != LAB_OUT,
                                    .rows = rows,
                                    .columns = columns,
                                    .pitch = columns * size,
                                    .box_rows = box_rows,
                                    .box_columns = (int)(BOX_BYTES / size)}};
}

/* The maps of A and B for tiles of rows x columns, and of C for panels of a warp. B has rows of n,
 * of which a box has as many as its swizzle allows, or in TF32 rows of k. */
static void matrices(const struct lab_problem *p, int rows, int columns, struct lab_map *ret)
{
    int64_t m = p->n[0], n = p->n[1], k = p->n[2];
    ret[0] = matrix(p, LAB_IN_0, m, k, rows);
    if (p->type == LAB_TF32)
        ret[1] = matrix(p, LAB_IN_1, n, k, columns);
    else
        ret[1] = matrix(p, LAB_IN_1, k, n, BOX_BYTES / 2);
    ret[2] = matrix(p, LAB_OUT, m, n, PANEL_ROWS);
}

static int maps_64(const struct lab_problem *p, struct lab_map *ret)
{
    matrices(p, 64, 64, ret);
    return 2;
}
static int maps_128(const struct lab_problem *p, struct lab_map *ret)
{
    matrices(p, 128, 128, ret);
    return 2;
}
static int maps_256(const struct lab_problem *p, struct lab_map *ret)
{
    matrices(p, 128, 256, ret);
    return 2;
}
static int maps_stores(const struct lab_problem *p, struct lab_map *ret)
{
    matrices(p, 128, 256, ret);
    return 3;
}

/* Operands whose rows do not begin at multiples of 32 bytes are copied to scratch, one after the
 * other: their rows, the bytes of these, and the bytes of scratch. */
struct copies {
    int64_t rows, from, bytes;
};
static void copy_to_scratch(struct lab_map *x, struct copies *c)
{
    int64_t row = x->map.pitch;
    if (row % 32 == 0) return;
    x->of = LAB_SCRATCH;
    x->offset = c->bytes;
    x->map.pitch = ceil_div(row, BOX_BYTES) * BOX_BYTES;
    c->rows += x->map.rows;
    c->bytes += x->map.rows * x->map.pitch;
    c->from += x->map.rows * row;
}
static struct copies copied(const struct lab_problem *p, int columns, struct lab_map *ret)
{
    struct copies c = {0};
    matrices(p, 128, columns, ret);
    copy_to_scratch(&ret[0], &c);
    copy_to_scratch(&ret[1], &c);
    if (ret[2].map.pitch % 16) ret[2] = ret[1]; /* not used: C is stored without a map */
    return c;
}
static int maps_padded(const struct lab_problem *p, struct lab_map *ret)
{
    copied(p, 256, ret);
    return 3;
}
static int maps_turns(const struct lab_problem *p, struct lab_map *ret)
{
    copied(p, 192, ret);
    return 3;
}
static int64_t scratch_padded(const struct lab_problem *p, int)
{
    struct lab_map unused[3];
    return copied(p, 256, unused).bytes;
}
static void shape_pad(const struct lab_problem *p, struct kernel_shape *ret)
{
    struct lab_map unused[3];
    *ret = (struct kernel_shape){{(unsigned)copied(p, 256, unused).rows, 1, 1}, {128, 1, 1}, 0};
}
static double copy_bytes(const struct lab_problem *p)
{
    struct lab_map unused[3];
    return 2 * (double)copied(p, 256, unused).from;
}

/* Stages, panels of C and barriers are in shared memory. */
static void shape_wgmma(const struct lab_problem *p, int tile, int threads, int stages,
                        struct kernel_shape *ret)
{
    int64_t shared = (int64_t)stages * (2 * tile * BOX_BYTES + 16);
    *ret = (struct kernel_shape){.block = {(unsigned)threads, 1, 1}, .shared_bytes = shared};
    tiles_of(p, tile, tile, ret);
}
static void wgmma_64(const struct lab_problem *p, struct kernel_shape *ret)
{
    shape_wgmma(p, 64, 128, 1, ret);
}
static void wgmma_128(const struct lab_problem *p, struct kernel_shape *ret)
{
    shape_wgmma(p, 128, 128, 1, ret);
}
static void producer(const struct lab_problem *p, struct kernel_shape *ret)
{
    shape_wgmma(p, 128, 128 + 32, 5, ret);
}
/* A producer and two consumers. */
static void shape_consumers(const struct lab_problem *p, int columns, int stages, int panels,
                            struct kernel_shape *ret)
{
    enum { PANEL = PANEL_ROWS * BOX_BYTES, WARPS = 8 };
    int64_t shared = (int64_t)stages * ((128 + columns) * BOX_BYTES + 16) + WARPS * PANEL * panels;
    *ret = (struct kernel_shape){.block = {3 * 128, 1, 1}, .shared_bytes = shared};
    tiles_of(p, 128, columns, ret);
}
/* At most one block for each multiprocessor. */
static void persist(const struct lab_problem *p, struct kernel_shape *ret)
{
    int64_t tiles = (int64_t)ret->grid[0] * ret->grid[1];
    ret->grid[0] = (unsigned)min_i64(tiles, max_i64(p->processors, 1));
    ret->grid[1] = 1;
}
static void two_consumers(const struct lab_problem *p, struct kernel_shape *ret)
{
    shape_consumers(p, 256, 4, 0, ret);
}
static void persistent(const struct lab_problem *p, struct kernel_shape *ret)
{
    shape_consumers(p, 256, 4, 0, ret);
    persist(p, ret);
}
static void stores(const struct lab_problem *p, struct kernel_shape *ret)
{
    shape_consumers(p, 256, 3, 4, ret);
    persist(p, ret);
}
static void turns(const struct lab_problem *p, struct kernel_shape *ret)
{
    shape_consumers(p, 192, 4, 3, ret);
    persist(p, ret);
}

/* Tiles of A and B for each tile of C, and C. */
static double tile_bytes(const struct lab_problem *p, double rows, double columns)
{
    return p->flops / 2 * (1 / rows + 1 / columns) * size_of(p) + out_bytes(p);
}
static double moved_64(const struct lab_problem *p)
{
    return tile_bytes(p, 64, 64);
}
static double moved_128(const struct lab_problem *p)
{
    return tile_bytes(p, 128, 128);
}
static double moved_256(const struct lab_problem *p)
{
    return tile_bytes(p, 128, 256);
}
static double moved_padded(const struct lab_problem *p)
{
    return tile_bytes(p, 128, 256) + copy_bytes(p);
}
static double moved_turns(const struct lab_problem *p)
{
    return tile_bytes(p, 128, 192) + copy_bytes(p);
}

/* Tiles are written once, and read by each wgmma of 64 rows and all columns. */
static double shared_tiles(const struct lab_problem *p, double rows, double columns)
{
    double written = 1 / rows + 1 / columns, read = 1.0 / WARPGROUP_ROWS + 1 / columns;
    return p->flops / 2 * (written + read) * size_of(p);
}
static double shared_64(const struct lab_problem *p)
{
    return shared_tiles(p, 64, 64);
}
static double shared_128(const struct lab_problem *p)
{
    return shared_tiles(p, 128, 128);
}
static double shared_256(const struct lab_problem *p)
{
    return shared_tiles(p, 128, 256);
}
static double shared_stores(const struct lab_problem *p)
{
    return shared_tiles(p, 128, 256) + 2 * out_bytes(p);
}
static double shared_turns(const struct lab_problem *p)
{
    return shared_tiles(p, 128, 192) + 2 * out_bytes(p);
}

#define POWER "the electrical power, which lowers the clock"

/* --- the rungs -------------------------------------------------------------------------------- */

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

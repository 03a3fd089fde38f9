/* The rungs of `matmul` on a GPU: their blocks and threads, and the bytes that they move to and
 * from global memory and through shared memory. */
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

/* One block for each tile of rows x columns of C; blockIdx.x counts tiles from left to right. */
static void tiles_of(const struct lab_problem *p, int rows, int columns, struct kernel_shape *ret)
{
    ret->grid[0] = (unsigned)ceil_div(p->n[1], columns);
    ret->grid[1] = (unsigned)ceil_div(p->n[0], rows);
    ret->grid[2] = 1;
}

/* Tiles of 32 x 32, with one thread for each `factor` elements of a column. */
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

/* For each k a warp reads 32 elements of A in 32 sectors of 32 bytes, and one sector of B. */
static double uncoalesced(const struct lab_problem *p)
{
    return p->flops / 2 * (32 * 32 + 32) / 32 + out_bytes(p);
}
/* For each k a warp reads one element of A, a sector of 32 bytes, and 32 neighbors of B. */
static double coalesced(const struct lab_problem *p)
{
    return p->flops / 2 * (32 + 32 * size_of(p)) / 32 + out_bytes(p);
}

/* A is read once for each column of tiles of C, B once for each row of tiles; C is written. */
static double tile_bytes(const struct lab_problem *p, int rows, int columns)
{
    double across = (double)ceil_div(p->n[1], columns), down = (double)ceil_div(p->n[0], rows);
    return (across * (double)p->in[0] + down * (double)p->in[1]) * size_of(p) + out_bytes(p);
}
static double moved_32(const struct lab_problem *p)
{
    return tile_bytes(p, 32, 32);
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

/* Bytes written to and read from shared memory if a block writes the numbers of A and B, as floats,
 * for a tile of rows x columns of C, and each warp reads once the numbers for its part of warp_rows
 * x warp_columns. */
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

/* --- tensor cores by mma.sync ----------------------------------------------------------------- */

/* Blocks of 8 warps with tiles of rows x columns of C; a stage has `depth` bytes of k. */
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
/* The kernel maps the block's number to a tile itself, so the grid has one dimension. */
static void mma_256(const struct lab_problem *p, struct kernel_shape *ret)
{
    mma_of(p, 256, 128, 128, 3, ret);
    ret->grid[0] *= ret->grid[1];
    ret->grid[1] = 1;
}

/* Blocks write tiles to shared memory; each of 8 warps reads the rows and columns for its 64 x
 * warp_columns sums. */
static double through_warps(const struct lab_problem *p, int rows, int warp_columns)
{
    double blocks = (double)(ceil_div(p->n[0], rows) * ceil_div(p->n[1], 128));
    return blocks * (rows + 128 + 8 * (64 + warp_columns)) * (double)p->n[2] * size_of(p);
}
static double shared_mma_128(const struct lab_problem *p)
{
    return through_warps(p, 128, 32);
}
static double shared_mma_256(const struct lab_problem *p)
{
    return through_warps(p, 256, 64);
}
static double moved_mma_256(const struct lab_problem *p)
{
    return tile_bytes(p, 256, 128);
}

/* --- wgmma and TMA (compute capability 9.0) --------------------------------------------------- */

/* Bytes of a row of a box; rows of A in a wgmma; rows of C in a warp's panel. */
enum { BOX_BYTES = 128, WARPGROUP_ROWS = 64, PANEL_ROWS = 16 };

static bool has_short_pieces(const struct lab_problem *p, int64_t elements)
{
    return p->n[1] % elements || p->n[2] % elements;
}
static bool unaligned_4(const struct lab_problem *p)
{
    return has_short_pieces(p, 4);
}
static bool unaligned_16_bytes(const struct lab_problem *p)
{
    return has_short_pieces(p, 16 / dtype_size(p->dtype));
}
static bool is_tf32(const struct lab_problem *p)
{
    return p->type == LAB_TF32;
}

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

/* The maps of A and B for tiles of rows x columns, and of C for the panels of a warp. In bf16 a row
 * of B runs along n, and a box has 64 rows and 64 columns; in TF32 a row of B runs along k. */
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

/* Operands whose rows do not begin at multiples of 32 bytes are copied to scratch, A first and then
 * B. `from`: bytes that are read for the copies; `bytes`: bytes of scratch. */
struct copies {
    int64_t from, bytes;
};
static void copy_to_scratch(struct lab_map *x, struct copies *c)
{
    int64_t row = x->map.pitch;
    if (row % 32 == 0) return;
    x->of = LAB_SCRATCH;
    x->offset = c->bytes;
    x->map.pitch = ceil_div(row, BOX_BYTES) * BOX_BYTES;
    c->bytes += x->map.rows * x->map.pitch;
    c->from += x->map.rows * row;
}
static struct copies copied(const struct lab_problem *p, int columns, struct lab_map *ret)
{
    struct copies c = {0};
    matrices(p, 128, columns, ret);
    copy_to_scratch(&ret[0], &c);
    copy_to_scratch(&ret[1], &c);
    if (ret[2].map.pitch % 16) ret[2] = ret[1]; /* a valid map that the kernel does not use */
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
    enum { THREADS = 256, BYTES = 2 * 16 }; /* bytes per thread */
    int64_t blocks = ceil_div(scratch_padded(p, 0), THREADS * BYTES);
    *ret = (struct kernel_shape){{(unsigned)blocks, 1, 1}, {THREADS, 1, 1}, 0};
}
static bool needs_no_copy(const struct lab_problem *p)
{
    struct lab_map unused[3];
    return copied(p, 256, unused).bytes == 0;
}
static double copy_bytes(const struct lab_problem *p)
{
    struct lab_map unused[3];
    return 2 * (double)copied(p, 256, unused).from;
}

/* Shared memory has the stages, and two barriers of 8 bytes for each stage. */
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
/* A producer and two consumer warpgroups; shared memory also has the panels of C. */
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

static double moved_padded(const struct lab_problem *p)
{
    return tile_bytes(p, 128, 256) + copy_bytes(p);
}
static double moved_turns(const struct lab_problem *p)
{
    return tile_bytes(p, 128, 192) + copy_bytes(p);
}

/* Bytes of shared memory: tiles are written once; each wgmma reads 64 rows of A and all columns of
 * the tile of B. */
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

/* clang-format off */
const struct lab_rung lab_matmul_gpu[] = {
    {"uncoalesced", "matmul/gpu/01_uncoalesced.cu", .shape = of_32, .types = CUDA_CORES,
     .moved = uncoalesced, .bound = "sectors of 32 bytes, of which each load uses one element"},
    {"coalesced", "matmul/gpu/02_coalesced.cu", .shape = of_32, .types = CUDA_CORES,
     .moved = coalesced, .bound = "loads: an FMA waits for two elements of L1 or L2"},
    {"tiled", "matmul/gpu/03_tiled.cu", .shape = of_32, .types = CUDA_CORES, .moved = moved_32,
     .shared = shared_tiled, .bound = "loads from shared memory, more than one for an FMA"},
    {"coarse 2", "matmul/gpu/04_coarse_1d.cu",
     .idea = "each thread computes 2 elements of a column of C",
     .options = "-DFACTOR=2", .shape = of_32_by_2,
     .types = CUDA_CORES, .moved = moved_32, .shared = shared_coarse_2, .bound = SHARED},
    {"coarse 4", "matmul/gpu/04_coarse_1d.cu",
     .idea = "each thread computes 4 elements of a column of C",
     .options = "-DFACTOR=4", .shape = of_32_by_4,
     .types = CUDA_CORES, .moved = moved_32, .shared = shared_coarse_4, .bound = SHARED},
    {"coarse 8", "matmul/gpu/04_coarse_1d.cu",
     .idea = "each thread computes 8 elements of a column of C",
     .options = "-DFACTOR=8", .shape = of_32_by_8,
     .types = CUDA_CORES, .moved = moved_32, .shared = shared_coarse_8, .bound = SHARED},
    {"coarse 8x8", "matmul/gpu/05_coarse_2d.cu", .shape = of_128, .types = CUDA_CORES,
     .moved = moved_128, .shared = shared_coarse_8x8,
     .bound = "instructions beside the FMAs, and warps that wait for the next tiles"},
    {"vectorized", "matmul/gpu/06_vectorized.cu", .shape = of_128, .types = CUDA_CORES,
     .moved = moved_128, .shared = shared_coarse_8x8,
     .bound = "shared memory, and warps that wait for the next tiles",
     .no_gain = "rows whose length is not a multiple of 4 are loaded element by element",
     .no_gain_at = unaligned_4},
    {"warp tiles", "matmul/gpu/07_warp_tiles.cu", .shape = of_128_by_4_warps, .types = CUDA_CORES,
     .moved = moved_128, .shared = shared_warps,
     .bound = "blocks that wait for their next tiles, with too few others to fill the time",
     .no_gain = "half as many warps hide less of the time that the next tiles take"},
    {"double buffered", "matmul/gpu/08_double_buffered.cu", .shape = of_128x256, .types = LAB_F32,
     .arch = 80, .moved = moved_256, .shared = shared_buffers,
     .bound = "the FMA units, and the registers that feed them"},
    {"mma", "matmul/gpu/10_mma.cu", .arch = 80, .shape = mma_128, .types = LAB_TF32 | LAB_BF16,
     .moved = moved_128, .shared = shared_mma_128,
     .bound = "bank conflicts: each load of an operand takes four turns"},
    {"ldmatrix", "matmul/gpu/11_ldmatrix.cu", .arch = 80, .shape = mma_128,
     .types = LAB_TF32 | LAB_BF16, .moved = moved_128, .shared = shared_mma_128,
     .bound = "the latency of memory, between two barriers",
     .no_gain = "rows that are not multiples of 16 bytes are loaded element by element",
     .no_gain_at = unaligned_16_bytes},
    {"two stages", "matmul/gpu/12_pipelined.cu",
     .idea = "cp.async loads the next tiles while these are multiplied",
     .options = "-DSTAGES=2", .arch = 80,
     .shape = mma_128_two, .types = LAB_TF32 | LAB_BF16, .moved = moved_128,
     .shared = shared_mma_128,
     .bound = "the latency of memory, which the time of one tile does not hide"},
    {"four stages", "matmul/gpu/12_pipelined.cu",
     .idea = "three tiles ahead instead of one", .options = "-DSTAGES=4", .arch = 80,
     .shape = mma_128_four, .types = LAB_TF32 | LAB_BF16, .moved = moved_128,
     .shared = shared_mma_128,
     .bound = "shared memory",
     .no_gain = "the other block on a multiprocessor already hides most of the latency"},
    {"large tiles", "matmul/gpu/13_warp_tiles.cu", .arch = 80, .shape = mma_256,
     .types = LAB_TF32 | LAB_BF16, .moved = moved_mma_256, .shared = shared_mma_256,
     .bound = "mma.sync, which is slower than wgmma on compute capability 9.0"},
    {"wgmma 64", "matmul/gpu/20_wgmma.cu",
     .idea = "a warpgroup multiplies tiles that TMA brings: 64 x 64",
     .options = "-DCOLUMNS=64", .arch = 90,
     .types = LAB_BF16, .shape = wgmma_64, .maps = maps_64, .refuses = unaligned,
     .moved = moved_64, .shared = shared_64,
     .bound = "shared memory: a wgmma of 64 x 64 reads the 128 bytes a clock that it delivers",
     .no_gain = "a first step with small tiles that waits for each load, beside the last one of "
                "mma.sync"},
    {"wgmma 128", "matmul/gpu/20_wgmma.cu",
     .idea = "the same with 128 x 128", .options = "-DCOLUMNS=128", .arch = 90,
     .types = LAB_BF16, .shape = wgmma_128, .maps = maps_128, .refuses = unaligned,
     .moved = moved_128, .shared = shared_128,
     .bound = "latency: a block waits for the loads of each step"},
    {"producer", "matmul/gpu/21_producer.cu", .arch = 90, .types = LAB_BF16, .shape = producer,
     .maps = maps_128, .refuses = unaligned, .moved = moved_128, .shared = shared_128,
     .bound = "the only consumer, which waits for its wgmma before it issues the next"},
    {"two consumers", "matmul/gpu/22_two_consumers.cu", .arch = 90, .types = LAB_BF16 | LAB_TF32,
     .shape = two_consumers, .maps = maps_256, .refuses = unaligned, .moved = moved_256,
     .shared = shared_256, .bound = "the begin and the end of blocks, where nothing is multiplied"},
    {"persistent", "matmul/gpu/23_persistent.cu", .arch = 90, .types = LAB_BF16 | LAB_TF32,
     .shape = persistent, .maps = maps_256, .refuses = unaligned, .moved = moved_256,
     .shared = shared_256, .bound = "the stores of C, during which nothing is multiplied"},
    {"stores", "matmul/gpu/24_stores.cu", .arch = 90, .types = LAB_BF16 | LAB_TF32,
     .shape = stores, .maps = maps_stores, .refuses = unaligned, .moved = moved_256,
     .shared = shared_stores, .bound = POWER,
     .no_gain = "in TF32, stores of the sums fill whole sectors, and a tile takes twice as long",
     .no_gain_at = is_tf32},
    {"padded", "matmul/gpu/25_padded.cu", .arch = 90, .types = LAB_BF16 | LAB_TF32,
     .shape = stores, .maps = maps_padded, .scratch = scratch_padded, .prologue = {{"matmul_pad", shape_pad}},
     .moved = moved_padded, .shared = shared_stores, .bound = POWER,
     .no_gain = "rows of this size begin at multiples of 32 bytes, so nothing is copied",
     .no_gain_at = needs_no_copy},
    {"turns", "matmul/gpu/26_turns.cu", .arch = 90, .types = LAB_BF16, .shape = turns,
     .maps = maps_turns, .scratch = scratch_padded, .prologue = {{"matmul_pad", shape_pad}},
     .moved = moved_turns, .shared = shared_turns,
     .bound = POWER ", and by the last round of tiles, which may have few",
     .no_gain = "tiles of 128 x 256 suit this size better than those of 128 x 192"},
    {"Strobe's own", .variant = "wgmma", .types = LAB_BF16,
     .idea = "the kernel of training, which chooses its tile for the size"},
    {"cuBLASLt", .variant = "cublaslt", .types = LAB_F32 | LAB_TF32 | LAB_BF16, .ceiling = true,
     .idea = "the vendor's library: the fastest of the 8 algorithms that it suggests"},
    {0},
};
/* clang-format on */

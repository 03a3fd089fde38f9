/* The rungs of `matmul` on a CPU. */
#include "lab/ladders.h"
#include "lab/matmul/cpu/blocks.h"

/* --- memory for packed panels ----------------------------------------------------------------- */

/* A block of A and a block of B. */
static int64_t packed_scratch(const struct lab_problem *p, int)
{
    return (HIGH + min_i64(p->n[1], BROAD) + MOST_COLUMNS) * DEEP * (int64_t)sizeof(float);
}

/* All of A and B. */
static int64_t threads_scratch(const struct lab_problem *p, int)
{
    return (p->n[0] + MOST_ROWS + p->n[1] + MOST_COLUMNS) * p->n[2] * (int64_t)sizeof(float);
}

/* --- sizes that are refused ------------------------------------------------------------------- */

/* Rungs that walk down columns are up to a thousand times slower than the best rung. */
static const char *too_slow(const struct lab_problem *p)
{
    static const double MOST_FLOPS = 1e9;
    return p->flops > MOST_FLOPS ? "takes seconds for each call of this size; try "
                                   "--size=512x512x512"
                                 : NULL;
}

/* --- bytes that move between L1 and L2 -------------------------------------------------------- */

/* The bytes are counted from the loops. The count assumes that L1 keeps only the data that one pass
 * of the innermost loop uses again, or the tile that the rung is designed to keep in L1. A walk
 * down a column moves a whole line for each number. C counts twice if it is read and written. */
enum { LINE = 64, NUMBER = sizeof(float) };

/* The number of multiplications. */
static double steps(const struct lab_problem *p)
{
    return p->flops / 2;
}

/* Per multiplication: a line of A, and a line of C that is read and written. */
static double columns_of_c(const struct lab_problem *p)
{
    return 3 * LINE * steps(p);
}

/* Per multiplication: a line of B. */
static double columns_of_b(const struct lab_problem *p)
{
    return LINE * steps(p);
}

/* Per multiplication: a line of B, and a number of A, because each sum uses another row of A. */
static double columns_of_b_and_rows(const struct lab_problem *p)
{
    return (LINE + NUMBER) * steps(p);
}

/* Per multiplication: a number of C, read and written; the row of B stays in L1. */
static double rows_of_c(const struct lab_problem *p)
{
    return 2 * NUMBER * steps(p);
}

/* Per multiplication: a number of B; the row of C stays in L1. */
static double rows_of_b(const struct lab_problem *p)
{
    return NUMBER * steps(p);
}

/* C is read and written once for each `deep` steps of k. */
static double sums(const struct lab_problem *p, int deep)
{
    return 2.0 * NUMBER * (double)p->out * (double)ceil_div(p->n[2], deep);
}

static double blocked(const struct lab_problem *p)
{
    enum { DEEP_OF_L2 = 64 };
    return NUMBER * steps(p) + sums(p, DEEP_OF_L2);
}

/* A number of B for each three multiplications; three rows of A stay in L1. */
static double scalars(const struct lab_problem *p)
{
    enum { TALL = 3 };
    return NUMBER * steps(p) / TALL + sums(p, DEEP);
}

/* The columns of a register tile with the instruction set in use. */
static int tile_columns(void)
{
    if (isa_allows(ISA_AVX512)) return 16 * WIDE_avx512;
    if (isa_allows(ISA_AVX2)) return 8 * WIDE_avx2;
    if (isa_allows(ISA_SSE2)) return 4 * WIDE_sse2;
    return 4 * (isa_allows(ISA_NEON) ? WIDE_neon : WIDE_plain);
}

/* A number of A for each row of a tile and step of k. Each panel of B is loaded once and stays in
 * L1. */
static double vectors(const struct lab_problem *p)
{
    return NUMBER * (steps(p) / tile_columns() + (double)p->in[1]) + sums(p, DEEP);
}

/* As for `vectors`, but all panels of B are loaded for each block of A. Packing reads A and B, and
 * reads and writes the lines of its copies. */
static double packed(const struct lab_problem *p)
{
    double blocks = (double)ceil_div(p->n[0], HIGH);
    return NUMBER * (steps(p) / tile_columns() + blocks * (double)p->in[1]) + sums(p, DEEP) +
           3.0 * NUMBER * (double)(p->in[0] + p->in[1]);
}

static bool is_small(const struct lab_problem *p)
{
    static const double MOST_FLOPS = 5e8;
    return p->flops <= MOST_FLOPS;
}

/* --- the rungs -------------------------------------------------------------------------------- */

LAB_CPU_DECLARE(matmul_jki);
LAB_CPU_DECLARE(matmul_kji);
LAB_CPU_DECLARE(matmul_ijk);
LAB_CPU_DECLARE(matmul_jik);
LAB_CPU_DECLARE(matmul_kij);
LAB_CPU_DECLARE(matmul_ikj);
LAB_CPU_DECLARE(matmul_blocked);
LAB_CPU_DECLARE(matmul_register_tile);
LAB_CPU_DECLARE(matmul_vectors);
LAB_CPU_DECLARE(matmul_packed);
LAB_CPU_DECLARE(matmul_threads);
const struct lab_rung lab_matmul_cpu[] = {
    {"jki", "matmul/cpu/01_jki.c", .run = LAB_CPU(matmul_jki), .types = LAB_F32,
     .moved = columns_of_c, .refuses = too_slow,
     .bound = "lines that do not stay in L1: two for each multiplication"},
    {"kji", "matmul/cpu/02_kji.c", .run = LAB_CPU(matmul_kji), .types = LAB_F32,
     .moved = columns_of_c, .refuses = too_slow,
     .bound = "lines that do not stay in L1: two for each multiplication",
     .no_gain = "the innermost loop is the same"},
    {"ijk", "matmul/cpu/03_ijk.c", .run = LAB_CPU(matmul_ijk), .types = LAB_F32,
     .moved = columns_of_b, .refuses = too_slow,
     .bound = "a line of B for each multiplication, and the latency of an addition"},
    {"jik", "matmul/cpu/04_jik.c", .run = LAB_CPU(matmul_jik), .types = LAB_F32,
     .moved = columns_of_b_and_rows, .refuses = too_slow,
     .bound = "a line of B for each multiplication, and the latency of an addition",
     .no_gain = "the innermost loop is the same, and L1 loses the lines of a column of B before "
                "the next row of A needs them"},
    {"kij", "matmul/cpu/05_kij.c", .run = LAB_CPU(matmul_kij), .types = LAB_F32, .moved = rows_of_c,
     .bound = "two loads and a store for each multiplication, and C, which passes by k times"},
    {"ikj", "matmul/cpu/06_ikj.c", .run = LAB_CPU(matmul_ikj), .types = LAB_F32, .moved = rows_of_b,
     .bound = "two loads and a store for each multiplication",
     .no_gain = "the prefetcher fetches rows of C as fast as this loop uses them"},
    {"blocked", "matmul/cpu/07_blocked.c", .run = LAB_CPU(matmul_blocked), .types = LAB_F32,
     .moved = blocked, .bound = "two loads and a store for each multiplication",
     .no_gain = "the prefetcher fetches rows of B from L3 as fast as this loop uses them"},
    {"register tile", "matmul/cpu/08_register_tile.c", .run = LAB_CPU(matmul_register_tile),
     .types = LAB_F32, .moved = scalars,
     .bound = "the number of instructions: one multiplication in each"},
    {"vectors", "matmul/cpu/09_vectors.c", .run = LAB_CPU(matmul_vectors), .types = LAB_F32,
     .moved = vectors, .bound = "lines that compete for the same places of L1"},
    {"packed", "matmul/cpu/10_packed.c", .run = LAB_CPU(matmul_packed), .types = LAB_F32,
     .moved = packed, .scratch = packed_scratch, .bound = "the multipliers of one core",
     .no_gain = "matrices this small hardly gain more than packing costs", .no_gain_at = is_small},
    {"threads", "matmul/cpu/11_threads.c", .run = LAB_CPU(matmul_threads), .types = LAB_F32,
     .moved = packed, .scratch = threads_scratch, .bound = "the multipliers of all cores",
     .no_gain = "there is one thread, or other programs use the other cores"},
    {"oneDNN", .variant = "onednn", .types = LAB_F32, .ceiling = true,
     .idea = "the library that training uses"},
    {0},
};

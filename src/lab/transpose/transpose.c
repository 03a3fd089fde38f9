/* The ladder `transpose`: to[column][row] = from[row][column]. */
#include "lab/ladder_parts.h"
#include "lab/ladders.h"

#include <math.h>

static void problem(struct lab_problem *p)
{
    p->in[0] = p->out = p->n[0] * p->n[1];
    p->columns = p->n[0];
    p->bytes = 2.0 * (double)p->out * (double)dtype_size(p->dtype);
}

static double reference(const struct lab_problem *p, const double *const *in, double *out)
{
    int64_t rows = p->n[0], columns = p->n[1];
    double sum = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            double x = in[0][r * columns + c];
            out[c * rows + r] = x;
            sum += x * x;
        }
    return sqrt(sum);
}

/* The naive kernel writes one element to each sector of 32 bytes at a time, and L2 evicts most
 * sectors before they are full. */
static double naive(const struct lab_problem *p)
{
    return p->bytes / 2 * (1 + 32 / (double)dtype_size(p->dtype));
}
static void tiles_of(const struct lab_problem *p, int64_t tile, struct kernel_shape *ret)
{
    ret->grid[0] = (unsigned)ceil_div(p->n[1], tile);
    ret->grid[1] = (unsigned)ceil_div(p->n[0], tile);
    ret->grid[2] = 1;
}

static void of_32(const struct lab_problem *p, struct kernel_shape *ret)
{
    *ret = (struct kernel_shape){.block = {32, 8, 1}};
    tiles_of(p, 32, ret);
}

static void of_64(const struct lab_problem *p, struct kernel_shape *ret)
{
    *ret = (struct kernel_shape){.block = {256, 1, 1}};
    tiles_of(p, 64, ret);
}

#define WAIT  "the barrier, at which a block waits for its loads"
#define SMALL "accesses of few bytes, and " WAIT

static const struct lab_rung gpu[] = {
    {"naive", "transpose/gpu/01_naive.cu", .shape = of_32, .moved = naive,
     .bound = "sectors of 32 bytes that L2 evicts before all their elements are written"},
    {"tiled", "transpose/gpu/02_tiled.cu", .shape = of_32,
     .bound = "bank conflicts: the 32 threads of a warp read one bank in turn"},
    {"padded", "transpose/gpu/03_padded.cu", .shape = of_32, .bound = SMALL},
    {"swizzled", "transpose/gpu/04_swizzled.cu", .shape = of_32, .bound = SMALL,
     .no_gain = "padding removed the conflicts as well; swizzling only saves its memory"},
    {"vectorized", "transpose/gpu/05_vectorized.cu", .shape = of_64, .bound = WAIT,
     .no_gain = "memory was the limit before, and wider accesses do not move more bytes"},
    {0},
};

#define EVICTED \
    "latency, and lines that are evicted before all 16 floats are used and must be moved again"
#define SETS "latency, and lines whose addresses are powers of two apart and compete for one set"

#define CORE "latency: writes that jump from page to page, on one core"

LAB_CPU_DECLARE(transpose_rows);
LAB_CPU_DECLARE(transpose_columns);
LAB_CPU_DECLARE(transpose_blocked);
LAB_CPU_DECLARE(transpose_vectors);
LAB_CPU_DECLARE(transpose_streaming);
LAB_CPU_DECLARE(transpose_threads);
static const struct lab_rung cpu[] = {
    {"rows", "transpose/cpu/01_rows.c", .run = LAB_CPU(transpose_rows), .moved = lab_read_first,
     .bound = EVICTED},
    {"columns", "transpose/cpu/02_columns.c", .run = LAB_CPU(transpose_columns),
     .moved = lab_read_first, .bound = EVICTED,
     .no_gain = "this processor hides misses of stores as well as those of loads"},
    {"blocked", "transpose/cpu/03_blocked.c", .run = LAB_CPU(transpose_blocked),
     .moved = lab_read_first, .bound = SETS},
    {"vectors", "transpose/cpu/04_vectors.c", .run = LAB_CPU(transpose_vectors),
     .moved = lab_read_first, .bound = SETS},
    {"streaming", "transpose/cpu/05_streaming.c", .run = LAB_CPU(transpose_streaming),
     .bound = CORE},
    {"threads", "transpose/cpu/06_threads.c", .run = LAB_CPU(transpose_threads),
     .bound = "latency, and the memory bandwidth that other programs use"},
    {0},
};

const struct lab_ladder lab_transpose = {
    .name = "transpose",
    .question = "How can both the reads and the writes of a matrix be in order?",
    .sizes = {"rows", "columns"},
    .gpu = {16384, 4096},
    .cpu = {4096, 4096},
    .odd = {{1, 1}, {3, 70}, {65, 33}, {64, 128}, {200, 136}},
    .problem = problem,
    .reference = reference,
    .tolerance = lab_exact,
    .of_gpu = gpu,
    .of_cpu = cpu,
};

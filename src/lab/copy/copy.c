/* The ladder `copy`: to[i] = from[i]. */
#include "lab/ladder_parts.h"
#include "lab/ladders.h"

#include <math.h>
#include <string.h>

static double reference(const struct lab_problem *p, const double *const *in, double *out)
{
    double sum = 0;
    memcpy(out, in[0], sizeof *out * (size_t)p->n[0]);
    for (int64_t i = 0; i < p->n[0]; i++) sum += out[i] * out[i];
    return sqrt(sum);
}

/* A GPU moves sectors of 32 bytes. A CPU moves lines of 64 bytes, and reads a line of the output
 * before it stores to the line. */
static double sectors(const struct lab_problem *p, int64_t stride)
{
    return p->bytes * (double)min_i64(stride, 32 / dtype_size(p->dtype));
}
static double stride_32(const struct lab_problem *p)
{
    return sectors(p, 32);
}
static double stride_8(const struct lab_problem *p)
{
    return sectors(p, 8);
}
static double stride_2(const struct lab_problem *p)
{
    return sectors(p, 2);
}
static double lines(const struct lab_problem *p)
{
    return 1.5 * p->bytes * 64 / (double)dtype_size(p->dtype);
}
/* The kernel needs ceil(n / STRIDE) * STRIDE threads: fewer than n + WIDEST for every stride. */
static void strided(const struct lab_problem *p, struct kernel_shape *ret)
{
    enum { WIDEST = 32 };
    lab_threads(p->n[0] + WIDEST, ret);
}

static void unrolled(const struct lab_problem *p, struct kernel_shape *ret)
{
    lab_threads(ceil_div(p->n[0] * dtype_size(p->dtype), 16 * 4), ret);
}

static void async(const struct lab_problem *p, struct kernel_shape *ret)
{
    lab_threads(ceil_div(p->n[0] * dtype_size(p->dtype), 16 * 8), ret);
}

static void misaligned(const struct lab_problem *p, struct kernel_shape *ret)
{
    lab_threads(p->n[0] + 1, ret);
}

static void bulk(const struct lab_problem *p, struct kernel_shape *ret)
{
    enum { BYTES = 16384, OF_BLOCK = 8 * BYTES, STAGES = 4, WARP = 32 };
    unsigned blocks = (unsigned)ceil_div(p->n[0] * dtype_size(p->dtype), OF_BLOCK);
    *ret = (struct kernel_shape){{blocks, 1, 1}, {WARP, 1, 1}, STAGES * (BYTES + 8)};
}

#define BYTES_UNDER_WAY \
    "latency: with at most 4 bytes under way in each thread, memory is not busy all the time"
#define FULL "memory was busy all the time before, so more bytes under way gain nothing"

static const struct lab_rung gpu[] = {
    {"stride 32", "copy/gpu/01_strided.cu", .options = "-DSTRIDE=32", .shape = strided,
     .moved = stride_32,
     .bound =
         "the time in which DRAM opens rows, as accesses are far apart, and address translation"},
    {"stride 8", "copy/gpu/01_strided.cu", .options = "-DSTRIDE=8", .shape = strided,
     .moved = stride_8,
     .bound =
         "the time in which DRAM opens rows, as accesses are far apart, and address translation"},
    {"stride 2", "copy/gpu/01_strided.cu", .options = "-DSTRIDE=2", .shape = strided,
     .moved = stride_2, .bound = "partly written sectors, which L2 must read and merge"},
    {"misaligned", "copy/gpu/02_misaligned.cu", .shape = misaligned, .bound = BYTES_UNDER_WAY},
    {"coalesced", "copy/gpu/03_coalesced.cu", .shape = lab_each, .bound = BYTES_UNDER_WAY},
    {"vectorized", "copy/gpu/04_vectorized.cu", .shape = lab_of_16_bytes},
    {"unrolled", "copy/gpu/05_unrolled.cu", .shape = unrolled, .no_gain = FULL},
    {"async", "copy/gpu/06_async.cu", .shape = async, .arch = 80, .no_gain = FULL},
    {"bulk", "copy/gpu/07_bulk.cu", .shape = bulk, .arch = 90, .no_gain = FULL},
    {0},
};

#define LATENCY "latency: one core keeps a dozen lines in flight"

LAB_CPU_DECLARE(copy_pages);
LAB_CPU_DECLARE(copy_lines);
LAB_CPU_DECLARE(copy_floats);
LAB_CPU_DECLARE(copy_vectors);
LAB_CPU_DECLARE(copy_streaming);
LAB_CPU_DECLARE(copy_threads);
static const struct lab_rung cpu[] = {
    {"pages", "copy/cpu/01_pages.c", .run = LAB_CPU(copy_pages), .moved = lines,
     .bound = "address translation and memory's latency, which nothing hides across pages"},
    {"lines", "copy/cpu/02_lines.c", .run = LAB_CPU(copy_lines), .moved = lines, .bound = LATENCY},
    {"floats", "copy/cpu/03_floats.c", .run = LAB_CPU(copy_floats), .moved = lab_read_first,
     .bound = "one load and one store for every 4 bytes, on one core"},
    {"vectors", "copy/cpu/04_vectors.c", .run = LAB_CPU(copy_vectors), .moved = lab_read_first,
     .bound = LATENCY, .no_gain = "memory was the limit before, not the number of instructions"},
    {"streaming", "copy/cpu/05_streaming.c", .run = LAB_CPU(copy_streaming), .bound = LATENCY,
     .no_gain = "the tensors fit in the caches, or the processor avoids the reads by itself"},
    {"threads", "copy/cpu/06_threads.c", .run = LAB_CPU(copy_threads),
     .bound = "competition for memory bandwidth, among the cores and with other programs",
     .no_gain = "one core already used the whole memory bandwidth of this machine"},
    {0},
};

const struct lab_ladder lab_copy = {
    .name = "copy",
    .question = "How fast can data be moved, and what makes it slow?",
    .sizes = {"n"},
    .gpu = {1 << 25},
    .cpu = {1 << 24},
    .odd = {{1}, {31}, {4099}, {100003}},
    .problem = lab_elementwise,
    .reference = reference,
    .tolerance = lab_exact,
    .of_gpu = gpu,
    .of_cpu = cpu,
};

/* The ladder `copy`: to[i] = from[i]. */
#include "lab/ladders.h"

#include <math.h>
#include <string.h>

static void problem(struct lab_problem *p)
{
    p->in[0] = p->out = p->n[0];
    p->bytes = 2.0 * (double)p->n[0] * (double)dtype_size(p->dtype);
}

static double reference(const struct lab_problem *p, const double *const *in, double *out)
{
    double sum = 0;
    memcpy(out, in[0], sizeof *out * (size_t)p->n[0]);
    for (int64_t i = 0; i < p->n[0]; i++) sum += out[i] * out[i];
    return sqrt(sum);
}

static double exact(const struct lab_problem *)
{
    return 0;
}

enum { THREADS = 256 };

static void shape(int64_t threads, struct kernel_shape *ret)
{
    *ret = (struct kernel_shape){{(unsigned)ceil_div(threads, THREADS), 1, 1}, {THREADS, 1, 1}, 0};
}

/* One element per thread; strided: whole rows of the widest stride. */
static void each(const struct lab_problem *p, struct kernel_shape *ret)
{
    shape(p->n[0], ret);
}

static void strided(const struct lab_problem *p, struct kernel_shape *ret)
{
    enum { WIDEST = 32 };
    shape(p->n[0] + WIDEST, ret);
}

static void of_16_bytes(const struct lab_problem *p, struct kernel_shape *ret)
{
    shape(ceil_div(p->n[0] * dtype_size(p->dtype), 16), ret);
}

static void unrolled(const struct lab_problem *p, struct kernel_shape *ret)
{
    shape(ceil_div(p->n[0] * dtype_size(p->dtype), 16 * 4), ret);
}

static void async(const struct lab_problem *p, struct kernel_shape *ret)
{
    shape(ceil_div(p->n[0] * dtype_size(p->dtype), 16 * 8), ret);
}

static const struct lab_rung gpu[] = {
    {"stride 32", "copy/gpu/01_strided.cu", .options = "-DSTRIDE=32", .shape = strided},
    {"stride 8", "copy/gpu/01_strided.cu", .options = "-DSTRIDE=8", .shape = strided},
    {"stride 2", "copy/gpu/01_strided.cu", .options = "-DSTRIDE=2", .shape = strided},
    {"coalesced", "copy/gpu/02_coalesced.cu", .shape = each},
    {"vectorized", "copy/gpu/03_vectorized.cu", .shape = of_16_bytes},
    {"unrolled", "copy/gpu/04_unrolled.cu", .shape = unrolled},
    {"async", "copy/gpu/05_async.cu", .shape = async, .arch = 80},
    {0},
};

LAB_CPU_DECLARE(copy_pages);
LAB_CPU_DECLARE(copy_lines);
LAB_CPU_DECLARE(copy_floats);
LAB_CPU_DECLARE(copy_vectors);
LAB_CPU_DECLARE(copy_streaming);
LAB_CPU_DECLARE(copy_threads);
static const struct lab_rung cpu[] = {
    {"pages", "copy/cpu/01_pages.c", .run = LAB_CPU(copy_pages)},
    {"lines", "copy/cpu/02_lines.c", .run = LAB_CPU(copy_lines)},
    {"floats", "copy/cpu/03_floats.c", .run = LAB_CPU(copy_floats)},
    {"vectors", "copy/cpu/04_vectors.c", .run = LAB_CPU(copy_vectors)},
    {"streaming", "copy/cpu/05_streaming.c", .run = LAB_CPU(copy_streaming)},
    {"threads", "copy/cpu/06_threads.c", .run = LAB_CPU(copy_threads)},
    {0},
};

const struct lab_ladder lab_copy = {
    .name = "copy",
    .question = "How fast can data be moved, and what makes it slow?",
    .sizes = {"n"},
    .gpu = {1 << 25},
    .cpu = {1 << 24},
    .odd = {{1}, {31}, {4099}, {100003}},
    .problem = problem,
    .reference = reference,
    .tolerance = exact,
    .of_gpu = gpu,
    .of_cpu = cpu,
};

/* The ladder `reduce`: the sum of n numbers, in float. */
#include "lab/ladder_parts.h"
#include "lab/ladders.h"

#include <math.h>

static void problem(struct lab_problem *p)
{
    p->in[0] = p->n[0];
    p->out = 1;
    p->out_dtype = DT_F32;
    p->bytes = (double)p->n[0] * (double)dtype_size(p->dtype) + 4;
}

/* Returns the sum of the magnitudes, by which errors are divided: numbers of both signs may add up
 * to almost 0, while the rounding errors depend on the magnitudes. */
static double reference(const struct lab_problem *p, const double *const *in, double *out)
{
    double sum = 0, magnitudes = 0;
    for (int64_t i = 0; i < p->n[0]; i++) {
        sum += in[0][i];
        magnitudes += fabs(in[0][i]);
    }
    *out = sum;
    return magnitudes;
}

/* With random signs, the partial sums grow like the square root of n, and a sum of n rounding
 * errors grows like the square root of n times one error. So relative to the sum of n magnitudes,
 * the error of a sum in any order is a few units of 2^-24. */
static double tolerance(const struct lab_problem *)
{
    return 1e-6;
}

static void chunks(const struct lab_problem *p, struct kernel_shape *ret)
{
    enum { CHUNKS = 16 };
    lab_blocks(ceil_div(p->n[0], LAB_THREADS * CHUNKS), ret);
}

/* As many blocks as an H100 holds at once, but no block without work. */
static void few(const struct lab_problem *p, struct kernel_shape *ret)
{
    enum { MOST = 1056 }; /* eight for each of its 132 multiprocessors */
    lab_blocks(min_i64(ceil_div(p->n[0], LAB_THREADS * 16), MOST), ret);
}

static const struct lab_rung gpu[] = {
    {"atomics", "reduce/gpu/01_atomics.cu", .shape = lab_each, .zeroed = true,
     .bound = "the queue for one address: additions to it come one after the other"},
    {"divergent", "reduce/gpu/02_divergent.cu", .shape = chunks, .zeroed = true,
     .bound = "the tree: nine barriers and diverged warps for every 256 elements"},
    {"sequential", "reduce/gpu/03_sequential.cu", .shape = chunks, .zeroed = true,
     .bound = "the tree: nine barriers for every 256 elements",
     .no_gain = "the barriers, which are as many as before, are the limit"},
    {"shuffles", "reduce/gpu/04_shuffles.cu", .shape = chunks, .zeroed = true,
     .bound = "latency: one load under way in each thread, and five shuffles wait for it"},
    {"several", "reduce/gpu/05_several.cu", .shape = few, .zeroed = true},
    {"one pass", "reduce/gpu/06_one_pass.cu", .shape = few,
     .no_gain = "reading was the limit before; this rung adds a fixed order, not speed"},
    {0},
};

#define LATENCY "latency: one core keeps a dozen lines in flight"

LAB_CPU_DECLARE(reduce_one);
LAB_CPU_DECLARE(reduce_four);
LAB_CPU_DECLARE(reduce_vector);
LAB_CPU_DECLARE(reduce_vectors);
LAB_CPU_DECLARE(reduce_threads);
static const struct lab_rung cpu[] = {
    {"one", "reduce/cpu/01_one.c", .run = LAB_CPU(reduce_one),
     .bound = "the latency of an addition: each waits for the one before"},
    {"four", "reduce/cpu/02_four.c", .run = LAB_CPU(reduce_four),
     .bound = "the latency of four chains of additions"},
    {"vector", "reduce/cpu/03_vector.c", .run = LAB_CPU(reduce_vector),
     .bound = "the latency of one chain of vectors, or of memory"},
    {"vectors", "reduce/cpu/04_vectors.c", .run = LAB_CPU(reduce_vectors), .bound = LATENCY,
     .no_gain = "memory was the limit before, not the additions"},
    {"threads", "reduce/cpu/05_threads.c", .run = LAB_CPU(reduce_threads),
     .bound = "competition for memory bandwidth, among the cores and with other programs",
     .no_gain = "one core already used the whole memory bandwidth of this machine"},
    {0},
};

const struct lab_ladder lab_reduce = {
    .name = "reduce",
    .question = "How do many workers add to one number?",
    .sizes = {"n"},
    .gpu = {1 << 26},
    .cpu = {1 << 24},
    .odd = {{1}, {31}, {257}, {5003}, {100003}},
    .problem = problem,
    .reference = reference,
    .tolerance = tolerance,
    .of_gpu = gpu,
    .of_cpu = cpu,
};

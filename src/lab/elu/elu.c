/* The ladder `elu`: y = x < 0 ? alpha (e^x - 1) : x, with alpha = 1. */
#include "lab/ladder_parts.h"
#include "lab/ladders.h"

#include <math.h>

static double reference(const struct lab_problem *p, const double *const *in, double *out)
{
    double squares = 0;
    for (int64_t i = 0; i < p->n[0]; i++) {
        double x = in[0][i];
        out[i] = x < 0 ? expm1(x) : x;
        squares += out[i] * out[i];
    }
    return sqrt(squares);
}

/* In float the error is a few units of 2^-24. Rounding to bf16 has an error of up to 2^-9. If each
 * operator rounds its result to bf16, e^x near 1 loses digits that e^x - 1 would need, and in a
 * small problem e^x may be near 1 for all elements. */
static double tolerance(const struct lab_problem *p)
{
    return p->dtype == DT_BF16 ? 2e-2 : 1e-6;
}

static void of_16_elements(const struct lab_problem *p, struct kernel_shape *ret)
{
    lab_threads(ceil_div(p->n[0], 16), ret);
}

/* As many blocks as the GPU holds at once, but no block without work. */
static void resident(const struct lab_problem *p, struct kernel_shape *ret)
{
    enum { OF_PROCESSOR = 2048 };
    lab_threads(min_i64(p->n[0], max_i64(p->processors, 1) * OF_PROCESSOR), ret);
}

/* A tensor of intermediate results and a tensor of truth values of one byte. */
static int64_t intermediate(const struct lab_problem *p, int)
{
    return p->n[0] * (dtype_size(p->dtype) + 1);
}

/* Ten accesses per element and two per truth value. A CPU reads a line before it stores to the
 * line, unless the pass has just loaded from it. */
static double operators(const struct lab_problem *p)
{
    return (double)p->n[0] * (10.0 * (double)dtype_size(p->dtype) + 2);
}
static double operators_read_first(const struct lab_problem *p)
{
    return (double)p->n[0] * (12.0 * (double)dtype_size(p->dtype) + 3);
}
#define BYTES_UNDER_WAY \
    "latency: with at most 4 bytes under way in each thread, memory is not busy all the time"

static const struct lab_rung gpu[] = {
    {"operators", "elu/gpu/01_operators.cu", .shape = resident, .scratch = intermediate,
     .moved = operators, .bound = BYTES_UNDER_WAY},
    {"fused", "elu/gpu/02_fused.cu", .shape = lab_each, .bound = BYTES_UNDER_WAY},
    {"vectorized", "elu/gpu/03_vectorized.cu", .shape = lab_of_16_bytes,
     .bound = "the exponentials, which fill most of the time of memory"},
    {"several", "elu/gpu/04_several.cu", .shape = of_16_elements,
     .bound = "the exponentials, which fill most of the time of memory",
     .no_gain = "other warps kept memory busy while a warp computed"},
    {0},
};

#define CORE "the exponentials, and the latency of memory for one core"

LAB_CPU_DECLARE(elu_operators);
LAB_CPU_DECLARE(elu_fused);
LAB_CPU_DECLARE(elu_vectors);
LAB_CPU_DECLARE(elu_streaming);
LAB_CPU_DECLARE(elu_threads);
static const struct lab_rung cpu[] = {
    {"operators", "elu/cpu/01_operators.c", .run = LAB_CPU(elu_operators), .scratch = intermediate,
     .moved = operators_read_first, .bound = "calls of expf, one float at a time"},
    {"fused", "elu/cpu/02_fused.c", .run = LAB_CPU(elu_fused), .moved = lab_read_first,
     .bound = "calls of expf, and branches that are guessed wrong",
     .no_gain = "a branch guessed wrong costs as much as the exponential that it saves"},
    {"vectors", "elu/cpu/03_vectors.c", .run = LAB_CPU(elu_vectors), .moved = lab_read_first,
     .bound = CORE},
    {"streaming", "elu/cpu/04_streaming.c", .run = LAB_CPU(elu_streaming), .bound = CORE,
     .no_gain = "the exponentials are the limit, not the bytes that are written"},
    {"threads", "elu/cpu/05_threads.c", .run = LAB_CPU(elu_threads),
     .bound = "competition for memory bandwidth, among the cores and with other programs",
     .no_gain = "one core already used the whole memory bandwidth of this machine"},
    {0},
};

const struct lab_ladder lab_elu = {
    .name = "elu",
    .question = "What does it cost if each operator is a pass over memory?",
    .sizes = {"n"},
    .gpu = {1 << 25},
    .cpu = {1 << 24},
    .odd = {{1}, {31}, {257}, {5003}, {100003}},
    .problem = lab_elementwise,
    .reference = reference,
    .tolerance = tolerance,
    .of_gpu = gpu,
    .of_cpu = cpu,
};

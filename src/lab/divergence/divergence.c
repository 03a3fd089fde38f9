/* The ladder `divergence`: each element goes through one of two chains of arithmetic. On a GPU the
 * index of the element selects the chain; on a CPU the sign does, because branch prediction would
 * learn a pattern of indices. */
#include "lab/ladder_parts.h"
#include "lab/ladders.h"

#include <math.h>

/* The STEPS of the rungs. On a GPU there are enough steps to make arithmetic the limit; on a CPU
 * there are so few that a branch misprediction costs as much as a chain. */
enum { GPU_STEPS = 256, CPU_STEPS = 8 };
static const float M = 0.998f, C = 0.002f;

static bool is_cpu(const struct lab_problem *p)
{
    return p->processors == 0;
}

static double reference(const struct lab_problem *p, const double *const *in, double *out)
{
    int steps = is_cpu(p) ? CPU_STEPS : GPU_STEPS;
    double m = (double)M, c = (double)C, squares = 0;
    for (int64_t i = 0; i < p->n[0]; i++) {
        double v = in[0][i];
        bool second = is_cpu(p) ? v < 0 : i % 2 == 1;
        for (int k = 0; k < steps; k++) v = second ? (v - c) * m : v * m + c;
        out[i] = v;
        squares += v * v;
    }
    return sqrt(squares);
}

/* In float there are up to 512 roundings, and their total error grows like the square root of their
 * number. In bf16 the rounding of the result dominates. */
static double tolerance(const struct lab_problem *p)
{
    return p->dtype == DT_BF16 ? 4e-3 : 2e-5;
}

/* An even number of blocks, because rung `block` uses two for each 512 elements. */
static void pairs(const struct lab_problem *p, struct kernel_shape *ret)
{
    lab_blocks(2 * ceil_div(p->n[0], 2 * LAB_THREADS), ret);
}

#define ONE  "arithmetic: 512 instructions for each element"
#define BOTH "arithmetic: 1024 instructions for each element, half of them for nothing"

static const struct lab_rung gpu[] = {
    {"thread", "divergence/gpu/01_thread.cu", .shape = pairs, .bound = BOTH},
    {"select", "divergence/gpu/02_select.cu", .shape = pairs, .bound = BOTH,
     .no_gain = "a diverged warp issues the instructions of both chains as well"},
    {"warp", "divergence/gpu/03_warp.cu", .shape = pairs, .bound = ONE},
    {"block", "divergence/gpu/04_block.cu", .shape = pairs, .bound = ONE,
     .no_gain = "no warp was diverged before either, and a warp is what diverges"},
    {"constants", "divergence/gpu/05_constants.cu", .shape = pairs, .bound = ONE,
     .no_gain = "it has as many instructions; it needs no other order of the elements for that"},
    {0},
};

/* The list has an index of 8 bytes for each element. Its lines are read before they are written,
 * and are read again when the list is used. */
static double with_list(const struct lab_problem *p)
{
    return 1.5 * p->bytes + (double)p->n[0] * 24;
}
static int64_t list(const struct lab_problem *p, int)
{
    return p->n[0] * (int64_t)sizeof(int64_t);
}

LAB_CPU_DECLARE(divergence_branch);
LAB_CPU_DECLARE(divergence_sorted);
LAB_CPU_DECLARE(divergence_mask);
LAB_CPU_DECLARE(divergence_vectors);
LAB_CPU_DECLARE(divergence_threads);
static const struct lab_rung cpu[] = {
    {"branch", "divergence/cpu/01_branch.c", .run = LAB_CPU(divergence_branch),
     .moved = lab_read_first, .bound = "branches that are guessed wrong"},
    {"sorted", "divergence/cpu/02_sorted.c", .run = LAB_CPU(divergence_sorted), .scratch = list,
     .moved = with_list, .bound = "arithmetic, one float at a time, and the making of the lists",
     .no_gain = "the lists cost as much as the wrong guesses"},
    {"mask", "divergence/cpu/03_mask.c", .run = LAB_CPU(divergence_mask), .moved = lab_read_first,
     .bound = "arithmetic, half of it for nothing, one float at a time",
     .no_gain = "the second chain costs as much as what it avoids"},
    {"vectors", "divergence/cpu/04_vectors.c", .run = LAB_CPU(divergence_vectors),
     .moved = lab_read_first, .bound = "arithmetic, and the latency of memory for one core"},
    {"threads", "divergence/cpu/05_threads.c", .run = LAB_CPU(divergence_threads),
     .moved = lab_read_first, .bound = "the memory bandwidth that other cores and programs use",
     .no_gain = "one core already used the whole memory bandwidth of this machine"},
    {0},
};

const struct lab_ladder lab_divergence = {
    .name = "divergence",
    .question = "What does a branch cost, if neighbors do not go the same way?",
    .sizes = {"n"},
    .gpu = {1 << 24},
    .cpu = {1 << 22},
    .odd = {{1}, {31}, {257}, {5003}, {100003}},
    .problem = lab_elementwise,
    .reference = reference,
    .tolerance = tolerance,
    .of_gpu = gpu,
    .of_cpu = cpu,
};

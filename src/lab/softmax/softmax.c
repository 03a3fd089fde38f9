/* The ladder `softmax`: y = e^x / the sum of e^x, for each row of x. */
#include "lab/ladder_parts.h"
#include "lab/ladders.h"

#include <math.h>

static void problem(struct lab_problem *p)
{
    p->in[0] = p->out = p->n[0] * p->n[1];
    p->bytes = 2.0 * (double)p->out * (double)dtype_size(p->dtype);
}

static double reference(const struct lab_problem *p, const double *const *in, double *out)
{
    int64_t rows = p->n[0], columns = p->n[1];
    double squares = 0;
    for (int64_t r = 0; r < rows; r++) {
        const double *x = in[0] + r * columns;
        double *y = out + r * columns, most = x[0], sum = 0;
        for (int64_t i = 0; i < columns; i++) most = fmax(most, x[i]);
        for (int64_t i = 0; i < columns; i++) sum += y[i] = exp(x[i] - most);
        for (int64_t i = 0; i < columns; i++) {
            y[i] /= sum;
            squares += y[i] * y[i];
        }
    }
    return sqrt(squares);
}

/* Rounding to bf16 has an error of up to 2^-9. Floats have errors of a few units of 2^-24 and the
 * rounding errors of the sum, which grow like the square root of the number of columns if one
 * thread adds in order. */
static double tolerance(const struct lab_problem *p)
{
    return p->dtype == DT_BF16 ? 3e-3 : 5e-7 + 6e-8 * sqrt((double)p->n[1]);
}

static void shared(const struct lab_problem *p, struct kernel_shape *ret)
{
    lab_block_rows(p, ret);
    ret->shared_bytes = (int)min_i64(p->n[1] * 4, INT32_MAX);
}

/* If L2 cannot hold the rows of all resident warps, each row is read twice from memory. */
static double twice(const struct lab_problem *p)
{
    /* Per SM: resident warps, and bytes of L2 (an H100 has 50 MiB for 132 SMs). */
    enum { WARPS = 64, L2_OF_PROCESSOR = 400 << 10 };
    int64_t bytes = WARPS * p->n[1] * dtype_size(p->dtype);
    return bytes > L2_OF_PROCESSOR ? 1.5 * p->bytes : p->bytes;
}

#define LOADS \
    "loads of a single element at a time, for which the threads of a block wait in each pass"

static const struct lab_rung gpu[] = {
    {"three passes", "softmax/gpu/01_three_passes.cu", .shape = lab_block_rows,
     .bound = "latency: three passes, which read from caches, and two reductions between them"},
    {"online", "softmax/gpu/02_online.cu", .shape = lab_block_rows, .bound = LOADS,
     .no_gain = "a pass over a cache is cheap; the exponentials are as many as before"},
    {"warp", "softmax/gpu/03_warp.cu", .shape = lab_warp_rows, .moved = twice, .bound = LOADS,
     .no_gain = "with long rows, the rows that all warps work on at once do not fit in the caches"},
    {"shared", "softmax/gpu/04_shared.cu", .shape = shared, .bound = LOADS,
     .no_gain = "the second read came from a cache and cost little"},
    {"registers", "softmax/gpu/05_registers.cu", .shape = lab_rows_in_registers,
     .refuses = lab_row_is_too_long,
     .bound = "latency: no block loads while it computes its maximum and its sum"},
    {0},
};

static int64_t row_of_each_thread(const struct lab_problem *p, int threads)
{
    return threads * round_up(p->n[1] * 4, 64);
}

#define CALLS "calls of expf, one float at a time"

LAB_CPU_DECLARE(softmax_three_passes);
LAB_CPU_DECLARE(softmax_online);
LAB_CPU_DECLARE(softmax_vectors);
LAB_CPU_DECLARE(softmax_streaming);
LAB_CPU_DECLARE(softmax_threads);
static const struct lab_rung cpu[] = {
    {"three passes", "softmax/cpu/01_three_passes.c", .run = LAB_CPU(softmax_three_passes),
     .moved = lab_read_first, .bound = CALLS},
    {"online", "softmax/cpu/02_online.c", .run = LAB_CPU(softmax_online), .moved = lab_read_first,
     .bound = CALLS, .no_gain = "the pass that it saves is over L1, and the exponentials double"},
    {"vectors", "softmax/cpu/03_vectors.c", .run = LAB_CPU(softmax_vectors),
     .moved = lab_read_first, .bound = "the exponentials, and the latency of memory for one core"},
    {"streaming", "softmax/cpu/04_streaming.c", .run = LAB_CPU(softmax_streaming),
     .scratch = row_of_each_thread,
     .bound = "the exponentials, and the latency of memory for one core",
     .no_gain = "the exponentials are the limit, not the bytes that are written"},
    {"threads", "softmax/cpu/05_threads.c", .run = LAB_CPU(softmax_threads),
     .scratch = row_of_each_thread,
     .bound = "competition for memory bandwidth, among the cores and with other programs",
     .no_gain = "one core already used the whole memory bandwidth of this machine"},
    {0},
};

const struct lab_ladder lab_softmax = {
    .name = "softmax",
    .question = "How often must a row be read, if its sum is needed before its result?",
    .sizes = {"rows", "columns"},
    .gpu = {16384, 4096},
    .cpu = {4096, 1024},
    .odd = {{1, 1}, {3, 70}, {65, 33}, {7, 1025}, {5, 4099}, {3, 9001}, {2, 8200}},
    .odd_scale =
        {[1] = 300, [4] = 300}, /* e^x overflows there unless the largest x is subtracted */
    .problem = problem,
    .reference = reference,
    .tolerance = tolerance,
    .of_gpu = gpu,
    .of_cpu = cpu,
};

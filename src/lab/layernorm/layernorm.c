/* The ladder `layernorm`: y = (x - mean) / sqrt(variance + 1e-5) * weight + bias, with the mean and
 * the variance of each row of x. The second input has the weights and then the biases. */
#include "lab/ladder_parts.h"
#include "lab/ladders.h"

#include <math.h>

static const double EPSILON = 1e-5;

static void problem(struct lab_problem *p)
{
    p->in[0] = p->out = p->n[0] * p->n[1];
    p->in[1] = 2 * p->n[1];
    p->bytes = (double)(2 * p->out + p->in[1]) * (double)dtype_size(p->dtype);
}

static double reference(const struct lab_problem *p, const double *const *in, double *out)
{
    int64_t columns = p->n[1];
    const double *weight = in[1], *bias = in[1] + columns;
    double all = 0;
    for (int64_t r = 0; r < p->n[0]; r++) {
        const double *x = in[0] + r * columns;
        double *y = out + r * columns, mean = 0, squares = 0;
        for (int64_t i = 0; i < columns; i++) mean += x[i] / (double)columns;
        for (int64_t i = 0; i < columns; i++) squares += (x[i] - mean) * (x[i] - mean);
        double factor = 1 / sqrt(squares / (double)columns + EPSILON);
        for (int64_t i = 0; i < columns; i++) {
            y[i] = (x[i] - mean) * factor * weight[i] + bias[i];
            all += y[i] * y[i];
        }
    }
    return sqrt(all);
}

/* Rounding to bf16 has an error of up to 2^-9. A mean in float has an error of some units of 2^-24
 * times the largest x, while the deviations from the mean are about 1. If one thread adds a row in
 * order, the rounding errors of the sum grow like the square root of the number of columns. A rung
 * that computes the variance as the mean of squares minus the square of the mean would fail,
 * because its error is proportional to the square of the offset. */
static double tolerance(const struct lab_problem *p)
{
    double of_float = (5e-7 + 6e-8 * sqrt((double)p->n[1])) * (1 + fabs(p->offset));
    return p->dtype == DT_BF16 ? 3e-3 + of_float : of_float;
}

static enum op operator_of(const struct lab_problem *p, union attr *attr, struct kernel_call *c)
{
    *attr = (union attr){.norm = {.eps = EPSILON}};
    c->n_in = c->n_out = 3;
    c->in_type[0] = c->out_type[0] = type_2d(p->dtype, p->n[0], p->n[1]);
    c->in_type[1] = c->in_type[2] = type_1d(DT_F32, p->n[1]);
    c->out_type[1] = c->out_type[2] = type_2d(DT_F32, p->n[0], 1);
    return OP_LAYERNORM;
}

enum { THREADS_OF_ROWS = 128 };

static void threads(const struct lab_problem *p, struct kernel_shape *ret)
{
    unsigned blocks = (unsigned)ceil_div(p->n[0], THREADS_OF_ROWS);
    *ret = (struct kernel_shape){{blocks, 1, 1}, {THREADS_OF_ROWS, 1, 1}, 0};
}

#define OWN   "the kernel that training uses"
#define MEANS "it also writes the mean and the deviation of each row, which its gradient reads"
#define LOADS \
    "loads of a single element at a time, for which the threads of a block wait in each pass"

static const struct lab_rung gpu[] = {
    {"thread", "layernorm/gpu/01_thread.cu", .shape = threads,
     .bound = "sectors of which a load uses one element, and few threads"},
    {"block", "layernorm/gpu/02_block.cu", .shape = lab_block_rows, .bound = LOADS},
    {"one pass", "layernorm/gpu/03_one_pass.cu", .shape = lab_block_rows,
     .bound = "a division for each element, which waits for the one before",
     .no_gain = "the pass that it saves is over L1, and divisions cost more"},
    {"warp", "layernorm/gpu/04_warp.cu", .shape = lab_warp_rows, .bound = LOADS,
     .no_gain = "rows are long enough for a block, whose barriers cost little beside its loads"},
    {"registers", "layernorm/gpu/05_registers.cu", .shape = lab_rows_in_registers,
     .refuses = lab_row_is_too_long, .bound = "latency: no block loads while it computes its sums"},
    {"Strobe's own", .variant = "*", .types = LAB_F32, .idea = OWN, .no_gain = MEANS},
    {0},
};

#define ADDITIONS "additions that wait for each other, one float at a time"

LAB_CPU_DECLARE(layernorm_three_passes);
LAB_CPU_DECLARE(layernorm_one_pass);
LAB_CPU_DECLARE(layernorm_vectors);
LAB_CPU_DECLARE(layernorm_streaming);
LAB_CPU_DECLARE(layernorm_threads);
static const struct lab_rung cpu[] = {
    {"three passes", "layernorm/cpu/01_three_passes.c", .run = LAB_CPU(layernorm_three_passes),
     .moved = lab_read_first, .bound = ADDITIONS},
    {"one pass", "layernorm/cpu/02_one_pass.c", .run = LAB_CPU(layernorm_one_pass),
     .moved = lab_read_first,
     .bound = "a division for each element, which waits for the one before",
     .no_gain = "the pass that it saves is over L1, and divisions cost more"},
    {"vectors", "layernorm/cpu/03_vectors.c", .run = LAB_CPU(layernorm_vectors),
     .moved = lab_read_first, .bound = "the memory that one core can keep busy"},
    {"streaming", "layernorm/cpu/04_streaming.c", .run = LAB_CPU(layernorm_streaming),
     .bound = "the memory that one core can keep busy",
     .no_gain = "one core waits for its loads, and streamed stores do not shorten that"},
    {"threads", "layernorm/cpu/05_threads.c", .run = LAB_CPU(layernorm_threads),
     .bound = "competition for memory bandwidth, among the cores and with other programs",
     .no_gain = "one core already used the whole memory bandwidth of this machine"},
    {"Strobe's own", .variant = "*", .idea = OWN, .no_gain = MEANS},
    {0},
};

const struct lab_ladder lab_layernorm = {
    .name = "layernorm",
    .question = "How often must a row be read, if its mean is needed before its variance?",
    .sizes = {"rows", "columns"},
    .gpu = {32768, 1024},
    .cpu = {8192, 768},
    .odd = {{1, 1}, {3, 70}, {65, 33}, {7, 1025}, {5, 4099}, {3, 9001}, {2, 1032}},
    .odd_offset = {[1] = 100, [3] = 100, [6] = 100}, /* means of 100, deviations of 1 */
    .problem = problem,
    .reference = reference,
    .tolerance = tolerance,
    .operator_of = operator_of,
    .of_gpu = gpu,
    .of_cpu = cpu,
};

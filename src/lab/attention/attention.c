/* The ladder `attention`: forward attention, causal or full, with heads of 64 elements. The input
 * has the layout of Strobe's operator, (batch, tokens, 3, heads, 64); the output is (batch, tokens,
 * heads, 64). */
#include "lab/ladders.h"

#include "base/heap.h"
#include "base/interrupt.h"

#include <math.h>
#include <stdlib.h>

enum { HEAD = 64, THREADS = 256, CAUSAL = 0 };

static int64_t rows_of(const struct lab_problem *p)
{
    return p->n[0] * p->n[1] * p->n[2];
}

/* The number of pairs of a query and a key that is not masked. */
static double pairs(const struct lab_problem *p)
{
    return (double)rows_of(p) * (double)(p->form == CAUSAL ? p->n[2] + 1 : 2 * p->n[2]) / 2;
}

static void problem(struct lab_problem *p)
{
    p->out = rows_of(p) * HEAD;
    p->in[0] = 3 * p->out;
    p->bytes = 4.0 * (double)p->out * (double)dtype_size(p->dtype);
    p->flops = 4.0 * HEAD * pairs(p);
}

/* One head, computed by the definition of attention; `s` has space for the scores of a query. */
static void one_head(const struct lab_problem *p, const double *x, double *y, double *s)
{
    int64_t tokens = p->n[2], width = p->n[1] * HEAD, stride = 3 * width;
    const double *k = x + width, *v = k + width;
    for (int64_t i = 0; i < tokens; i++) {
        double most = -INFINITY, sum = 0, *to = y + i * width;
        int64_t keys = p->form == CAUSAL ? i + 1 : tokens;
        for (int64_t j = 0; j < keys; j++) {
            s[j] = 0;
            for (int d = 0; d < HEAD; d++) s[j] += x[i * stride + d] * k[j * stride + d];
            s[j] /= sqrt(HEAD);
            most = fmax(most, s[j]);
        }
        for (int64_t j = 0; j < keys; j++) sum += s[j] = exp(s[j] - most);
        for (int d = 0; d < HEAD; d++) to[d] = 0;
        for (int64_t j = 0; j < keys; j++)
            for (int d = 0; d < HEAD; d++) to[d] += s[j] / sum * v[j * stride + d];
    }
}

static double reference(const struct lab_problem *p, const double *const *in, double *out)
{
    int64_t heads = p->n[1], tokens = p->n[2], width = heads * HEAD;
    double sum = 0;
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < p->n[0] * heads; i++) {
        double *s = HEAP_NEW(double, tokens);
        int64_t at = i / heads * tokens * width + i % heads * HEAD;
        if (!interrupt_noted())
            one_head(p, in[0] + i / heads * tokens * 3 * width + i % heads * HEAD, out + at, s);
        free(s);
    }
    for (int64_t i = 0; i < p->out; i++) sum += out[i] * out[i];
    return sqrt(sum);
}

/* In bf16, the probabilities and the result are rounded; the two errors are equally large and
 * independent. The fewer elements the output has, the less their errors average out in the norm. In
 * float, the error of a score (some units of 2^-24, from a sum of 64 products) is the relative
 * error of its exponential, and sums of up to `tokens` terms add further errors. */
static double tolerance(const struct lab_problem *p)
{
    static const double FLOAT = 6e-8, BF16 = 2.4e-3;
    if (p->dtype == DT_BF16) return BF16 * sqrt(2) * (1 + 1.5 / sqrt((double)p->out));
    return FLOAT * (16 + sqrt((double)p->n[2]));
}

static enum op operator_of(const struct lab_problem *p, union attr *attr, struct kernel_call *c)
{
    int64_t B = p->n[0], H = p->n[1], T = p->n[2];
    *attr = (union attr){.attention = {.heads = (int)H, .causal = p->form == CAUSAL}};
    c->n_in = c->n_out = 2;
    c->in_type[0] = (struct type){.dtype = p->dtype, .rank = 3, .dim = {B, T, 3 * H * HEAD}};
    c->in_type[1] = (struct type){.dtype = DT_I32};
    c->out_type[0] = (struct type){.dtype = p->dtype, .rank = 3, .dim = {B, T, H * HEAD}};
    c->out_type[1] = (struct type){.dtype = DT_F32, .rank = 3, .dim = {B, H, T}};
    return OP_ATTENTION;
}

/* --- a GPU ------------------------------------------------------------------------------------ */

static unsigned heads_of(const struct lab_problem *p)
{
    return (unsigned)(p->n[0] * p->n[1]);
}

static struct kernel_shape tiles(const struct lab_problem *p, int64_t queries, unsigned threads,
                                 int64_t shared)
{
    unsigned blocks = (unsigned)ceil_div(p->n[2], queries);
    return (struct kernel_shape){{blocks, heads_of(p), 1}, {threads, 1, 1}, shared};
}

static void shape_scores(const struct lab_problem *p, struct kernel_shape *ret)
{
    unsigned blocks = (unsigned)ceil_div(p->n[2], 16);
    *ret = (struct kernel_shape){{blocks, blocks, heads_of(p)}, {THREADS, 1, 1}, 0};
}
static void shape_softmax(const struct lab_problem *p, struct kernel_shape *ret)
{
    *ret = (struct kernel_shape){{(unsigned)ceil_div(rows_of(p), 8), 1, 1}, {THREADS, 1, 1}, 0};
}
static void shape_weighted(const struct lab_problem *p, struct kernel_shape *ret)
{
    *ret = tiles(p, 16, THREADS, 0);
}
static void shape_rows(const struct lab_problem *p, struct kernel_shape *ret)
{
    enum { QUERIES = 8 };
    *ret = tiles(p, QUERIES, THREADS, min_i64(4 * QUERIES * p->n[2], INT32_MAX));
}
/* At 6144 tokens a block needs 192 KiB of shared memory for scores and 10 KiB more. It may have at
 * most 227 KiB, on most GPUs less. */
static const char *rows_too_long(const struct lab_problem *p)
{
    enum { TOKENS = 6144 };
    return p->n[2] > TOKENS
               ? "the scores of 8 queries do not fit into shared memory beyond 6144 tokens"
               : NULL;
}
static void shape_queries(const struct lab_problem *p, struct kernel_shape *ret)
{
    enum { TILES = 4, PITCH = HEAD + 1 };
    *ret = tiles(p, HEAD, THREADS, 4 * TILES * HEAD * PITCH);
}
static void shape_online(const struct lab_problem *p, struct kernel_shape *ret)
{
    shape_queries(p, ret);
    ret->grid[0] = heads_of(p);
    ret->grid[1] = 1;
}
static void shape_tensor_cores(const struct lab_problem *p, struct kernel_shape *ret)
{
    *ret = tiles(p, HEAD, 128, 0);
}
static void shape_wgmma(const struct lab_problem *p, struct kernel_shape *ret)
{
    enum { QUERIES = 128, BLOCK_THREADS = 288, BARRIERS = 80 };
    *ret = tiles(p, QUERIES, BLOCK_THREADS, 5 * QUERIES * HEAD * 2 + BARRIERS);
}
/* A tensor map of the whole input, with boxes of 128 tokens of one head. */
static int maps_wgmma(const struct lab_problem *p, struct lab_map *ret)
{
    enum { BOX = 128 };
    int64_t columns = 3 * p->n[1] * HEAD;
    ret[0] = (struct lab_map){.of = LAB_IN_0,
                              .map = {.dtype = p->dtype,
                                      .rows = p->n[0] * p->n[2],
                                      .columns = columns,
                                      .pitch = columns * dtype_size(p->dtype),
                                      .box_rows = BOX,
                                      .box_columns = HEAD}};
    return 1;
}

static int64_t matrices(const struct lab_problem *p, int)
{
    return 4 * rows_of(p) * p->n[2];
}
/* Scratch of rung `online`: for each query its output, its largest score and its sum, as floats. */
static int64_t outputs(const struct lab_problem *p, int)
{
    return 4 * rows_of(p) * (HEAD + 2);
}

/* Bytes that warps move if each tile of `queries` queries reads the keys and values that its
 * queries attend to. */
static double by_tiles(const struct lab_problem *p, double queries)
{
    double keys = p->form == CAUSAL ? ((double)p->n[2] + queries) / 2 : (double)p->n[2];
    double read = (double)rows_of(p) * keys / queries * 2 * HEAD;
    return (read + 2.0 * (double)p->out) * (double)dtype_size(p->dtype);
}
/* For each pair of a query and a key: the first kernel reads 1/16 of a query and 1/16 of a key,
 * because the 16 x 16 pairs of a tile share them, and writes the score. The softmax reads the score
 * three times and writes it. In the last kernel two warps read the score, a sector each, and the 8
 * warps of a block read half of the value each, for 16 queries. */
static double moved_matrices(const struct lab_problem *p)
{
    enum { SECTOR = 32, TILE = 16, WARPS = 8 };
    double size = (double)dtype_size(p->dtype);
    double of_pair = 2.0 * HEAD * size / TILE + 5 * 4.0 + 2.0 * SECTOR + WARPS * 32.0 * size / TILE;
    return pairs(p) * of_pair + (double)p->out * size;
}
static double moved_rows(const struct lab_problem *p)
{
    return by_tiles(p, 8);
}
/* Each tile of keys and values is read once. For each tile, the queries that attend to it are read;
 * their outputs, maxima and sums are read except for the first tile and written except for the
 * last. A warp has two queries, and moves one sector for their maxima and one for their sums. */
static double moved_online(const struct lab_problem *p)
{
    double keys = p->form == CAUSAL ? ((double)p->n[2] + HEAD) / 2 : (double)p->n[2];
    double times = keys / HEAD; /* tiles of keys for the average query */
    double size = (double)dtype_size(p->dtype), kept = 2 * (4.0 * HEAD + 2 * 32 / 2) * (times - 1);
    return (double)rows_of(p) * (HEAD * size * (times + 2 + 1) + kept);
}
static double moved_queries(const struct lab_problem *p)
{
    return by_tiles(p, HEAD);
}
/* The stores of four lanes together are 16 bytes of a row, half a sector, so each sector of the
 * output counts twice. */
static double moved_fragments(const struct lab_problem *p)
{
    return by_tiles(p, HEAD) + (double)p->out * (double)dtype_size(p->dtype);
}
static double moved_wgmma(const struct lab_problem *p)
{
    return by_tiles(p, 2 * HEAD) + (double)p->out * (double)dtype_size(p->dtype);
}

static const struct lab_rung gpu[] = {
    {"matrices", "attention/gpu/01_matrices.cu", .shape = shape_weighted, .scratch = matrices,
     .prologue = {{"attention_scores", shape_scores}, {"attention_softmax", shape_softmax}},
     .moved = moved_matrices,
     .bound = "memory traffic of the matrices, and loads of a single element at a time"},
    {"rows", "attention/gpu/02_rows.cu", .shape = shape_rows, .refuses = rows_too_long,
     .moved = moved_rows, .bound = "shared memory: two reads for each multiplication",
     .no_gain =
         "the scores of long sequences fill shared memory, so few blocks run at once, and keys "
         "and values are read once for every 8 queries instead of every 16"},
    {"online", "attention/gpu/03_online.cu", .shape = shape_online, .scratch = outputs,
     .moved = moved_online,
     .bound = "shared memory, and too few blocks, one for each head, to use all multiprocessors",
     .no_gain = "one block for each head leaves multiprocessors idle, and outputs go to memory and "
                "back for each tile of keys"},
    {"queries", "attention/gpu/04_queries.cu", .shape = shape_queries, .moved = moved_queries,
     .bound = "shared memory: one read for every two multiplications"},
    {"tensor cores", "attention/gpu/05_tensor_cores.cu", .shape = shape_tensor_cores, .arch = 80,
     .types = LAB_BF16, .moved = moved_fragments,
     .bound = "loads of a tile, for which all four warps wait"},
    {"async", "attention/gpu/06_async.cu", .shape = shape_tensor_cores, .arch = 80,
     .types = LAB_BF16, .moved = moved_fragments,
     .bound =
         "exponentials and mma.sync of a warp, which take turns, and ldmatrix for each product"},
    {"wgmma", "attention/gpu/07_wgmma.cu", .shape = shape_wgmma, .maps = maps_wgmma, .arch = 90,
     .types = LAB_BF16, .moved = moved_wgmma,
     .bound = "exponentials and wgmma of a warpgroup, which take turns"},
    {"Strobe's own", .variant = "*", .ceiling = true, .idea = "the kernel that training uses"},
    {0},
};

/* --- a CPU ------------------------------------------------------------------------------------ */

/* The size of struct tiles in attention/cpu/tiles.h. */
enum { TILES_BYTES = 4 * (2 * HEAD * HEAD + 4 * HEAD + 2 * HEAD) };

static int64_t one_row(const struct lab_problem *p, int)
{
    return 4 * p->n[2];
}
static int64_t one_block(const struct lab_problem *, int)
{
    return TILES_BYTES;
}
static int64_t block_of_each_thread(const struct lab_problem *, int threads)
{
    return (int64_t)threads * TILES_BYTES;
}

LAB_CPU_DECLARE(attention_matrices);
LAB_CPU_DECLARE(attention_rows);
LAB_CPU_DECLARE(attention_tiles);
LAB_CPU_DECLARE(attention_threads);
static const struct lab_rung cpu[] = {
    {"matrices", "attention/cpu/01_matrices.c", .run = LAB_CPU(attention_matrices),
     .scratch = matrices, .bound = "sums across the lanes of a vector, one for each score"},
    {"rows", "attention/cpu/02_rows.c", .run = LAB_CPU(attention_rows), .scratch = one_row,
     .bound = "sums across the lanes of a vector, one for each score",
     .no_gain = "the arithmetic is the same, and matrices of a few MiB stay in L3"},
    {"tiles", "attention/cpu/03_tiles.c", .run = LAB_CPU(attention_tiles), .scratch = one_block,
     .bound = "loads of values: one for each multiplication of the second product",
     .no_gain = "values are read as often as before, and keys are transposed for each block"},
    {"threads", "attention/cpu/04_threads.c", .run = LAB_CPU(attention_threads),
     .scratch = block_of_each_thread, .bound = "the multipliers of all cores",
     .no_gain = "there is one thread, or other programs use the other cores"},
    {"Strobe's own", .variant = "*", .ceiling = true, .idea = "the kernel that training uses"},
    {0},
};

const struct lab_ladder lab_attention = {
    .name = "attention",
    .question = "How does attention get from matrices in memory to a kernel that stores none?",
    .sizes = {"batch", "heads", "tokens"},
    .forms = {"causal", "full"},
    .gpu = {8, 12, 1024},
    .cpu = {1, 4, 512},
    .type = LAB_BF16,
    .odd = {{1, 1, 1}, {1, 2, 7}, {1, 3, 65}, {2, 1, 140}},
    .problem = problem,
    .reference = reference,
    .tolerance = tolerance,
    .operator_of = operator_of,
    .of_gpu = gpu,
    .of_cpu = cpu,
};

/* The ladder `matmul`: C = A B, A (m,k), B (k,n), C (m,n), all row-major. In TF32, B is stored
 * transposed, (n,k), as nn.Linear stores weights, because tensor cores read TF32 only along k. */
#include "lab/ladders.h"

#include "base/heap.h"
#include "base/interrupt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void problem(struct lab_problem *p)
{
    int64_t m = p->n[0], n = p->n[1], k = p->n[2];
    p->in[0] = m * k;
    p->in[1] = k * n;
    p->out = m * n;
    p->columns = n;
    p->bytes = (double)(p->in[0] + p->in[1] + p->out) * (double)dtype_size(p->dtype);
    p->flops = 2.0 * (double)m * (double)n * (double)k;
}

/* Computes at most ROWS rows of C from row `first` on, in blocks of columns that stay in L1, so
 * that each row of B is read once for all of these rows. */
enum { ROWS = 8, COLUMNS = 256 };
static void some_rows(const struct lab_problem *p, const double *a, const double *b, double *c,
                      int64_t first)
{
    int64_t n = p->n[1], k = p->n[2], rows = min_i64(ROWS, p->n[0] - first);
    memset(c + first * n, 0, sizeof *c * (size_t)(rows * n));
    for (int64_t j0 = 0; j0 < n; j0 += COLUMNS)
        for (int64_t x = 0; x < k; x++)
            for (int64_t i = first; i < first + rows; i++) {
                double factor = a[i * k + x], *to = c + i * n + j0;
                const double *from = b + x * n + j0;
                int64_t columns = min_i64(COLUMNS, n - j0);
                for (int64_t j = 0; j < columns; j++) to[j] += factor * from[j];
            }
}

static double *transposed(const double *b, int64_t n, int64_t k)
{
    double *ret = HEAP_NEW(double, n *k);
    for (int64_t j = 0; j < n; j++)
        for (int64_t x = 0; x < k; x++) ret[x * n + j] = b[j * k + x];
    return ret;
}

static double reference(const struct lab_problem *p, const double *const *in, double *out)
{
    double *copy = p->type == LAB_TF32 ? transposed(in[1], p->n[1], p->n[2]) : NULL, sum = 0;
#pragma omp parallel for schedule(dynamic)
    for (int64_t i = 0; i < p->n[0]; i += ROWS)
        if (!interrupt_noted()) some_rows(p, in[0], copy ? copy : in[1], out, i);
    for (int64_t i = 0; i < p->out; i++) sum += out[i] * out[i];
    free(copy);
    return sqrt(sum);
}

/* Relative errors, by norm, of sums of k random products. Each of the k additions in float has an
 * error of at most 2^-24 of the sum so far. bf16 rounds the result, TF32 rounds the inputs. The
 * fewer elements the output has, the less their errors average out in the norm. */
static double tolerance(const struct lab_problem *p)
{
    static const double FLOAT = 6e-8, BF16 = 2.4e-3, TF32 = 4.5e-4;
    double few = 1 + 1.5 / sqrt((double)p->out);
    if (p->type == LAB_BF16) return BF16 * few;
    return p->type == LAB_TF32 ? TF32 * few : FLOAT * (1 + sqrt((double)p->n[2]));
}

static enum op operator_of(const struct lab_problem *p, union attr *attr, struct kernel_call *c)
{
    int64_t m = p->n[0], n = p->n[1], k = p->n[2];
    bool tb = p->type == LAB_TF32;
    *attr = (union attr){.matmul = {.tb = tb}};
    c->n_in = 2;
    c->n_out = 1;
    c->in_type[0] = (struct type){.dtype = p->dtype, .rank = 2, .dim = {m, k}};
    c->in_type[1] = (struct type){.dtype = p->dtype, .rank = 2, .dim = {tb ? n : k, tb ? k : n}};
    c->out_type[0] = (struct type){.dtype = p->out_dtype, .rank = 2, .dim = {m, n}};
    return OP_MATMUL;
}

const struct lab_ladder lab_matmul = {
    .name = "matmul",
    .question = "What makes one matmul fast, from the naive loop to the library's speed?",
    .sizes = {"m", "n", "k"},
    .gpu = {4096, 4096, 4096},
    .cpu = {512, 512, 512}, /* the first rungs take seconds for a larger call */
    .type = LAB_BF16,
    .types = LAB_F32 | LAB_TF32 | LAB_BF16,
    .odd = {{1, 1, 1},
            {33, 70, 131},
            {70, 131, 33},
            {129, 257, 65},
            {200, 264, 136},
            {15, 33, 801},
            {5, 4133, 3}},
    .problem = problem,
    .reference = reference,
    .tolerance = tolerance,
    .operator_of = operator_of,
    .of_gpu = lab_matmul_gpu,
    .of_cpu = lab_matmul_cpu,
};

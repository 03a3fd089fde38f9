#include "lab/products.h"

#include "base/arena.h"
#include "base/interrupt.h"
#include "base/rng.h"
#include "check/device_matmul.h"
#include "measure/stopwatch.h"
#include "tuning/tuning.h"

#include <math.h>
#include <string.h>

enum { M, N, K, OPERANDS = 2, LEAST = 5, WARMUP = 2 };
static const double DEVICE_SAMPLE_MS = 2; /* launching a captured graph takes some microseconds */
static const double ERRORS = 0.5;         /* share of the progress bar for finding errors */

/* clang-format off */
static const struct products_kind kinds[] = {
    {NUMBER_FP32, NUMBER_FP32, NUMBER_FP32, NUMBER_FP32, .note = NULL},
    {NUMBER_TF32, NUMBER_TF32, NUMBER_FP32, NUMBER_FP32, .note = NULL},
    {NUMBER_FP16, NUMBER_FP16, NUMBER_FP32, NUMBER_FP32, .note = NULL},
    {NUMBER_BF16, NUMBER_BF16, NUMBER_FP32, NUMBER_FP32, .note = NULL},
    {NUMBER_BF16, NUMBER_BF16, NUMBER_FP32, NUMBER_BF16, .note = NULL},
    {NUMBER_E4M3, NUMBER_E4M3, NUMBER_FP32, NUMBER_FP32, .scaled = true, .note = "scaled"},
    {NUMBER_E4M3, NUMBER_E4M3, NUMBER_FP32, NUMBER_FP32, .scaled = true, .fast = true, .note = "fast sums"},
    {NUMBER_E5M2, NUMBER_E4M3, NUMBER_FP32, NUMBER_FP32, .scaled = true, .note = "scaled"},
    {NUMBER_FP32, NUMBER_FP32, NUMBER_FP32, NUMBER_FP32, .in_order = true, .note = "in order"},
    {NUMBER_FP16, NUMBER_FP16, NUMBER_FP16, NUMBER_FP16, .in_order = true, .note = "in order"},
    {NUMBER_BF16, NUMBER_BF16, NUMBER_BF16, NUMBER_BF16, .in_order = true, .note = "in order"},
};
/* clang-format on */

struct running;

struct timed_matmul {
    struct running *r;
    struct products_result *result;
    struct device_matmul matmul;
    struct stopwatch watch;
};

struct running {
    const struct products_options *o;
    struct products_run *ret;
    struct target target;
    void *context;
    struct tuning tuning;
    float *operand[OPERANDS];       /* A (M,K), B (K,N) */
    double *sampled[OPERANDS];      /* rows of A and columns of B in the sample, K contiguous */
    double *exact, *computed, norm; /* of the sample */
    double *rounded[OPERANDS];      /* `sampled`, scaled and rounded for emulation */
    struct timed_matmul timed[COUNT_OF(kinds)];
    int timings;
    struct arena *arena;
};

double products_expected(const struct products_kind *kind, int64_t k)
{
    static const double SQUARE = 0.4 * 0.4;
    double squares = 0;
    /* fp32 inputs are not rounded. A result that has the type of its sums is not rounded either. */
    const struct {
        enum number_kind f;
        double times;
    } all[] = {{kind->a, kind->a != NUMBER_FP32},
               {kind->b, kind->b != NUMBER_FP32},
               {kind->sum, (double)(k + 1) / 2},
               {kind->result, kind->result != kind->sum}};
    for (int i = 0; i < COUNT_OF(all); i++) {
        double u = number_spacing(all[i].f, 1) / 2;
        squares += all[i].times * u * u;
    }
    return sqrt(SQUARE * squares);
}

static void show(const struct running *r, double share, const char *what)
{
    if (r->o->each) r->o->each(r->o->user, share, what);
}

/* --- inputs, and the sample ------------------------------------------------------------------- */

static int64_t elements(const struct running *r, int operand)
{
    return r->o->size[K] * r->o->size[operand ? N : M];
}

/* The row or column of the matmul that is the i-th of the sample; the sample is evenly spread. */
static int64_t place_of(const struct running *r, int operand, int64_t i)
{
    int64_t all = r->o->size[operand ? N : M], n = operand ? r->ret->columns : r->ret->rows;
    return i * all / n;
}

static float element(const struct running *r, int operand, int64_t place, int64_t k)
{
    return operand ? r->operand[1][k * r->o->size[N] + place]
                   : r->operand[0][place * r->o->size[K] + k];
}

static void make_inputs(struct running *r)
{
    enum { BLOCK = 4096 };
    int64_t k_all = r->o->size[K];
    for (int operand = 0; operand < OPERANDS; operand++) {
        int64_t n = elements(r, operand);
        float *x = r->operand[operand] = ARENA_NEW(r->arena, float, n);
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < n; i += BLOCK)
            rng_normals(1, RNG_TEST, (uint32_t)operand, (uint64_t)i, min_i64(BLOCK, n - i), x + i);
        int64_t sample = operand ? r->ret->columns : r->ret->rows;
        double *y = r->sampled[operand] = ARENA_NEW(r->arena, double, sample *k_all);
        r->rounded[operand] = ARENA_NEW(r->arena, double, sample *k_all);
        for (int64_t i = 0; i < sample; i++)
            for (int64_t k = 0; k < k_all; k++)
                y[i * k_all + k] = (double)element(r, operand, place_of(r, operand, i), k);
    }
}

static void multiply_exactly(struct running *r)
{
    int64_t rows = r->ret->rows, columns = r->ret->columns, k_all = r->o->size[K];
    double squares = 0;
    r->exact = ARENA_NEW(r->arena, double, rows *columns);
    r->computed = ARENA_NEW(r->arena, double, rows *columns);
#pragma omp parallel for reduction(+ : squares)
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            const double *x = r->sampled[0] + i * k_all, *y = r->sampled[1] + j * k_all;
            double sum = 0;
            for (int64_t k = 0; k < k_all; k++) sum += x[k] * y[k];
            r->exact[i * columns + j] = sum;
            squares += sum * sum;
        }
    r->norm = sqrt(squares);
}

static double error_of(const struct running *r)
{
    double squares = 0;
    for (int64_t i = 0; i < r->ret->rows * r->ret->columns; i++)
        squares += pow(r->computed[i] - r->exact[i], 2);
    return sqrt(squares) / r->norm;
}

/* The scale of an operand, chosen as by OP_QUANTIZE: a power of two such that dividing by it brings
 * the largest magnitude into the highest binade that the format has in full. 1: no scaling. */
static double scale_of(const struct running *r, const struct products_kind *kind, int operand)
{
    float largest = 0;
    int64_t n = elements(r, operand);
    const float *x = r->operand[operand];
    if (!kind->scaled) return 1;
#pragma omp parallel for reduction(max : largest)
    for (int64_t i = 0; i < n; i++)
        if (fabsf(x[i]) > largest) largest = fabsf(x[i]);
    int top = ilogb(number_formats[operand ? kind->b : kind->a].largest) - 1;
    return ldexp(1, ilogb((double)largest) - top);
}

/* --- emulation -------------------------------------------------------------------------------- */

static double dot(const struct products_kind *kind, const double *x, const double *y, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum = number_round(kind->sum, sum + x[k] * y[k]);
    return sum;
}

static void emulate(struct running *r, struct products_result *x)
{
    const struct products_kind *kind = x->kind;
    int64_t rows = r->ret->rows, columns = r->ret->columns, k_all = r->o->size[K];
    double scale[OPERANDS];
    for (int i = 0; i < OPERANDS; i++) {
        scale[i] = scale_of(r, kind, i);
        for (int64_t k = 0; k < (i ? columns : rows) * k_all; k++)
            r->rounded[i][k] = number_round(i ? kind->b : kind->a, r->sampled[i][k] / scale[i]);
    }
#pragma omp parallel for
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            double sum = dot(kind, r->rounded[0] + i * k_all, r->rounded[1] + j * k_all, k_all);
            r->computed[i * columns + j] = number_round(kind->result, sum * scale[0] * scale[1]);
        }
    x->error = error_of(r);
}

/* --- kernels of the device -------------------------------------------------------------------- */

/* The backend's type of a format; DT_COUNT: none. TF32 inputs are stored as DT_F32. */
static enum dtype dtype_of(enum number_kind f)
{
    static const enum dtype of[NUMBER_KINDS] = {
        [NUMBER_FP32] = DT_F32,  [NUMBER_TF32] = DT_F32,  [NUMBER_FP16] = DT_COUNT,
        [NUMBER_BF16] = DT_BF16, [NUMBER_E4M3] = DT_E4M3, [NUMBER_E5M2] = DT_E5M2};
    return of[f];
}

/* Finds the kernel that computes in these types; false: the device has none. The reference kernels
 * for 8-bit types do not count because they emulate these types. */
static bool find_kernel(struct running *r, const struct products_kind *kind,
                        struct device_matmul *ret)
{
    const struct backend *backend = r->o->device.backend;
    bool tf32 = kind->a == NUMBER_TF32;
    struct device_matmul_types types = {dtype_of(kind->a), dtype_of(kind->b),
                                        dtype_of(kind->result), tf32, kind->fast};
    if (kind->in_order || types.a == DT_COUNT || (tf32 && backend->host_memory)) return false;
    if (backend->devices.refuses && backend->devices.refuses(&r->target, types.a, tf32))
        return false;
    device_matmul_find(ret, backend, r->context, &r->target, &types, r->o->size);
    struct tuning_entry e;
    if (ret->kernel && backend->kernels.tune &&
        backend->kernels.tune(r->context, (int)ret->op, &ret->call, &e) == ST_OK) {
        tuning_set(&r->tuning, &e);
        ret->call.tuning = &r->tuning;
        ret->kernel = backend->kernels.find((int)ret->op, &ret->call, 0);
    }
    return ret->kernel && strcmp(ret->kernel->variant, "ref") != 0;
}

/* The operand converted to its format. An 8-bit B is transposed. */
static void *convert(const struct running *r, const struct products_kind *kind, int operand,
                     double scale, struct arena *a)
{
    enum number_kind f = operand ? kind->b : kind->a;
    int64_t n = elements(r, operand), rows = r->o->size[K], columns = r->o->size[N];
    int size = dtype_size(dtype_of(f));
    if (size == sizeof(float)) return r->operand[operand];
    bool transposed = operand && size == 1;
    void *ret = arena_alloc(a, n * size);
#pragma omp parallel for
    for (int64_t i = 0; i < n; i++) {
        int64_t from = transposed ? i % rows * columns + i / rows : i;
        double x = (double)r->operand[operand][from] / scale;
        uint32_t bits = number_bits(f, number_round(f, x));
        if (size == 1)
            ((uint8_t *)ret)[i] = (uint8_t)bits;
        else
            ((uint16_t *)ret)[i] = (uint16_t)bits;
    }
    return ret;
}

static enum status check(struct running *r, struct products_result *x, struct device_matmul *m)
{
    struct arena a = {0};
    const int64_t *size = r->o->size;
    double scale[OPERANDS] = {scale_of(r, x->kind, 0), scale_of(r, x->kind, 1)};
    const float scales[OPERANDS] = {(float)scale[0], (float)scale[1]};
    float *c = ARENA_NEW(&a, float, size[M] * size[N]);
    enum status st = device_matmul_open(m, convert(r, x->kind, 0, scale[0], &a),
                                        convert(r, x->kind, 1, scale[1], &a), scales);
    if (st == ST_OK) st = device_matmul_start(m);
    if (st == ST_OK) st = device_matmul_result(m, c);
    for (int64_t i = 0; st == ST_OK && i < r->ret->rows; i++)
        for (int64_t j = 0; j < r->ret->columns; j++)
            r->computed[i * r->ret->columns + j] =
                (double)c[place_of(r, 0, i) * size[N] + place_of(r, 1, j)];
    if (st == ST_OK) x->error = error_of(r);
    arena_release(&a);
    return st;
}

static enum status start(void *user, int)
{
    return device_matmul_start(&((struct timed_matmul *)user)->matmul);
}

static enum status sample(void *user, int calls, double *ret_ms)
{
    return stopwatch_time(&((struct timed_matmul *)user)->watch, calls, ret_ms);
}

static enum status find_error(struct running *r, struct products_result *x)
{
    struct timed_matmul *t = &r->timed[r->timings];
    x->expected = products_expected(x->kind, r->o->size[K]);
    if (!find_kernel(r, x->kind, &t->matmul)) {
        t->matmul = (struct device_matmul){0};
        if (x->kind->fast)
            r->ret->results--; /* there is no emulation of fast sums */
        else
            emulate(r, x);
        return ST_OK;
    }
    t->result = x;
    t->r = r;
    x->kernel = t->matmul.kernel->variant;
    r->timings++;
    return check(r, x, &t->matmul);
}

/* --- times ------------------------------------------------------------------------------------ */

static void show_times(void *user, double done_ms, double expected_ms)
{
    double share = expected_ms > 0 && done_ms < expected_ms ? done_ms / expected_ms : 0;
    show(user, ERRORS + (1 - ERRORS) * share, "timing all variants alternately");
}

static enum status time_all(struct running *r)
{
    struct contender c[COUNT_OF(kinds)];
    const struct backend *backend = r->o->device.backend;
    for (int i = 0; i < r->timings; i++) {
        struct timed_matmul *t = &r->timed[i];
        t->watch = (struct stopwatch){
            .backend = backend, .context = r->context, .start = start, .user = t};
        c[i] = (struct contender){
            .sample = sample, .user = t, .parts = 1, .budget_ms = r->o->limit_ms / r->timings};
    }
    const struct rounds rounds = {.most = r->o->samples,
                                  .least = r->o->samples < LEAST ? r->o->samples : LEAST,
                                  .warmup = WARMUP,
                                  .cold = 1,
                                  .keep = r->arena,
                                  .sample_ms = backend->recording ? DEVICE_SAMPLE_MS : 0,
                                  .each = show_times,
                                  .user = r};
    enum status st = r->timings ? rounds_run(&rounds, c, r->timings) : ST_OK;
    for (int i = 0; i < r->timings; i++) {
        stopwatch_release(&r->timed[i].watch);
        if (st == ST_OK) r->timed[i].result->time = c[i];
    }
    return st;
}

static enum status run_products(struct running *r)
{
    struct products_run *ret = r->ret;
    show(r, 0, "inputs");
    make_inputs(r);
    multiply_exactly(r);
    for (int i = 0; i < COUNT_OF(kinds); i++) {
        if (interrupt_noted()) return fail(ST_INTERRUPTED, "interrupted");
        show(r, ERRORS * i / COUNT_OF(kinds), "errors");
        struct products_result *x = &ret->result[ret->results++];
        *x = (struct products_result){.kind = &kinds[i]};
        TRY(find_error(r, x));
    }
    return time_all(r);
}

enum status products_run(const struct products_options *o, struct products_run *ret,
                         struct arena *a)
{
    const struct backend *backend = o->device.backend;
    struct running *r = ARENA_NEW(a, struct running, 1);
    *ret = (struct products_run){.options = o,
                                 .rows = min_i64(o->size[M], PRODUCTS_SAMPLE),
                                 .columns = min_i64(o->size[N], PRODUCTS_SAMPLE)};
    r->o = o;
    r->ret = ret;
    r->arena = a;
    TRY(backend_target(backend, o->device.number, &r->target));
    tuning_init(&r->tuning, &r->target, a);
    TRY(backend->open(o->device.number, &r->context));
    enum status st = run_products(r);
    if (st == ST_INTERRUPTED && ret->results) st = ST_OK; /* the results so far are valid */
    for (int i = 0; i < r->timings; i++) device_matmul_close(&r->timed[i].matmul);
    backend->close(r->context);
    return st;
}

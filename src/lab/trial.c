#include "lab/trial.h"

#include "base/heap.h"
#include "base/rng.h"
#include "base/threads.h"
#include "check/reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POISON = 0xff, GUARD = 256 }; /* NaN in every type; bytes after the output */

/* --- the device and its rungs ----------------------------------------------------------------- */

static const char *word_of(enum dtype dtype)
{
    return dtype == DT_BF16 ? "bf16" : "float";
}

const char *lab_bench_refuses(const struct lab_bench *b, int rung, struct arena *a)
{
    int arch = b->rung[rung].arch;
    if (b->arch >= arch) return NULL;
    return arena_printf(a, "needs compute capability %d.%d", arch / 10, arch % 10);
}

static struct kernel_text text_of(const struct lab_bench *b, int rung, struct arena *a)
{
    const struct lab_rung *r = &b->rung[rung];
    int64_t bytes;
    const char *more = r->options ? r->options : "";
    const char *options =
        arena_printf(a, "-DELEMENT=%s%s%s", word_of(b->dtype), *more ? " " : "", more);
    return (struct kernel_text){r->file, lab_source(r, &bytes), options, b->ladder->name};
}

static enum status add_kernels(struct lab_bench *b)
{
    const struct backend *backend = b->device.backend;
    struct arena a = {0};
    enum status st = ST_OK;
    for (int i = 0; i < b->rungs && st == ST_OK; i++) {
        if (lab_bench_refuses(b, i, &a)) continue;
        struct kernel_text text = text_of(b, i, &a);
        st = backend->texts->add(b->context, &text, &b->kernel[i]);
    }
    arena_release(&a);
    return st;
}

enum status lab_bench_assembly(const struct lab_bench *b, int rung, struct str *ret)
{
    struct arena a = {0};
    struct kernel_text text = text_of(b, rung, &a);
    enum status st = b->device.backend->texts->assembly(b->context, &text, ret);
    arena_release(&a);
    return st;
}

enum status lab_bench_open(struct lab_bench *b, const struct lab_ladder *l,
                           const struct device *device, enum dtype dtype)
{
    struct target target = {0};
    *b = (struct lab_bench){.ladder = l, .device = *device, .dtype = dtype};
    b->rung = lab_rungs(l, device, &b->rungs);
    TRY(backend_target(device->backend, device->number, &target));
    b->arch = target.arch;
    TRY(device->backend->open(device->number, &b->context));
    return device->backend->texts ? add_kernels(b) : ST_OK;
}

void lab_bench_close(struct lab_bench *b)
{
    const struct backend *backend = b->device.backend;
    for (int i = 0; i < b->rungs; i++)
        if (b->kernel[i]) backend->texts->free(b->context, b->kernel[i]);
    if (b->context) backend->close(b->context);
    b->context = NULL;
}

/* --- one size --------------------------------------------------------------------------------- */

void lab_problem_of(const struct lab_bench *b, const int64_t n[LAB_SIZES], struct lab_problem *ret)
{
    *ret = (struct lab_problem){.dtype = b->dtype, .out_dtype = b->dtype};
    memcpy(ret->n, n, sizeof ret->n);
    b->ladder->problem(ret);
}

static int64_t out_bytes(const struct lab_problem *p)
{
    return p->out * dtype_size(p->out_dtype);
}

int64_t lab_set_bytes(const struct lab_problem *p)
{
    int64_t elements = 0;
    for (int i = 0; i < LAB_INPUTS; i++) elements += p->in[i];
    return elements * dtype_size(p->dtype) + out_bytes(p) + GUARD;
}

/* Normal numbers in the type, in the same order on every machine, and what they are exactly. */
static enum status make_input(const struct lab_trial *t, int input, void **ret, double **ret_exact,
                              struct arena *a)
{
    enum { BLOCK = 4096 };
    int64_t n = t->problem.in[input];
    enum dtype dtype = t->problem.dtype;
    struct arena scratch = {0};
    float *x = ARENA_NEW(&scratch, float, n);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i += BLOCK)
        rng_normals(1, RNG_TEST, (uint32_t)input, (uint64_t)i, min_i64(BLOCK, n - i), x + i);
    *ret = arena_alloc(a, n * dtype_size(dtype));
    *ret_exact = ARENA_NEW(a, double, n);
    enum status st = reference_convert(*ret, dtype, x, DT_F32, n);
    if (st == ST_OK) st = reference_convert(*ret_exact, DT_F64, *ret, dtype, n);
    arena_release(&scratch);
    return st;
}

static enum status alloc(struct lab_trial *t, int64_t bytes, void **ret)
{
    return t->bench->device.backend->memory.alloc(t->bench->context, bytes, ret);
}

/* Fills the inputs of all sets and computes the solution. */
static enum status make_tensors(struct lab_trial *t, struct arena *a)
{
    const struct lab_problem *p = &t->problem;
    const struct lab_bench *b = t->bench;
    int64_t size = dtype_size(p->dtype);
    const double *exact[LAB_INPUTS] = {0};
    for (int i = 0; i < LAB_INPUTS && p->in[i]; i++) {
        void *x;
        double *of_x;
        TRY(make_input(t, i, &x, &of_x, a));
        exact[i] = of_x;
        for (int s = 0; s < t->sets; s++) {
            TRY(alloc(t, p->in[i] * size, &t->in[s][i]));
            TRY(b->device.backend->memory.upload(b->context, t->in[s][i], x, p->in[i] * size));
        }
    }
    for (int s = 0; s < t->sets; s++) TRY(alloc(t, out_bytes(p) + GUARD, &t->out[s]));
    TRY(b->device.backend->stream.sync(b->context));
    t->expected = ARENA_NEW(&t->arena, double, p->out);
    t->norm = b->ladder->reference(p, exact, t->expected);
    return ST_OK;
}

enum status lab_trial_open(struct lab_trial *t, const struct lab_bench *b,
                           const int64_t n[LAB_SIZES], int sets)
{
    struct arena scratch = {0};
    *t = (struct lab_trial){.bench = b, .sets = sets};
    lab_problem_of(b, n, &t->problem);
    enum status st = make_tensors(t, &scratch);
    arena_release(&scratch);
    return st;
}

void lab_trial_close(struct lab_trial *t)
{
    const struct lab_bench *b = t->bench;
    for (int s = 0; s < t->sets; s++) {
        for (int i = 0; i < LAB_INPUTS; i++)
            if (t->in[s][i]) b->device.backend->memory.free(b->context, t->in[s][i]);
        if (t->out[s]) b->device.backend->memory.free(b->context, t->out[s]);
    }
    arena_release(&t->arena);
}

/* --- a call ----------------------------------------------------------------------------------- */

static enum status launch(const struct lab_trial *t, int rung, struct lab_call *c)
{
    const struct lab_bench *b = t->bench;
    struct kernel_shape shape;
    void *argument[1 + LAB_INPUTS + LAB_SIZES];
    int n = 0;
    b->rung[rung].shape(&t->problem, &shape);
    enum { MOST = 65535 }; /* of the second dimension of every GPU's grid */
    if (shape.grid[1] > MOST)
        return fail(ST_UNSUPPORTED,
                    "this size makes a grid of %u x %u blocks, and a GPU takes at most %d in the "
                    "second dimension; choose a smaller --size",
                    shape.grid[0], shape.grid[1], MOST);
    argument[n++] = &c->out;
    for (int i = 0; i < LAB_INPUTS && t->problem.in[i]; i++) argument[n++] = &c->in[i];
    for (int i = 0; i < LAB_SIZES && b->ladder->sizes[i]; i++) argument[n++] = &c->n[i];
    return b->device.backend->texts->launch(b->context, b->kernel[rung], &shape, argument);
}

enum status lab_trial_start(const struct lab_trial *t, int rung, int set)
{
    const struct lab_bench *b = t->bench;
    struct lab_call c = {.out = t->out[set], .threads = (int)threads_count()};
    for (int i = 0; i < LAB_INPUTS; i++) c.in[i] = t->in[set][i];
    memcpy(c.n, t->problem.n, sizeof c.n);
    if (b->rung[rung].zeroed)
        TRY(b->device.backend->memory.fill(b->context, c.out, 0, out_bytes(&t->problem)));
    if (b->device.backend->texts) return launch(t, rung, &c);
    lab_function (&b->rung[rung])(&c);
    return ST_OK;
}

/* Infinite if the guard after the output was written to. */
static double error_of(const struct lab_trial *t, const double *y, const unsigned char *guard)
{
    double sum = 0;
    for (int64_t i = 0; i < t->problem.out; i++) {
        double off = y[i] - t->expected[i];
        sum += off * off;
    }
    for (int i = 0; i < GUARD; i++)
        if (guard[i] != POISON) return INFINITY;
    if (!isfinite(sum)) return INFINITY;
    return sum == 0 ? 0 : t->norm > 0 ? sqrt(sum) / t->norm : INFINITY;
}

enum status lab_trial_check(const struct lab_trial *t, int rung, int set, double *ret_error)
{
    const struct lab_bench *b = t->bench;
    const struct backend *backend = b->device.backend;
    const struct lab_problem *p = &t->problem;
    int64_t bytes = out_bytes(p);
    struct arena scratch = {0};
    unsigned char *y = arena_alloc(&scratch, bytes + GUARD);
    double *exact = ARENA_NEW(&scratch, double, p->out);
    enum status st = ST_OK;
    TRY_OUT(st, backend->memory.fill(b->context, t->out[set], POISON, bytes + GUARD));
    TRY_OUT(st, lab_trial_start(t, rung, set));
    TRY_OUT(st, backend->memory.download(b->context, y, t->out[set], bytes + GUARD));
    TRY_OUT(st, backend->stream.sync(b->context));
    TRY_OUT(st, reference_convert(exact, DT_F64, y, p->out_dtype, p->out));
    *ret_error = error_of(t, exact, y + bytes);
out:
    arena_release(&scratch);
    return st;
}

#include "lab/trial.h"

#include "base/clock.h"
#include "base/heap.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/threads.h"
#include "check/reference.h"
#include "lab/describe_errors.h"
#include "lab/own.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* POISON, a NaN in every type, fills outputs and their guards; INPUT_GUARD, about -1.7e38 in every
 * type, fills the guards of inputs. The two values differ, so that a copy from one guard to another
 * is found. */
enum { POISON = 0xff, INPUT_GUARD = 0xfe };

/* --- the device and its rungs ----------------------------------------------------------------- */

const char *lab_bench_refuses(const struct lab_bench *b, int rung, struct arena *a)
{
    enum { HOPPER = 90 };
    int64_t bytes;
    int arch = b->rung[rung].arch;
    const char *source = lab_source(&b->rung[rung], &bytes);
    if (b->target.arch < arch)
        return arena_printf(a, "needs compute capability %d.%d", arch / 10, arch % 10);
    if (b->target.arch > HOPPER && source && strstr(source, "wgmma_"))
        return "its wgmma instructions exist on compute capability 9.0 alone";
    return NULL;
}

static void describe(const struct lab_bench *b, const struct lab_problem *p, union attr *attr,
                     struct kernel_call *c, enum op *ret_op)
{
    *c = (struct kernel_call){.attr = attr, .context = b->context, .target = &b->target};
    c->numerics.tf32 = p->type == LAB_TF32;
    *ret_op = b->ladder->operator_of(p, attr, c);
}

/* The backend's kernel for a rung with a `variant`; NULL: no kernel supports this problem. */
static const struct kernel *row_of(const struct lab_bench *b, int rung, enum op op,
                                   const struct kernel_call *c)
{
    const struct kernel *k = NULL;
    for (int n = 0; (k = b->device.backend->kernels.find((int)op, c, n)); n++)
        if (!strcmp(b->rung[rung].variant, "*") || !strcmp(k->variant, b->rung[rung].variant))
            break;
    return k;
}

static const char *shape_refused(const struct lab_bench *b, const struct lab_rung *r,
                                 const struct lab_problem *p, struct arena *a)
{
    enum { MOST = 65535 }; /* blocks in the second and third dimension of a grid */
    struct kernel_shape shape;
    if (lab_shape(r, p, &shape) != ST_OK) { /* leaves out the lines with the formula and caret */
        int bytes = (int)strcspn(fail_message(), "\n");
        return arena_printf(a, "%.*s", bytes, fail_message());
    }
    if (b->target.shared_bytes && shape.shared_bytes > b->target.shared_bytes)
        return arena_printf(a, "needs %lld KiB of shared memory in a block",
                            (long long)ceil_div(shape.shared_bytes, 1024));
    if (shape.grid[1] > MOST || shape.grid[2] > MOST)
        return arena_printf(a,
                            "this size makes a grid of %u x %u x %u blocks, and a GPU takes at "
                            "most %d in the second dimension and the third",
                            shape.grid[0], shape.grid[1], shape.grid[2], MOST);
    return NULL;
}

const char *lab_rung_refuses(const struct lab_bench *b, int rung, const struct lab_problem *p,
                             struct arena *a)
{
    const struct lab_rung *r = &b->rung[rung];
    const char *why = lab_bench_refuses(b, rung, a);
    union attr attr;
    struct kernel_call c;
    enum op op;
    if (!why && r->refuses) why = r->refuses(p);
    if (!why && b->device.backend->texts && !r->variant) why = shape_refused(b, r, p, a);
    if (why || !r->variant) return why;
    describe(b, p, &attr, &c, &op);
    return row_of(b, rung, op, &c) ? NULL : "not available for this device and size";
}

static struct kernel_text text_of(const struct lab_bench *b, int rung, struct arena *a)
{
    const struct lab_rung *r = &b->rung[rung];
    const char *options = lab_options(r, b->type, b->form, a);
    const char *name = r->own ? r->own->path : r->file;
    return (struct kernel_text){name, lab_text(r, a), options, b->ladder->name};
}

static enum status add_kernels(struct lab_bench *b)
{
    const struct backend *backend = b->device.backend;
    struct arena a = {0};
    enum status st = ST_OK;
    for (int i = 0; i < b->rungs && st == ST_OK; i++) {
        if (b->rung[i].variant || lab_bench_refuses(b, i, &a)) continue;
        struct kernel_text text = text_of(b, i, &a);
        st = backend->texts->add(b->context, &text, &b->kernel[i]);
        const struct lab_prologue *prologue = b->rung[i].prologue;
        for (int k = 0; k < LAB_PROLOGUES && prologue[k].entry && st == ST_OK; k++) {
            text.entry = prologue[k].entry;
            st = backend->texts->add(b->context, &text, &b->prologue[i][k]);
        }
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

static bool is_name(const struct lab_rung *r, const char *word, size_t n)
{
    return strlen(r->name) == n && !strncmp(r->name, word, n);
}

static bool is_named(const struct lab_rung *r, const char *words)
{
    for (const char *at = words;; at += strcspn(at, ",") + 1) {
        if (is_name(r, at, strcspn(at, ","))) return true;
        if (!at[strcspn(at, ",")]) return false;
    }
}

/* Fails for a word that is not the name of a rung of this type. */
static enum status fail_name(const struct lab_bench *b, const char *word, size_t bytes)
{
    int n;
    const struct lab_rung *all = lab_rungs(b->ladder, &b->device, &n);
    struct str names = {0};
    const char *other = "";
    for (int i = 0; i < n; i++) {
        if (lab_has_type(&all[i], b->type))
            str_printf(&names, "%s%s", *str_text(&names) ? "," : "", all[i].name);
        else if (is_name(&all[i], word, bytes))
            other = ", which runs in another --dtype";
    }
    enum status st = fail(ST_USAGE, "--rungs takes names of these rungs in %s: %s; found %.*s%s",
                          lab_type_name(b->type), str_text(&names), bytes ? (int)bytes : 7,
                          bytes ? word : "nothing", other);
    str_release(&names);
    return st;
}

static enum status choose_rungs(struct lab_bench *b, const char *only)
{
    int n;
    const struct lab_rung *all = lab_rungs(b->ladder, &b->device, &n);
    for (int i = 0; i < n; i++)
        if (lab_has_type(&all[i], b->type) && (!only || all[i].ceiling || is_named(&all[i], only)))
            b->rung[b->rungs++] = all[i];
    for (const char *at = only; at;) {
        size_t bytes = strcspn(at, ",");
        bool known = false;
        for (int i = 0; i < b->rungs; i++) known |= is_name(&b->rung[i], at, bytes);
        if (!known) return fail_name(b, at, bytes);
        at = at[bytes] ? at + bytes + 1 : NULL;
    }
    return ST_OK;
}

enum status lab_bench_open(struct lab_bench *b, const struct lab_ladder *l,
                           const struct device *device, enum lab_type type, int form,
                           const char *only, const struct lab_rung *own)
{
    struct device_facts facts;
    *b = (struct lab_bench){.ladder = l, .device = *device, .type = type, .form = form};
    if (!only || *only) TRY(choose_rungs(b, only));
    if (own) b->rung[b->rungs++] = *own;
    TRY(backend_target(device->backend, device->number, &b->target));
    if (device->backend->texts &&
        device->backend->devices.describe(device->number, &facts) == ST_OK)
        b->processors = facts.processors;
    TRY(device->backend->open(device->number, &b->context));
    return device->backend->texts ? add_kernels(b) : ST_OK;
}

void lab_bench_close(struct lab_bench *b)
{
    const struct backend *backend = b->device.backend;
    for (int i = 0; i < b->rungs; i++) {
        if (b->kernel[i]) backend->texts->free(b->context, b->kernel[i]);
        for (int k = 0; k < LAB_PROLOGUES; k++)
            if (b->prologue[i][k]) backend->texts->free(b->context, b->prologue[i][k]);
    }
    if (b->context) backend->close(b->context);
    b->context = NULL;
}

/* --- one size --------------------------------------------------------------------------------- */

void lab_problem_of(const struct lab_bench *b, const int64_t n[LAB_SIZES], struct lab_problem *ret)
{
    enum dtype dtype = b->type == LAB_BF16 ? DT_BF16 : DT_F32;
    *ret = (struct lab_problem){.type = b->type,
                                .form = b->form,
                                .processors = b->processors,
                                .dtype = dtype,
                                .out_dtype = dtype,
                                .scale = 1};
    memcpy(ret->n, n, sizeof ret->n);
    for (int k = 0; k < LAB_ODD && b->ladder->odd[k][0]; k++)
        if (!memcmp(n, b->ladder->odd[k], sizeof ret->n)) {
            ret->scale = b->ladder->odd_scale[k] != 0 ? b->ladder->odd_scale[k] : 1;
            ret->offset = b->ladder->odd_offset[k];
        }
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
    return elements * dtype_size(p->dtype) + out_bytes(p) + LAB_GUARD;
}

/* Makes an input of random normal numbers, which are the same on every machine: *ret has them in
 * the input's type, *ret_exact as doubles. */
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
    const struct lab_problem *p = &t->problem;
    bool plain = input > 0 || (p->scale == 1 && p->offset == 0);
    for (int64_t i = 0; i < n && !plain; i++) x[i] = (float)(x[i] * p->scale + p->offset);
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

/* Allocates a tensor with a guard after it, in a probe also before it. */
static enum status alloc_tensor(struct lab_trial *t, int64_t bytes, uint8_t guard, void **ret)
{
    const struct lab_bench *b = t->bench;
    int64_t before = t->probe ? LAB_PROBE_GUARD : 0;
    int64_t after = t->probe ? LAB_PROBE_GUARD : LAB_GUARD;
    TRY(alloc(t, before + bytes + after, ret));
    enum status st =
        b->device.backend->memory.fill(b->context, *ret, guard, before + bytes + after);
    *ret = (char *)*ret + before;
    return st;
}

static void free_tensor(const struct lab_trial *t, void *x)
{
    const struct lab_bench *b = t->bench;
    if (x) b->device.backend->memory.free(b->context, (char *)x - (t->probe ? LAB_PROBE_GUARD : 0));
}

/* Fills the inputs of all sets and, unless this is a probe, computes the solution. */
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
        if (t->probe) t->given[i] = x;
        for (int s = 0; s < t->sets; s++) {
            TRY(alloc_tensor(t, p->in[i] * size, INPUT_GUARD, &t->in[s][i]));
            TRY(b->device.backend->memory.upload(b->context, t->in[s][i], x, p->in[i] * size));
        }
    }
    for (int s = 0; s < t->sets; s++) TRY(alloc_tensor(t, out_bytes(p), POISON, &t->out[s]));
    TRY(b->device.backend->stream.sync(b->context));
    if (t->probe) return ST_OK;
    t->expected = ARENA_NEW(&t->arena, double, p->out);
    t->norm = b->ladder->reference(p, exact, t->expected);
    return ST_OK;
}

/* Measures the variants of the operator if the backend can, so that a library runs its fastest
 * algorithm and not its first guess. */
static void tune(struct lab_trial *t, enum op op, const struct kernel_call *c)
{
    const struct lab_bench *b = t->bench;
    struct tuning_entry e;
    tuning_init(&t->tuning, &b->target, &t->arena);
    if (!b->device.backend->kernels.tune) return;
    if (b->device.backend->kernels.tune(b->context, (int)op, c, &e) == ST_OK)
        tuning_set(&t->tuning, &e);
}

/* The offset in `more`, in bytes, of output i > 0 of a backend's kernel. */
static int64_t more_at(const struct kernel_call *c, int i)
{
    enum { ALIGNMENT = 64 };
    int64_t at = 0;
    for (int k = 1; k < i; k++) at += round_up(type_bytes(&c->out_type[k]), ALIGNMENT);
    return at;
}

static enum status prepare_row(struct lab_trial *t, int rung, enum op op, struct kernel_call *c,
                               int64_t *scratch)
{
    const struct kernel *k = row_of(t->bench, rung, op, c);
    if (!k) return ST_OK;
    struct kernel_call *own = ARENA_NEW(&t->arena, struct kernel_call, 1);
    *own = *c;
    if (k->scratch_bytes) *scratch = max_i64(*scratch, k->scratch_bytes(k, own));
    t->row[rung] = k;
    t->call[rung] = own;
    return k->prepare ? k->prepare(k, own) : ST_OK;
}

/* Prepares the rungs with a `variant`, and allocates scratch for all rungs. */
static enum status prepare(struct lab_trial *t)
{
    const struct lab_bench *b = t->bench;
    struct kernel_call c;
    enum op op = OP_COUNT;
    int64_t bytes = 0;
    for (int i = 0; i < b->rungs; i++) {
        const struct lab_rung *r = &b->rung[i];
        bytes = max_i64(bytes, lab_scratch(r, &t->problem, (int)threads_count()));
        if (!r->variant) continue;
        if (op == OP_COUNT) {
            describe(b, &t->problem, &t->attr, &c, &op);
            tune(t, op, &c);
            c.tuning = &t->tuning;
            if (c.n_out > 1) TRY(alloc_tensor(t, more_at(&c, c.n_out), POISON, &t->more));
            if (c.n_in > 1 && !t->problem.in[1])
                TRY(alloc_tensor(t, type_bytes(&c.in_type[1]), 0, &t->zeros));
        }
        TRY(prepare_row(t, i, op, &c, &bytes));
    }
    t->scratch_bytes = bytes;
    return bytes ? alloc_tensor(t, bytes, POISON, &t->scratch) : ST_OK;
}

enum status lab_trial_open(struct lab_trial *t, const struct lab_bench *b,
                           const int64_t n[LAB_SIZES], int sets)
{
    struct arena scratch = {0};
    *t = (struct lab_trial){.bench = b, .sets = sets ? sets : 1, .probe = !sets};
    lab_problem_of(b, n, &t->problem);
    enum status st = make_tensors(t, t->probe ? &t->arena : &scratch);
    if (st == ST_OK) st = prepare(t);
    arena_release(&scratch);
    return st;
}

void lab_trial_close(struct lab_trial *t)
{
    const struct lab_bench *b = t->bench;
    for (int s = 0; s < t->sets; s++) {
        for (int i = 0; i < LAB_INPUTS; i++) free_tensor(t, t->in[s][i]);
        free_tensor(t, t->out[s]);
    }
    for (int i = 0; i < b->rungs; i++)
        if (t->row[i] && t->row[i]->release) t->row[i]->release(t->call[i]);
    free_tensor(t, t->scratch);
    free_tensor(t, t->more);
    free_tensor(t, t->zeros);
    arena_release(&t->arena);
}

/* --- a call ----------------------------------------------------------------------------------- */

static enum status make_map(const struct lab_bench *b, const struct lab_map *m,
                            const struct lab_call *c, void *ret)
{
    const void *of[] = {[LAB_OUT] = c->out,
                        [LAB_IN_0] = c->in[0],
                        [LAB_IN_1] = c->in[1],
                        [LAB_SCRATCH] = c->scratch};
    return b->device.backend->texts->map(b->context, &m->map, (char *)of[m->of] + m->offset, ret);
}

static enum status launch(const struct lab_trial *t, int rung, struct lab_call *c)
{
    const struct lab_bench *b = t->bench;
    const struct lab_rung *r = &b->rung[rung];
    struct kernel_shape shape;
    struct lab_map map[LAB_MAPS];
    _Alignas(KERNEL_MAP_ALIGN) unsigned char of_map[LAB_MAPS][KERNEL_MAP_BYTES];
    void *argument[LAB_MAPS + 1 + LAB_INPUTS + LAB_SIZES + 1];
    int maps = r->maps ? r->maps(&t->problem, map) : 0, n = 0;
    for (int i = 0; i < maps; i++) {
        TRY(make_map(b, &map[i], c, of_map[i]));
        argument[n++] = of_map[i];
    }
    argument[n++] = &c->out;
    for (int i = 0; i < LAB_INPUTS && t->problem.in[i]; i++) argument[n++] = &c->in[i];
    for (int i = 0; i < LAB_SIZES && b->ladder->sizes[i]; i++) argument[n++] = &c->n[i];
    if (r->scratch || (r->own && r->own->scratch.n)) argument[n++] = &c->scratch;
    for (int k = 0; k < LAB_PROLOGUES && r->prologue[k].entry; k++) {
        r->prologue[k].shape(&t->problem, &shape);
        if (shape.grid[0] > 0)
            TRY(b->device.backend->texts->launch(b->context, b->prologue[rung][k], &shape,
                                                 argument + maps));
    }
    TRY(lab_shape(r, &t->problem, &shape));
    return b->device.backend->texts->launch(b->context, b->kernel[rung], &shape, argument);
}

static enum status run_row(const struct lab_trial *t, int rung, const struct lab_call *c)
{
    struct kernel_call call = *t->call[rung];
    for (int i = 0; i < LAB_INPUTS && t->problem.in[i]; i++) call.in[i] = (void *)c->in[i];
    if (t->zeros) call.in[1] = t->zeros;
    if (call.n_in > 2) call.in[2] = (char *)call.in[1] + type_bytes(&call.in_type[1]);
    call.out[0] = c->out;
    for (int i = 1; i < call.n_out; i++) call.out[i] = (char *)t->more + more_at(&call, i);
    call.scratch = c->scratch;
    return t->row[rung]->run(&call);
}

enum status lab_trial_start(const struct lab_trial *t, int rung, int set)
{
    const struct lab_bench *b = t->bench;
    struct lab_call c = {.out = t->out[set],
                         .form = t->problem.form,
                         .threads = (int)threads_count(),
                         .scratch = t->scratch};
    for (int i = 0; i < LAB_INPUTS; i++) c.in[i] = t->in[set][i];
    memcpy(c.n, t->problem.n, sizeof c.n);
    if (b->rung[rung].zeroed)
        TRY(b->device.backend->memory.fill(b->context, c.out, 0, out_bytes(&t->problem)));
    if (t->row[rung]) return run_row(t, rung, &c);
    if (b->device.backend->texts) return launch(t, rung, &c);
    volatile int64_t *since = b->rung[rung].own ? b->rung[rung].own->since_ns : NULL;
    if (since) *since = clock_ns();
    lab_function (&b->rung[rung])(&c);
    if (since) *since = 0;
    return ST_OK;
}

/* --- probes ----------------------------------------------------------------------------------- */

/* A tensor of a trial, or its scratch. */
struct place {
    const char *name;
    char *at;
    int64_t bytes, size; /* bytes of the tensor, bytes of an element */
    const void *given;   /* the content that an input must still have; NULL: the rung may write */
};

/* first_unlike: the first byte of a guard that has changed. first_change: the first byte of an
 * input that has changed. -1: none. */
static int64_t first_unlike(const unsigned char *now, unsigned char guard)
{
    for (int64_t i = 0; i < LAB_PROBE_GUARD; i++)
        if (now[i] != guard) return i;
    return -1;
}
static int64_t first_change(const unsigned char *now, const unsigned char *given, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++)
        if (now[i] != given[i]) return i;
    return -1;
}

static enum status look(const struct lab_trial *t, const struct place *p, const char **ret,
                        struct arena *a)
{
    const struct backend *backend = t->bench->device.backend;
    int64_t n = p->bytes / p->size, all = p->bytes + 2 * (int64_t)LAB_PROBE_GUARD;
    struct arena scratch = {0};
    unsigned char *y = arena_alloc(&scratch, all), *x = y + LAB_PROBE_GUARD, *end = x + p->bytes;
    enum status st = ST_OK;
    TRY_OUT(st, backend->memory.download(t->bench->context, y, p->at - LAB_PROBE_GUARD, all));
    TRY_OUT(st, backend->stream.sync(t->bench->context));
    unsigned char guard = p->given ? INPUT_GUARD : POISON;
    int64_t after = first_unlike(end, guard), before = first_unlike(y, guard);
    int64_t inside = p->given ? first_change(x, p->given, p->bytes) : -1;
    if (after >= 0)
        *ret = arena_printf(a, "it wrote element %lld of %s, which ends with element %lld",
                            (long long)(n + after / p->size), p->name, (long long)(n - 1));
    else if (before >= 0)
        *ret = arena_printf(a, "it wrote element %lld of %s, before its beginning",
                            (long long)((before - LAB_PROBE_GUARD) / p->size), p->name);
    else if (inside >= 0)
        *ret = arena_printf(a, "it changed element %lld of %s, which is const",
                            (long long)(inside / p->size), p->name);
out:
    arena_release(&scratch);
    return st;
}

enum status lab_trial_run(const struct lab_trial *t, int rung)
{
    TRY(lab_trial_start(t, rung, 0));
    return t->bench->device.backend->stream.sync(t->bench->context);
}

enum status lab_trial_written(const struct lab_trial *t, const char **ret_where, struct arena *a)
{
    const struct lab_problem *p = &t->problem;
    int64_t size = dtype_size(p->dtype);
    *ret_where = NULL;
    struct place all[LAB_INPUTS + 2] = {
        {"the output", t->out[0], out_bytes(p), dtype_size(p->out_dtype), NULL}};
    int n = 1;
    for (int i = 0; i < LAB_INPUTS && p->in[i]; i++)
        all[n++] = (struct place){arena_printf(a, "input %d", i + 1), t->in[0][i], p->in[i] * size,
                                  size, t->given[i]};
    if (t->scratch) all[n++] = (struct place){"scratch", t->scratch, t->scratch_bytes, 1, NULL};
    for (int i = 0; i < n && !*ret_where; i++) TRY(look(t, &all[i], ret_where, a));
    return ST_OK;
}

/* --- checks ----------------------------------------------------------------------------------- */

static bool is_guarded(const unsigned char *guard)
{
    for (int i = 0; i < LAB_GUARD; i++)
        if (guard[i] != POISON) return false;
    return true;
}

static double error_of(const struct lab_trial *t, const double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < t->problem.out; i++) {
        double off = y[i] - t->expected[i];
        sum += off * off;
    }
    if (!isfinite(sum)) return INFINITY;
    return sum == 0 ? 0 : t->norm > 0 ? sqrt(sum) / t->norm : INFINITY;
}

enum status lab_trial_check(const struct lab_trial *t, int rung, int set, double *ret_error,
                            struct lab_where *ret_where, struct arena *a)
{
    const struct lab_bench *b = t->bench;
    const struct backend *backend = b->device.backend;
    const struct lab_problem *p = &t->problem;
    int64_t bytes = out_bytes(p);
    struct arena scratch = {0};
    unsigned char *y = arena_alloc(&scratch, bytes + LAB_GUARD);
    double *exact = ARENA_NEW(&scratch, double, p->out);
    enum status st = ST_OK;
    TRY_OUT(st, backend->memory.fill(b->context, t->out[set], POISON, bytes + LAB_GUARD));
    TRY_OUT(st, lab_trial_start(t, rung, set));
    TRY_OUT(st, backend->memory.download(b->context, y, t->out[set], bytes + LAB_GUARD));
    TRY_OUT(st, backend->stream.sync(b->context));
    TRY_OUT(st, reference_convert(exact, DT_F64, y, p->out_dtype, p->out));
    *ret_error = is_guarded(y + bytes) ? error_of(t, exact) : INFINITY;
    double allowed = b->ladder->tolerance(p);
    if (!is_guarded(y + bytes))
        *ret_where = (struct lab_where){"it wrote after the end of the output", 1};
    else if (!(*ret_error <= allowed))
        *ret_where = lab_describe_errors(p, exact, t->expected, t->norm, allowed, a);
out:
    arena_release(&scratch);
    return st;
}

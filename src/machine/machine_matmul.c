/* Finds the fastest matmul of each type, with the kernel rows that training uses. */
#include "backend/backend.h"
#include "backend/kernel.h"
#include "base/arena.h"
#include "base/rng.h"
#include "base/threads.h"
#include "machine/machine_parts.h"
#include "measure/stopwatch.h"
#include "tuning/tuning.h"

#include <math.h>
#include <stdio.h>

static const int64_t shapes[][3] = {
    {256, 256, 256},    {1024, 1024, 1024}, {2048, 2048, 2048},
    {4096, 1024, 4096}, {8192, 2048, 2048}, {4096, 4096, 4096},
};
static const int64_t gpu_shapes[][3] = {
    {4096, 4096, 4096}, {8192, 8192, 8192}, {16384, 4096, 4096}, {16384, 8192, 8192}};

/* The first `shapes` shapes of a list are measured. Each runs for spend_ms and at least `least`
 * times; a shape that would take longer than run_ms_most per run is skipped. A sample takes at
 * least sample_ms. */
struct effort {
    const int64_t (*shape)[3];
    int shapes;
    double spend_ms, run_ms_most;
    int least;
    double sample_ms;
};
static const struct effort full_cpu = {shapes, COUNT_OF(shapes), 700, 2500, 3, 0},
                           quick_cpu = {shapes, 3, 60, 150, 2, 0},
                           full_gpu = {gpu_shapes, COUNT_OF(gpu_shapes), 1000, 1000, 3, 20},
                           quick_gpu = {gpu_shapes, 2, 100, 300, 2, 10};

/* A matmul (M,K) x (K,N) with its own memory. If `packer` is set, PACK prepares B first. */
struct trial {
    const struct backend *backend;
    const struct target *target;
    void *context;
    struct tuning *tuning; /* gets the fastest variant if the backend can measure variants */
    union attr attr, pack_attr;
    struct kernel_call call, pack;
    const struct kernel *kernel, *packer;
};

static enum status allocate(struct trial *t, const struct type *type, void **ret)
{
    return t->backend->memory.alloc(t->context, type_bytes(type), ret);
}

/* Fills memory with random bf16 numbers with magnitudes from 0.5 to 2; a pair of such numbers, read
 * as a float, is in the same range. */
static enum status fill(struct trial *t, void *to, const struct type *type, struct arena *scratch)
{
    int64_t n = type_bytes(type) / (int64_t)sizeof(uint32_t);
    uint32_t *x = arena_alloc(scratch, type_bytes(type));
#pragma omp parallel for
    for (int64_t i = 0; i < n; i += 4) {
        struct rng_words r = rng_block(1, RNG_TEST, (struct rng_words){{(uint32_t)i, 0, 0, 0}});
        for (int64_t k = i; k < i + 4 && k < n; k++)
            x[k] = (r.w[k - i] & 0x80ff80ffu) | 0x3f003f00u;
    }
    return t->backend->memory.upload(t->context, to, x, n * (int64_t)sizeof(uint32_t));
}

/* Selects the fastest variant of the matmul, if the backend can measure variants. */
static void tune(struct trial *t)
{
    struct tuning_entry fastest;
    if (!t->backend->kernels.tune ||
        t->backend->kernels.tune(t->context, OP_MATMUL, &t->call, &fastest) != ST_OK)
        return;
    tuning_set(t->tuning, &fastest);
    t->call.tuning = t->tuning;
}

static void describe(struct trial *t, enum machine_precision p, const int64_t *shape, bool packed)
{
    enum dtype dtype = p == MACHINE_BF16 ? DT_BF16 : DT_F32;
    int64_t M = shape[0], N = shape[1], K = shape[2];
    struct kernel_call product = {.attr = &t->attr, .n_in = 2, .n_out = 1, .context = t->context};
    product.target = t->target;
    product.in_type[0] = type_2d(dtype, M, K);
    product.in_type[1] = type_2d(dtype, K, N);
    product.out_type[0] = type_2d(dtype, M, N);
    product.numerics.tf32 = p == MACHINE_TF32;
    t->pack_attr.pack.rows = M;
    t->pack = (struct kernel_call){.attr = &t->pack_attr, .n_in = 1, .n_out = 1};
    t->pack.context = t->context;
    t->pack.target = t->target;
    t->pack.in_type[0] = product.in_type[1];
    t->pack.out_type[0] = type_1d(dtype, packed_elements(K, N));
    if (packed) {
        t->attr.matmul.packed = N;
        product.in_type[1] = t->pack.out_type[0];
    }
    t->call = product;
    tune(t);
    t->kernel = t->backend->kernels.find(OP_MATMUL, &t->call, 0);
    t->packer = packed ? t->backend->kernels.find(OP_PACK, &t->pack, 0) : NULL;
}

static enum status prepare(const struct kernel *k, struct trial *t, struct kernel_call *call)
{
    if (k->scratch_bytes && k->scratch_bytes(k, call)) {
        struct type scratch = type_1d(DT_F64, k->scratch_bytes(k, call) / 8 + 1);
        TRY(allocate(t, &scratch, &call->scratch));
    }
    return k->prepare ? k->prepare(k, call) : ST_OK;
}

static enum status open_trial(struct trial *t, struct arena *scratch)
{
    TRY(allocate(t, &t->call.in_type[0], &t->call.in[0]));
    TRY(allocate(t, &t->call.in_type[1], &t->call.in[1]));
    TRY(allocate(t, &t->call.out_type[0], &t->call.out[0]));
    TRY(fill(t, t->call.in[0], &t->call.in_type[0], scratch));
    TRY(prepare(t->kernel, t, &t->call));
    if (!t->packer) return fill(t, t->call.in[1], &t->call.in_type[1], scratch);
    TRY(allocate(t, &t->pack.in_type[0], &t->pack.in[0]));
    TRY(fill(t, t->pack.in[0], &t->pack.in_type[0], scratch));
    t->pack.out[0] = t->call.in[1];
    TRY(prepare(t->packer, t, &t->pack));
    return t->packer->run(&t->pack);
}

static void close_call(struct trial *t, const struct kernel *k, struct kernel_call *call)
{
    if (k && k->release) k->release(call);
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i]) t->backend->memory.free(t->context, call->in[i]);
    if (call->scratch) t->backend->memory.free(t->context, call->scratch);
}

static void close_trial(struct trial *t)
{
    close_call(t, t->packer, &t->pack);
    close_call(t, t->kernel, &t->call);
    if (t->call.out[0]) t->backend->memory.free(t->context, t->call.out[0]);
}

static enum status start(void *user, int)
{
    struct trial *t = user;
    return t->kernel->run(&t->call);
}

static enum status time_trial(struct trial *t, const struct effort *p, double *ret_ms)
{
    struct stopwatch w = {.backend = t->backend, .context = t->context, .start = start, .user = t};
    double best = 0, spent = 0, ms;
    int calls = 1;
    enum status st = ST_OK;
    TRY_OUT(st, stopwatch_time(&w, 1, &ms)); /* touches pages, and lets the library generate code */
    if (p->sample_ms > 0) TRY_OUT(st, stopwatch_time(&w, 1, &ms));
    if (p->sample_ms > 0 && ms > 0 && ms < p->sample_ms) calls = (int)fmin(p->sample_ms / ms, 1000);
    for (int i = 0; i < p->least || spent < p->spend_ms; i++) {
        TRY_OUT(st, stopwatch_time(&w, calls, &ms));
        if (i == 0 || ms < best) best = ms;
        spent += ms * calls;
    }
    *ret_ms = best;
out:
    stopwatch_release(&w);
    return st;
}

struct search {
    const struct backend *backend;
    struct target target;
    void *context;
    const struct effort *effort;
    double rate; /* best FLOP/s of the type so far, to predict which shapes take too long */
};

static enum status try_shape(struct search *s, enum machine_precision p, const int64_t *shape,
                             bool packed, struct machine_peak *best)
{
    struct arena scratch = {0};
    struct tuning tuning;
    struct trial t = {
        .backend = s->backend, .target = &s->target, .context = s->context, .tuning = &tuning};
    double flops = 2.0 * (double)shape[0] * (double)shape[1] * (double)shape[2], ms = 0;
    if (s->rate > 0 && flops / s->rate > s->effort->run_ms_most * 1e-3) return ST_OK;
    tuning_init(&tuning, &s->target, &scratch);
    describe(&t, p, shape, packed);
    if (!t.kernel || (packed && !t.packer)) {
        arena_release(&scratch);
        return ST_OK;
    }
    enum status st = open_trial(&t, &scratch);
    arena_release(&scratch); /* the prepared call no longer needs the tuning table */
    if (st == ST_OK) st = time_trial(&t, s->effort, &ms);
    close_trial(&t);
    TRY(st);
    double rate = flops / (ms * 1e-3);
    if (rate > s->rate) {
        s->rate = rate;
        *best = (struct machine_peak){p, rate, 0, shape[0], shape[1], shape[2], t.kernel->variant};
    }
    return ST_OK;
}

/* Finds the fastest shape; best->flops stays 0 if no kernel accepts the type. */
static enum status search_type(struct search *s, struct machine_work *w, enum machine_precision p,
                               double share, struct machine_peak *best)
{
    char what[64];
    int n = snprintf(what, sizeof what, "matmuls, %s", machine_precision_name(p));
    if (!w->machine->gpu)
        snprintf(what + n, sizeof what - (size_t)n, ", %lld thread%s", (long long)threads_count(),
                 threads_count() == 1 ? "" : "s");
    s->rate = 0;
    *best = (struct machine_peak){.precision = p};
    for (int i = 0; i < s->effort->shapes; i++) {
        TRY(machine_work_done(w, 0, what));
        for (int packed = 0; packed < 2; packed++)
            TRY(try_shape(s, p, s->effort->shape[i], packed, best));
        TRY(machine_work_done(w, share / s->effort->shapes, what));
    }
    return ST_OK;
}

static const struct effort *effort_of(const struct machine_work *w)
{
    if (w->machine->gpu) return w->quick ? &quick_gpu : &full_gpu;
    return w->quick ? &quick_cpu : &full_cpu;
}

/* Measures every precision that the device has; a CPU has no TF32. */
enum status machine_measure_matmuls(struct machine_work *w)
{
    struct machine *m = w->machine;
    struct search s = {.backend = m->device.backend, .effort = effort_of(w)};
    int counts = m->threads > 1 ? 2 : 1;
    double share = 0.5 / ((MACHINE_PRECISIONS - !m->gpu) * counts);
    enum status st = ST_OK;
    TRY(backend_target(s.backend, m->device.number, &s.target));
    TRY(s.backend->open(m->device.number, &s.context));
    for (int p = 0; p < MACHINE_PRECISIONS; p++) {
        struct machine_peak all, one;
        if (p == MACHINE_TF32 && !m->gpu) continue;
        if (!m->gpu) threads_set(m->threads);
        TRY_OUT(st, search_type(&s, w, (enum machine_precision)p, share, &all));
        one = all;
        if (counts > 1) {
            threads_set(1);
            TRY_OUT(st, search_type(&s, w, (enum machine_precision)p, share, &one));
        }
        all.flops_one = one.flops;
        /* One thread can be faster than all threads if other processes are busy. */
        one.flops_one = one.flops;
        if (all.flops < one.flops) all = one;
        if (all.flops > 0) m->peak[m->peaks++] = all;
    }
out:
    s.backend->close(s.context);
    return st;
}

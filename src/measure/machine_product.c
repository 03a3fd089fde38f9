/* The fastest matrix product of each type, by the kernel rows that training uses. */
#include "backend/backend.h"
#include "backend/kernel.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/threads.h"
#include "measure/machine_parts.h"

#include <stdio.h>
#include <string.h>

static const int64_t shapes[][3] = {
    {256, 256, 256},    {1024, 1024, 1024}, {2048, 2048, 2048},
    {4096, 1024, 4096}, {8192, 2048, 2048}, {4096, 4096, 4096},
};

/* The first shapes of the list; each so long, or so often at least; one that takes longer for a single run
 * is passed over. */
struct patience {
    int shapes;
    double spend_ms, run_ms_most;
    int least;
};
static const struct patience thorough = {COUNT_OF(shapes), 700, 2500, 3}, hasty = {3, 60, 150, 2};

/* A product (M,K) x (K,N) with memory of its own; `packed`: B is what PACK makes of it first. */
struct trial {
    const struct backend *backend;
    void *context;
    union attr attr, pack_attr;
    struct kernel_call call, pack;
    const struct kernel *kernel, *packer;
};

static enum status take(struct trial *t, const struct type *type, void **ret)
{
    return t->backend->alloc(t->context, type_bytes(type), ret);
}

/* Random bf16 numbers of a size between 0.5 and 2; two of them make a float of such a size, too. */
static enum status fill(struct trial *t, void *to, const struct type *type, struct arena *scratch)
{
    int64_t n = type_bytes(type) / (int64_t)sizeof(uint32_t);
    uint32_t *x = arena_alloc(scratch, type_bytes(type));
    for (int64_t i = 0; i < n; i += 4) {
        struct rng_words r = rng_block(1, RNG_TEST, (struct rng_words){{(uint32_t)i, 0, 0, 0}});
        for (int64_t k = i; k < i + 4 && k < n; k++)
            x[k] = (r.w[k - i] & 0x80ff80ffu) | 0x3f003f00u;
    }
    return t->backend->upload(t->context, to, x, n * (int64_t)sizeof(uint32_t));
}

static void describe(struct trial *t, enum dtype dtype, const int64_t *shape, bool packed)
{
    int64_t M = shape[0], N = shape[1], K = shape[2];
    struct kernel_call product = {.attr = &t->attr, .n_in = 2, .n_out = 1, .context = t->context};
    product.in_type[0] = type_2d(dtype, M, K);
    product.in_type[1] = type_2d(dtype, K, N);
    product.out_type[0] = type_2d(dtype, M, N);
    t->pack_attr.pack.tb = false;
    t->pack_attr.pack.rows = M;
    t->pack = (struct kernel_call){.attr = &t->pack_attr, .n_in = 1, .n_out = 1};
    t->pack.context = t->context;
    t->pack.in_type[0] = product.in_type[1];
    t->pack.out_type[0] = type_1d(dtype, packed_elements(K, N));
    if (packed) {
        t->attr.matmul.packed = N;
        product.in_type[1] = t->pack.out_type[0];
    }
    t->call = product;
    t->kernel = t->backend->kernel(OP_MATMUL, &t->call, 0);
    t->packer = packed ? t->backend->kernel(OP_PACK, &t->pack, 0) : NULL;
}

static enum status prepare(const struct kernel *k, struct trial *t, struct kernel_call *call)
{
    if (k->scratch_bytes && k->scratch_bytes(k, call)) {
        struct type scratch = type_1d(DT_F64, k->scratch_bytes(k, call) / 8 + 1);
        TRY(take(t, &scratch, &call->scratch));
    }
    return k->prepare ? k->prepare(k, call) : ST_OK;
}

static enum status open_trial(struct trial *t, struct arena *scratch)
{
    TRY(take(t, &t->call.in_type[0], &t->call.in[0]));
    TRY(take(t, &t->call.in_type[1], &t->call.in[1]));
    TRY(take(t, &t->call.out_type[0], &t->call.out[0]));
    TRY(fill(t, t->call.in[0], &t->call.in_type[0], scratch));
    TRY(prepare(t->kernel, t, &t->call));
    if (!t->packer) return fill(t, t->call.in[1], &t->call.in_type[1], scratch);
    TRY(take(t, &t->pack.in_type[0], &t->pack.in[0]));
    TRY(fill(t, t->pack.in[0], &t->pack.in_type[0], scratch));
    t->pack.out[0] = t->call.in[1];
    TRY(prepare(t->packer, t, &t->pack));
    return t->packer->run(&t->pack);
}

static void close_call(struct trial *t, const struct kernel *k, struct kernel_call *call)
{
    if (k && k->release) k->release(call);
    for (int i = 0; i < call->n_in; i++)
        if (call->in[i]) t->backend->free(t->context, call->in[i]);
    if (call->scratch) t->backend->free(t->context, call->scratch);
}

static void close_trial(struct trial *t)
{
    close_call(t, t->packer, &t->pack);
    close_call(t, t->kernel, &t->call);
    if (t->call.out[0]) t->backend->free(t->context, t->call.out[0]);
}

static enum status time_run(struct trial *t, double *ret_ms)
{
    int64_t start = clock_ns();
    TRY(t->kernel->run(&t->call));
    TRY(t->backend->sync(t->context));
    *ret_ms = clock_ms(start, clock_ns());
    return ST_OK;
}

/* The shortest run. */
static enum status time_trial(struct trial *t, const struct patience *p, double *ret_ms)
{
    double best = 0, spent = 0, ms;
    TRY(time_run(t, &ms)); /* pages, and code that the library writes now */
    for (int i = 0; i < p->least || spent < p->spend_ms; i++) {
        TRY(time_run(t, &ms));
        if (i == 0 || ms < best) best = ms;
        spent += ms;
    }
    *ret_ms = best;
    return ST_OK;
}

struct search {
    const struct backend *backend;
    void *context;
    const struct patience *patience;
    double rate; /* the best of the type so far, per second: says which shapes take too long */
};

static enum status try_shape(struct search *s, enum dtype dtype, const int64_t *shape, bool packed,
                             struct machine_peak *best)
{
    struct trial t = {.backend = s->backend, .context = s->context};
    double flops = 2.0 * (double)shape[0] * (double)shape[1] * (double)shape[2], ms = 0;
    if (s->rate > 0 && flops / s->rate > s->patience->run_ms_most * 1e-3) return ST_OK;
    describe(&t, dtype, shape, packed);
    if (!t.kernel || (packed && !t.packer)) return ST_OK;
    struct arena scratch = {0};
    enum status st = open_trial(&t, &scratch);
    arena_release(&scratch);
    if (st == ST_OK) st = time_trial(&t, s->patience, &ms);
    close_trial(&t);
    TRY(st);
    double rate = flops / (ms * 1e-3);
    if (rate > s->rate) {
        s->rate = rate;
        *best =
            (struct machine_peak){dtype, rate, 0, shape[0], shape[1], shape[2], t.kernel->variant};
    }
    return ST_OK;
}

/* peak->flops stays 0 where no kernel takes the type. */
static enum status search_type(struct search *s, struct machine_work *w, enum dtype dtype,
                               double share, struct machine_peak *best)
{
    char what[64];
    snprintf(what, sizeof what, "products, %s, %lld thread%s", dtype_name(dtype),
             (long long)threads_count(), threads_count() == 1 ? "" : "s");
    s->rate = 0;
    *best = (struct machine_peak){.dtype = dtype};
    for (int i = 0; i < s->patience->shapes; i++) {
        machine_work_done(w, 0, what);
        for (int packed = 0; packed < 2; packed++)
            TRY(try_shape(s, dtype, shapes[i], packed, best));
        machine_work_done(w, share / s->patience->shapes, what);
    }
    return ST_OK;
}

enum status machine_measure_products(struct machine_work *w)
{
    static const enum dtype dtypes[] = {DT_F32, DT_BF16};
    struct machine *m = w->machine;
    struct search s = {.backend = backend_find("cpu"), .patience = w->quick ? &hasty : &thorough};
    int counts = m->threads > 1 ? 2 : 1;
    double share = 0.5 / (COUNT_OF(dtypes) * counts);
    enum status st = ST_OK;
    TRY(s.backend->open(0, &s.context));
    for (int d = 0; d < COUNT_OF(dtypes); d++) {
        struct machine_peak all, one;
        threads_set(m->threads);
        TRY_OUT(st, search_type(&s, w, dtypes[d], share, &all));
        one = all;
        if (counts > 1) {
            threads_set(1);
            TRY_OUT(st, search_type(&s, w, dtypes[d], share, &one));
        }
        all.flops_one = one.flops;
        /* Nobody need use all threads: beside busy programs one alone can be the fastest. */
        one.flops_one = one.flops;
        if (all.flops < one.flops) all = one;
        if (all.flops > 0) m->peak[m->peaks++] = all;
    }
out:
    s.backend->close(s.context);
    return st;
}

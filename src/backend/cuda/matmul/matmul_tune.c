/* Measures the variants of a matmul: the algorithms that cuBLASLt suggests (the first is often a
 * few per cent slower than the best), our own kernel, and, for a matmul with an epilogue, a matmul
 * and a separate kernel. The contenders run in turn, so that a changing clock affects all alike. */
#include "backend/cuda/cuda_kernels.h"
#include "backend/cuda/matmul/matmul.h"
#include "backend/cuda/runtime/context.h"
#include "backend/cuda/runtime/jit.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/stats.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5, PATTERN_BYTES = 1 << 20, REPEATS_MOST = 50, ENOUGH_MS = 400 };
static const double SAMPLE_MS = 0.3;

/* A kernel that is measured: an algorithm of cuBLASLt, or our own row, which for plain matmuls has
 * a choice of tiles. */
struct contender {
    const cublasLtMatmulAlgo_t *algorithm; /* NULL: our own row */
    const struct kernel_call *own;
    struct tuning_tile tile; /* of our own row */
    bool runs;
    int repeats, samples; /* runs of a sample */
    double us[ROUNDS];    /* of one run */
};

struct trial {
    CUstream stream;
    CUevent from, to;
    CUdeviceptr library_block, own_block; /* inputs, outputs and workspace of each */
    struct matmul_parts parts;            /* of the library */
    struct matmul_memory memory;
    /* Of our own row: a call for each tile, all with the same memory, and for each call a table
     * that names its tile. */
    struct kernel_call own[MATMUL_TILES];
    struct tuning table[MATMUL_TILES];
    int owns;
    struct arena arena;
};

static size_t aligned(int64_t bytes)
{
    return (size_t)round_up(bytes, MATMUL_WORKSPACE_ALIGN);
}

/* Fills memory with random numbers from -1 to 1, or with 8-bit codes of numbers below 2, in
 * repeated blocks of 1 MiB. With zeros a GPU would use less power and run faster than in training.
 */
static CUresult fill(CUdeviceptr at, size_t bytes, enum dtype dtype, CUstream stream)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    char *pattern = heap_alloc(PATTERN_BYTES);
    int64_t step = dtype_size(dtype);
    for (int64_t i = 0; i < PATTERN_BYTES / step; i++) {
        float u = rng_uniform(1, RNG_TEST, 0, (uint64_t)i), x = 2 * u - 1;
        if (dtype_is_float8(dtype)) {
            enum { BELOW_TWO = 0xbf };
            pattern[i] = (char)((int)(256 * u) & BELOW_TWO);
            continue;
        }
        /* bf16 is the upper half of a float. */
        memcpy(pattern + i * step, (const char *)&x + sizeof x - (size_t)step, (size_t)step);
    }
    size_t done = bytes < PATTERN_BYTES ? bytes : PATTERN_BYTES;
    CUresult r = d->cuMemcpyHtoDAsync(at, pattern, done, stream);
    while (r == CUDA_SUCCESS && done < bytes) {
        size_t n = bytes - done < done ? bytes - done : done;
        r = d->cuMemcpyDtoDAsync(at + done, at, n, stream);
        done += n;
    }
    if (r == CUDA_SUCCESS) r = d->cuStreamSynchronize(stream);
    free(pattern);
    return r;
}

static CUresult give_library_memory(struct trial *t, const struct matmul *p)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    int64_t in = dtype_size(p->in), out = dtype_size(p->out);
    size_t a = aligned(p->batch * p->M * p->K * in), b = aligned(p->batch * p->K * p->N * in);
    size_t y = aligned(p->batch * p->M * p->N * out), bias = aligned(p->N * out);
    size_t second = matmul_has_second(p) ? y : 0, filled = a + b + bias + second;
    CUresult r = d->cuMemAlloc(&t->library_block, filled + y + (size_t)t->memory.workspace_bytes);
    if (r != CUDA_SUCCESS) return r;
    CUdeviceptr at = t->library_block;
    t->memory.a = (const void *)at;
    t->memory.b = (const void *)(at + a);
    t->memory.bias = p->bias || p->epilogue == EPILOGUE_SUM ? (void *)(at + a + b) : NULL;
    t->memory.second = second ? (void *)(at + a + b + bias) : NULL;
    t->memory.out = (void *)(at + filled);
    t->memory.workspace = (void *)(at + filled + y);
    r = fill(at, a, p->in, t->stream);
    if (r == CUDA_SUCCESS) r = fill(at + a, b, p->in_b, t->stream);
    return r == CUDA_SUCCESS ? fill(at + a + b, bias + second, p->out, t->stream) : r;
}

static CUresult give_own_memory(struct trial *t, const struct kernel *k)
{
    struct kernel_call *c = &t->own[0];
    size_t all = 0, at = 0;
    for (int i = 0; i < t->owns; i++) {
        size_t scratch = (size_t)k->scratch_bytes(k, &t->own[i]);
        if (scratch > all) all = scratch;
    }
    for (int i = 0; i < c->n_in; i++) all += aligned(type_bytes(&c->in_type[i]));
    for (int i = 0; i < c->n_out; i++) all += aligned(type_bytes(&c->out_type[i]));
    CUresult r = cuda_driver(NULL)->cuMemAlloc(&t->own_block, all);
    for (int i = 0; i < c->n_in && r == CUDA_SUCCESS; i++) {
        size_t bytes = aligned(type_bytes(&c->in_type[i]));
        c->in[i] = (void *)(t->own_block + at);
        r = fill(t->own_block + at, bytes, c->in_type[i].dtype, t->stream);
        at += bytes;
    }
    for (int i = 0; i < c->n_out; at += aligned(type_bytes(&c->out_type[i++])))
        c->out[i] = (void *)(t->own_block + at);
    c->scratch = (void *)(t->own_block + at);
    for (int i = 1; i < t->owns; i++) {
        memcpy(t->own[i].in, c->in, sizeof c->in);
        memcpy(t->own[i].out, c->out, sizeof c->out);
        t->own[i].scratch = c->scratch;
    }
    return r;
}

/* Makes the calls of our own row: one, or one for each tile. */
static void make_calls(struct trial *t, const struct kernel *own, const struct kernel_call *c,
                       struct contender *ret)
{
    struct matmul p;
    int tiles = 0;
    struct tuning_tile tile[MATMUL_TILES] = {{0, 0, 0}};
    if (own->op == OP_MATMUL && matmul_hopper_plain_of(c, &p))
        tiles = matmul_hopper_tiles(&p, cuda_device_of(c)->processors, tile);
    t->owns = tiles ? tiles : 1;
    for (int i = 0; i < t->owns; i++) {
        struct tuning_entry e = {.n = 1, .candidate = {{.us = 1, .tile = tile[i]}}};
        t->own[i] = *c;
        ret[i] = (struct contender){.own = &t->own[i], .tile = tile[i]};
        if (!tiles) continue;
        matmul_text(&p, e.key);
        snprintf(e.candidate[0].variant, sizeof e.candidate[0].variant, "%s", MATMUL_OWN);
        tuning_init(&t->table[i], c->target, &t->arena);
        tuning_set(&t->table[i], &e);
        t->own[i].tuning = &t->table[i];
    }
}

static CUresult open_events(struct trial *t)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    CUresult r = d->cuEventCreate(&t->from, CU_EVENT_DEFAULT);
    return r == CUDA_SUCCESS ? d->cuEventCreate(&t->to, CU_EVENT_DEFAULT) : r;
}

static void close_trial(struct trial *t)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    for (int i = 0; i < t->owns; i++)
        if (t->own[i].state) cuda_release(&t->own[i]);
    arena_release(&t->arena);
    matmul_close(&t->parts);
    if (t->from) d->cuEventDestroy(t->from);
    if (t->to) d->cuEventDestroy(t->to);
    if (t->library_block) d->cuMemFree(t->library_block);
    if (t->own_block) d->cuMemFree(t->own_block);
}

/* Milliseconds of `times` runs; INFINITY if they fail. */
static double measure(const struct trial *t, const struct contender *c, int times)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    float ms = 0;
    d->cuEventRecord(t->from, t->stream);
    for (int i = 0; i < times; i++)
        if ((c->algorithm ? matmul_run(&t->parts, c->algorithm, &t->memory, t->stream)
                          : cuda_run(c->own)) != ST_OK)
            return INFINITY;
    d->cuEventRecord(t->to, t->stream);
    if (d->cuEventSynchronize(t->to) != CUDA_SUCCESS) return INFINITY;
    return d->cuEventElapsedTime(&ms, t->from, t->to) == CUDA_SUCCESS ? (double)ms : INFINITY;
}

/* The first run loads or compiles the kernel; the second sets the number of runs per sample. */
static void measure_all(const struct trial *t, struct contender *c, int n)
{
    double spent = 0;
    for (int i = 0; i < n; i++) {
        double once = measure(t, &c[i], 1);
        if (isfinite(once)) once = measure(t, &c[i], 1);
        c[i].runs = isfinite(once);
        c[i].repeats =
            c[i].runs && once > 0 ? (int)fmax(1, fmin(REPEATS_MOST, ceil(SAMPLE_MS / once))) : 1;
    }
    for (int round = 0; round < ROUNDS && spent < ENOUGH_MS; round++)
        for (int i = 0; i < n; i++) {
            double ms = c[i].runs ? measure(t, &c[i], c[i].repeats) : 0;
            c[i].runs = c[i].runs && isfinite(ms);
            if (!c[i].runs) continue;
            spent += ms;
            c[i].us[c[i].samples++] = 1e3 * ms / c[i].repeats;
        }
}

static struct tuning_candidate *add_candidate(struct tuning_entry *e, const char *variant,
                                              double us, double spread_us)
{
    struct tuning_candidate *c = &e->candidate[e->n++];
    *c = (struct tuning_candidate){.us = us, .spread_us = spread_us};
    snprintf(c->variant, sizeof c->variant, "%s", variant);
    return c;
}

/* Returns the index of the fastest of the contenders from ... to-1, or -1 if none of these has run.
 */
static int fastest_of(const struct contender *c, int from, int to)
{
    int best = -1;
    for (int i = from; i < to; i++)
        if (c[i].samples && (best < 0 || stats_of(c[i].us, c[i].samples).median <
                                             stats_of(c[best].us, c[best].samples).median))
            best = i;
    return best;
}

static void add_contender(struct tuning_entry *e, const char *variant, const struct contender *c)
{
    struct stats s = stats_of(c->us, c->samples);
    struct tuning_candidate *to = add_candidate(e, variant, s.median, s.max - s.min);
    for (int i = 0; c->algorithm && i < COUNT_OF(c->algorithm->data); i++)
        snprintf(to->algorithm + (size_t)i * 16, sizeof to->algorithm - (size_t)i * 16,
                 "%016" PRIx64, c->algorithm->data[i]);
    to->tile = c->tile;
}

/* Adds cuBLASLt's fastest algorithm, and our own row with its fastest tile, to the entry. `library`
 * or `own` may be NULL. */
static enum status measure_kernels(const struct matmul *library, const struct kernel *own,
                                   const struct kernel_call *c, struct tuning_entry *ret)
{
    struct trial t = {.stream = cuda_stream(c->context)};
    struct contender all[MATMUL_CANDIDATES + MATMUL_TILES] = {{.runs = false}};
    cublasLtMatmulHeuristicResult_t proposed[MATMUL_CANDIDATES];
    enum status st = ST_OK;
    int n = 0;
    t.memory.workspace_bytes = matmul_workspace_bytes(c);
    TRY_OUT(st, cuda_check(open_events(&t), "make events"));
    if (library) {
        TRY_OUT(st, matmul_open(&t.parts, library));
        n = matmul_candidates(&t.parts, t.memory.workspace_bytes, MATMUL_CANDIDATES, proposed);
        for (int i = 0; i < n; i++) all[i].algorithm = &proposed[i].algo;
    }
    if (n)
        TRY_OUT(st, cuda_check(give_library_memory(&t, library),
                               "allocate memory to measure a matmul"));
    if (own) {
        make_calls(&t, own, c, all + n);
        TRY_OUT(st, cuda_check(give_own_memory(&t, own), "allocate memory to measure a matmul"));
        for (int i = 0; i < t.owns; i++) TRY_OUT(st, cuda_prepare(own, &t.own[i]));
    }
    measure_all(&t, all, n + t.owns);
    int best = fastest_of(all, 0, n), tile = fastest_of(all, n, n + t.owns);
    if (best >= 0) add_contender(ret, MATMUL_LIBRARY, &all[best]);
    if (best > 0 && all[0].samples)
        log_debug("%s: the library's first guess takes %.1f us", ret->key,
                  stats_of(all[0].us, all[0].samples).median);
    for (int i = n; i < n + t.owns; i++)
        log_debug("%s: %d x %d by %d takes %.1f us", ret->key, all[i].tile.rows,
                  all[i].tile.columns, all[i].tile.group,
                  all[i].samples ? stats_of(all[i].us, all[i].samples).median : NAN);
    if (tile >= 0) {
        add_contender(ret, MATMUL_OWN, &all[tile]);
        matmul_launch_digest(own, all[tile].own, ret->candidate[ret->n - 1].launch);
    }
out:
    close_trial(&t);
    return st;
}

/* The time of a copy that reads and writes `bytes` bytes in total, from one measurement with a
 * block larger than any cache. */
static double copy_us(int64_t bytes, void *context)
{
    enum { COPIED = 128 << 20, TIMES = 5 };
    static double us_per_byte;
    const struct cuda_driver *d = cuda_driver(NULL);
    struct trial t = {.stream = cuda_stream(context)};
    float ms = 0, best = INFINITY;
    bool fine = us_per_byte <= 0 && open_events(&t) == CUDA_SUCCESS &&
                d->cuMemAlloc(&t.own_block, 2 * (size_t)COPIED) == CUDA_SUCCESS;
    for (int i = 0; fine && i < TIMES; i++) {
        d->cuEventRecord(t.from, t.stream);
        fine = d->cuMemcpyDtoDAsync(t.own_block + COPIED, t.own_block, COPIED, t.stream) ==
               CUDA_SUCCESS;
        d->cuEventRecord(t.to, t.stream);
        fine = fine && d->cuEventSynchronize(t.to) == CUDA_SUCCESS &&
               d->cuEventElapsedTime(&ms, t.from, t.to) == CUDA_SUCCESS;
        best = fminf(best, ms);
    }
    if (fine) us_per_byte = 1e3 * (double)best / (2.0 * COPIED);
    close_trial(&t);
    return us_per_byte * (double)bytes;
}

/* Bytes read and written by a separate kernel for the epilogue. */
static int64_t epilogue_bytes(const struct matmul *p)
{
    int64_t y = p->M * p->N * dtype_size(p->out);
    switch (p->epilogue) {
    case EPILOGUE_GELU:
        return 2 * y;
    case EPILOGUE_GELU_KEEP: /* GELU and its slope */
    case EPILOGUE_GELU_GRAD:
        return 3 * y;
    case EPILOGUE_SUM:
        return p->K * p->N * dtype_size(p->in);
    case EPILOGUE_STORE:
        break;
    }
    return 0;
}

/* Adds the candidate of a separate epilogue: cuBLASLt's matmul, which is measured, and a kernel
 * that is assumed to reach SHARE of the copy bandwidth. */
static enum status measure_separate(const struct matmul *p, const struct kernel_call *c,
                                    struct tuning_entry *ret)
{
    static const double SHARE = 0.9, LAUNCH_US = 1.5;
    struct tuning_entry alone = {.n = 0};
    struct matmul plain = *p, padded;
    plain.epilogue = EPILOGUE_STORE;
    plain.erf = false;
    int64_t bytes = epilogue_bytes(p) + matmul_copied_bytes(&plain);
    padded = matmul_padded(&plain);
    matmul_text(&plain, alone.key);
    TRY(measure_kernels(&padded, NULL, c, &alone));
    double copy = copy_us(bytes, c->context);
    if (!alone.n || copy <= 0) return ST_OK;
    add_candidate(ret, MATMUL_SEPARATE, alone.candidate[0].us + copy / SHARE + LAUNCH_US,
                  alone.candidate[0].spread_us);
    return ST_OK;
}

static enum status tune(void *context, int op, const struct kernel_call *call,
                        struct tuning_entry *ret)
{
    struct kernel_call c = *call;
    struct matmul p, padded;
    /* Variants that portable=true forbids are measured, too, because other runs use the entry. */
    c.numerics.portable = false;
    c.context = context;
    c.lookups = NULL;
    c.state = NULL;
    *ret = (struct tuning_entry){.n = 0};
    bool library = cuda_device_of(&c)->library && cublaslt_handle() &&
                   matmul_library_fits((enum op)op, &c, &p);
    const struct kernel *own = matmul_hopper_row(op, &c);
    if (!library && (!own || !matmul_hopper_of((enum op)op, &c, &p)))
        return fail(ST_UNSUPPORTED, "there is no variant to measure");
    matmul_text(&p, ret->key);
    if (op == OP_MATMUL && !matmul_is_long(&p)) own = NULL;
    padded = matmul_padded(&p);
    TRY(measure_kernels(library ? &padded : NULL, own, &c, ret));
    return p.epilogue == EPILOGUE_STORE ? ST_OK : measure_separate(&p, &c, ret);
}

static double made_ms(const void *context)
{
    double compile_ms, load_ms;
    jit_times(cuda_jit(context), &compile_ms, &load_ms);
    return compile_ms + load_ms;
}

/* Time for compiling and loading kernels does not count as time for choosing. */
enum status cuda_tune(void *context, int op, const struct kernel_call *call,
                      struct tuning_entry *ret)
{
    int64_t start = clock_ns();
    double made = made_ms(context);
    enum status st = tune(context, op, call, ret);
    double ms = clock_ms(start, clock_ns()) - (made_ms(context) - made);
    cuda_count_choosing(context, (int64_t)(1e6 * ms));
    return st;
}

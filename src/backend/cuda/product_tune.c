/* Which of the library's algorithms is fastest here: its own guess is often a few per cent off, sometimes more.
 * Every kind of product is measured once for each GPU; the file of winners keeps what came out. */
#include "backend/cuda/context.h"
#include "backend/cuda/product.h"
#include "base/log.h"
#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5, PATTERN_BYTES = 1 << 20, REPEATS_MOST = 50, ENOUGH_MS = 400 };
static const double SAMPLE_MS = 0.3;

struct tuning {
    const struct product_parts *parts;
    struct product_memory memory;
    CUdeviceptr block; /* all of it */
    CUstream stream;
    CUevent from, to;
};

struct candidate {
    cublasLtMatmulAlgo_t algorithm;
    double ms; /* of one product, the best so far; INFINITY: it does not run */
    int repeats;
};

static size_t aligned(int64_t bytes)
{
    return (size_t)round_up(bytes, PRODUCT_WORKSPACE_ALIGN);
}

/* Numbers of -1 ... 1, or codes of 8 bits below 2, the same 1 MiB over and over: with zeros a GPU draws less power and runs faster than it will. */
CUresult product_fill(CUdeviceptr at, size_t bytes, enum dtype dtype, CUstream stream)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    char *pattern = malloc(PATTERN_BYTES);
    BUG_IF(!pattern, "no host memory");
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

static CUresult take_memory(struct tuning *t, const struct product *p)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    int64_t in = dtype_size(p->in), out = dtype_size(p->out);
    size_t a = aligned(p->batch * p->M * p->K * in), b = aligned(p->batch * p->K * p->N * in);
    size_t y = aligned(p->batch * p->M * p->N * out), bias = aligned(p->N * out);
    size_t beside = product_has_beside(p) ? y : 0, filled = a + b + bias + beside;
    CUresult r = d->cuMemAlloc(&t->block, filled + y + (size_t)t->memory.workspace_bytes);
    if (r != CUDA_SUCCESS) return r;
    t->memory.a = (const void *)t->block;
    t->memory.b = (const void *)(t->block + a);
    t->memory.bias = p->bias || p->end == END_SUM ? (void *)(t->block + a + b) : NULL;
    t->memory.beside = beside ? (void *)(t->block + a + b + bias) : NULL;
    t->memory.out = (void *)(t->block + filled);
    t->memory.workspace = (void *)(t->block + filled + y);
    r = product_fill(t->block, a + b, p->in, t->stream);
    if (r == CUDA_SUCCESS) r = product_fill(t->block + a + b, bias + beside, p->out, t->stream);
    if (r == CUDA_SUCCESS) r = d->cuEventCreate(&t->from, CU_EVENT_DEFAULT);
    return r == CUDA_SUCCESS ? d->cuEventCreate(&t->to, CU_EVENT_DEFAULT) : r;
}

static void give_memory(struct tuning *t)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    if (t->from) d->cuEventDestroy(t->from);
    if (t->to) d->cuEventDestroy(t->to);
    if (t->block) d->cuMemFree(t->block);
}

/* Milliseconds of `times` products; INFINITY if they do not run. */
static double measure(const struct tuning *t, const cublasLtMatmulAlgo_t *algorithm, int times)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    float ms = 0;
    d->cuEventRecord(t->from, t->stream);
    for (int i = 0; i < times; i++)
        if (product_run(t->parts, algorithm, &t->memory, t->stream) != ST_OK) return INFINITY;
    d->cuEventRecord(t->to, t->stream);
    if (d->cuEventSynchronize(t->to) != CUDA_SUCCESS) return INFINITY;
    return d->cuEventElapsedTime(&ms, t->from, t->to) == CUDA_SUCCESS ? (double)ms : INFINITY;
}

/* The first run loads the kernel, the second says how many make a sample; then they take turns, so that a clock that
 * rises or falls meets all of them. */
static int race(const struct tuning *t, struct candidate *c, int n)
{
    double spent = 0;
    int best = 0;
    for (int i = 0; i < n; i++) {
        measure(t, &c[i].algorithm, 1);
        c[i].ms = measure(t, &c[i].algorithm, 1);
        double repeats = c[i].ms > 0 ? SAMPLE_MS / c[i].ms : REPEATS_MOST;
        c[i].repeats = (int)fmax(1, fmin(REPEATS_MOST, ceil(repeats)));
    }
    for (int round = 0; round < ROUNDS && spent < ENOUGH_MS; round++)
        for (int i = 0; i < n; i++) {
            if (!isfinite(c[i].ms)) continue;
            double ms = measure(t, &c[i].algorithm, c[i].repeats);
            spent += ms;
            c[i].ms = round == 0 ? ms / c[i].repeats : fmin(c[i].ms, ms / c[i].repeats);
        }
    for (int i = 1; i < n; i++)
        if (c[i].ms < c[best].ms) best = i;
    return best;
}

/* The fastest candidate, which is kept; the first where they could not be measured. */
static void tune(const struct product *p, const struct product_parts *parts, void *context,
                 int64_t workspace_bytes, int n, const cublasLtMatmulHeuristicResult_t *proposed,
                 struct product_choice *ret)
{
    char name[PRODUCT_TEXT];
    struct tuning t = {.parts = parts,
                       .memory = {.workspace_bytes = workspace_bytes},
                       .stream = cuda_stream(context)};
    if (take_memory(&t, p) == CUDA_SUCCESS) {
        struct candidate c[PRODUCT_CANDIDATES];
        for (int i = 0; i < n; i++) c[i] = (struct candidate){.algorithm = proposed[i].algo};
        const struct candidate *best = &c[race(&t, c, n)];
        product_text(p, name);
        if (isfinite(best->ms)) {
            double first_ms = isfinite(c[0].ms) ? c[0].ms : 0; /* it does not run */
            struct product_times times = {1e3 * best->ms, 1e3 * first_ms, n};
            log_debug("%s: %.1f us, %.1f by the library's first guess", name, times.best_us,
                      times.first_us);
            *ret = (struct product_choice){best->algorithm, times.best_us,
                                           (int64_t)proposed[best - c].workspaceSize};
            product_winner_keep(cuda_context_device(context)->name, name, &ret->algorithm, &times);
        }
    }
    give_memory(&t);
}

enum status product_choose(const struct product *p, const struct product_parts *parts,
                           int64_t workspace_bytes, void *context, struct product_choice *ret)
{
    cublasLtMatmulHeuristicResult_t proposed[PRODUCT_CANDIDATES];
    char name[PRODUCT_TEXT];
    product_text(p, name);
    if (!p->deterministic && product_winner(cuda_context_device(context)->name, name, ret) &&
        cublaslt(NULL)->cublasLtMatmulAlgoCheck(cublaslt_handle(), parts->operation, parts->b,
                                                parts->a, parts->out, parts->out, &ret->algorithm,
                                                &proposed[0]) == CUBLAS_STATUS_SUCCESS &&
        (int64_t)proposed[0].workspaceSize <= workspace_bytes) {
        ret->workspace_bytes = (int64_t)proposed[0].workspaceSize;
        return ST_OK;
    }
    int n = product_candidates(parts, workspace_bytes, PRODUCT_CANDIDATES, proposed);
    if (n == 0) return fail(ST_UNSUPPORTED, "cuBLASLt has no algorithm for %s", name);
    *ret = (struct product_choice){.algorithm = proposed[0].algo,
                                   .workspace_bytes = (int64_t)proposed[0].workspaceSize};
    if (!p->deterministic) tune(p, parts, context, workspace_bytes, n, proposed, ret);
    return ST_OK;
}

/* Of a block that no cache holds. */
static double copy_us_per_byte(void *context)
{
    enum { COPIED = 128 << 20, TIMES = 5 };
    const struct cuda_driver *d = cuda_driver(NULL);
    struct tuning t = {.stream = cuda_stream(context)};
    float ms = 0, best = INFINITY;
    bool fine = d->cuMemAlloc(&t.block, 2 * (size_t)COPIED) == CUDA_SUCCESS &&
                d->cuEventCreate(&t.from, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
                d->cuEventCreate(&t.to, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
    for (int i = 0; fine && i < TIMES; i++) {
        d->cuEventRecord(t.from, t.stream);
        fine = d->cuMemcpyDtoDAsync(t.block + COPIED, t.block, COPIED, t.stream) == CUDA_SUCCESS;
        d->cuEventRecord(t.to, t.stream);
        fine = fine && d->cuEventSynchronize(t.to) == CUDA_SUCCESS &&
               d->cuEventElapsedTime(&ms, t.from, t.to) == CUDA_SUCCESS;
        best = fminf(best, ms);
    }
    give_memory(&t);
    return fine ? 1e3 * (double)best / (2.0 * COPIED) : 0;
}

double product_copy_us(int64_t bytes, void *context)
{
    static double us_per_byte; /* of the one GPU that a program uses */
    if (us_per_byte <= 0) us_per_byte = copy_us_per_byte(context);
    return us_per_byte * (double)bytes;
}

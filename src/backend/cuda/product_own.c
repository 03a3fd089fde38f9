/* What a row of our own takes on a call, on memory of its own, so that it can be held against the library. */
#include "backend/cuda/context.h"
#include "backend/cuda/product.h"

#include <math.h>

enum { ROUNDS = 5, REPEATS_MOST = 10 };
static const double SAMPLE_MS = 0.3;

struct trial {
    struct kernel_call call;
    CUdeviceptr block; /* all inputs, outputs and scratch */
    CUevent from, to;
};

static size_t bytes_of(const struct type *t)
{
    return (size_t)round_up(type_bytes(t), PRODUCT_WORKSPACE_ALIGN);
}

static bool take_memory(struct trial *t, const struct kernel *k)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    struct kernel_call *c = &t->call;
    CUstream stream = cuda_stream(c->context);
    size_t all = (size_t)k->scratch_bytes(k, c), at = 0;
    for (int i = 0; i < c->n_in; i++) all += bytes_of(&c->in_type[i]);
    for (int i = 0; i < c->n_out; i++) all += bytes_of(&c->out_type[i]);
    if (d->cuMemAlloc(&t->block, all) != CUDA_SUCCESS) return false;
    for (int i = 0; i < c->n_in; at += bytes_of(&c->in_type[i++])) {
        c->in[i] = (void *)(t->block + at);
        enum dtype dtype = c->in_type[i].dtype;
        if (product_fill(t->block + at, bytes_of(&c->in_type[i]), dtype, stream) != CUDA_SUCCESS)
            return false;
    }
    for (int i = 0; i < c->n_out; at += bytes_of(&c->out_type[i++]))
        c->out[i] = (void *)(t->block + at);
    c->scratch = (void *)(t->block + at);
    return d->cuEventCreate(&t->from, CU_EVENT_DEFAULT) == CUDA_SUCCESS &&
           d->cuEventCreate(&t->to, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
}

/* Milliseconds of `times` runs; INFINITY if they fail. */
static double measure(const struct trial *t, int times)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    float ms = 0;
    d->cuEventRecord(t->from, cuda_stream(t->call.context));
    for (int i = 0; i < times; i++)
        if (cuda_run(&t->call) != ST_OK) return INFINITY;
    d->cuEventRecord(t->to, cuda_stream(t->call.context));
    if (d->cuEventSynchronize(t->to) != CUDA_SUCCESS) return INFINITY;
    return d->cuEventElapsedTime(&ms, t->from, t->to) == CUDA_SUCCESS ? (double)ms : INFINITY;
}

/* The first run compiles, the second says how many make a sample. */
static double best_ms(const struct trial *t)
{
    double best = INFINITY, once;
    if (!isfinite(measure(t, 1)) || !isfinite(once = measure(t, 1))) return INFINITY;
    int times = once > 0 ? (int)fmax(1, fmin(REPEATS_MOST, ceil(SAMPLE_MS / once))) : REPEATS_MOST;
    for (int i = 0; i < ROUNDS; i++) best = fmin(best, measure(t, times) / times);
    return best;
}

double product_own_us(const struct kernel *k, const struct kernel_call *c)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    struct trial t = {.call = *c};
    double ms = INFINITY;
    t.call.state = NULL;
    if (take_memory(&t, k) && cuda_prepare(k, &t.call) == ST_OK) ms = best_ms(&t);
    if (t.call.state) cuda_release(&t.call);
    if (t.from) d->cuEventDestroy(t.from);
    if (t.to) d->cuEventDestroy(t.to);
    if (t.block) d->cuMemFree(t.block);
    return isfinite(ms) ? 1e3 * ms : 0;
}

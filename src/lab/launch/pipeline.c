/* Copies chunks of page-locked memory to the device, processes them and copies them back. A chunk
 * stays on one stream, so its three steps run in order. Chunks on different streams may overlap,
 * because the device has copy engines for both directions in addition to its multiprocessors. */
#include "lab/launch/launch_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FROM, TO, JOIN }; /* events; JOIN + i is at the end of stream i */
enum { BLOCK = LAUNCH_BLOCK, TRIAL = 1024, MOST_ADDITIONS = 65536, DISTINCT = 1024 };

struct pipe {
    struct launch_run *r;
    const struct backend *backend;
    void *context, *kernel, *y[BACKEND_STREAMS];
    float *from, *to; /* page-locked memory of all chunks */
    int64_t floats;   /* number of floats in a chunk */
};

/* A contender: which of the three parts run, and on how many streams. */
struct work {
    struct pipe *p;
    bool part[LAUNCH_PARTS];
    int streams;
};

static enum status run_part(const struct work *w, enum launch_part part, int chunk, void *y)
{
    const struct pipe *p = w->p;
    const struct backend *b = p->backend;
    int64_t at = chunk * p->floats, bytes = p->floats * (int64_t)sizeof(float), n = p->floats,
            additions = p->r->pipeline.additions;
    struct kernel_shape shape = {{(unsigned)(n / BLOCK), 1, 1}, {BLOCK, 1, 1}, 0};
    void *argument[] = {&y, &n, &additions};
    if (part == LAUNCH_IN) return b->pinned->to_device(p->context, y, p->from + at, bytes);
    if (part == LAUNCH_OUT) return b->pinned->to_host(p->context, p->to + at, y, bytes);
    return b->texts->launch(p->context, p->kernel, &shape, argument);
}

/* Runs all chunks, between the events FROM and TO of stream 0. */
static enum status run_chunks(const struct work *w)
{
    const struct backend_stream *s = &w->p->backend->stream;
    const struct backend_streams *more = w->p->backend->streams;
    void *context = w->p->context;
    TRY(s->event_record(context, FROM));
    for (int i = 1; i < w->streams; i++) {
        TRY(more->select(context, i));
        TRY(more->wait(context, FROM));
    }
    for (int c = 0; c < LAUNCH_CHUNKS; c++) {
        int stream = c % w->streams;
        TRY(more->select(context, stream));
        for (int k = 0; k < LAUNCH_PARTS; k++)
            if (w->part[k]) TRY(run_part(w, (enum launch_part)k, c, w->p->y[stream]));
    }
    for (int i = 1; i < w->streams; i++) {
        TRY(more->select(context, i));
        TRY(s->event_record(context, JOIN + i));
    }
    TRY(more->select(context, 0));
    for (int i = 1; i < w->streams; i++) TRY(more->wait(context, JOIN + i));
    TRY(s->event_record(context, TO));
    return s->sync(context);
}

static enum status sample(void *user, int, double *ret_ms)
{
    const struct work *w = user;
    TRY(run_chunks(w));
    return w->p->backend->stream.event_elapsed(w->p->context, FROM, TO, ret_ms);
}

static double first(int64_t i)
{
    return (double)(i % DISTINCT);
}

static enum status check(const struct work *w)
{
    struct pipe *p = w->p;
    char name[32];
    int64_t n = p->floats * LAUNCH_CHUNKS;
    snprintf(name, sizeof name, "copies on %d streams", w->streams);
    memset(p->to, 0xff, (size_t)n * sizeof *p->to);
    TRY(run_chunks(w));
    return launch_check(p->to, n, first, p->r->pipeline.additions, name);
}

/* Chooses the number of additions such that a kernel takes as long as a copy. */
static enum status choose_additions(struct pipe *p)
{
    struct launch_pipeline *l = &p->r->pipeline;
    double ms[LAUNCH_PARTS];
    l->additions = TRIAL;
    for (int k = 0; k < LAUNCH_PARTS; k++) {
        const struct work w = {p, {k == LAUNCH_IN, k == LAUNCH_KERNELS, k == LAUNCH_OUT}, 1};
        TRY(run_chunks(&w));
        TRY(run_chunks(&w));
        TRY(p->backend->stream.event_elapsed(p->context, FROM, TO, &ms[k]));
    }
    double copy = (ms[LAUNCH_IN] + ms[LAUNCH_OUT]) / 2, kernel = ms[LAUNCH_KERNELS];
    double wanted = kernel > 0 ? TRIAL * copy / kernel : TRIAL;
    l->additions = (int)fmin(fmax(wanted, 1), MOST_ADDITIONS);
    return ST_OK;
}

static enum status measure(struct pipe *p, double from, struct arena *a)
{
    struct launch_pipeline *l = &p->r->pipeline;
    enum { ALL = LAUNCH_PARTS + BACKEND_STREAMS };
    struct work w[ALL];
    struct contender c[ALL];
    for (int64_t i = 0; i < p->floats * LAUNCH_CHUNKS; i++) p->from[i] = (float)first(i);
    TRY(choose_additions(p));
    for (int i = 0; i < ALL; i++) {
        int streams = i < LAUNCH_PARTS ? 1 : i - LAUNCH_PARTS + 1;
        w[i] = (struct work){.p = p, .streams = streams};
        for (int k = 0; k < LAUNCH_PARTS; k++) w[i].part[k] = i >= LAUNCH_PARTS || i == k;
        c[i] = (struct contender){.sample = sample, .user = &w[i], .parts = 1};
        if (i >= LAUNCH_PARTS) TRY(check(&w[i]));
    }
    TRY(launch_time(p->r, c, ALL, from, 1 - from, "copies in turns", a));
    memcpy(l->alone, c, sizeof l->alone);
    memcpy(l->overlapped, c + LAUNCH_PARTS, sizeof l->overlapped);
    l->chunk_bytes = p->floats * (int64_t)sizeof(float);
    return ST_OK;
}

static enum status open_pipe(struct pipe *p)
{
    int64_t bytes = p->floats * (int64_t)sizeof(float);
    void *host;
    TRY(p->backend->pinned->alloc(p->context, LAUNCH_CHUNKS * bytes, &host));
    p->from = host;
    TRY(p->backend->pinned->alloc(p->context, LAUNCH_CHUNKS * bytes, &host));
    p->to = host;
    for (int i = 0; i < BACKEND_STREAMS; i++)
        TRY(p->backend->memory.alloc(p->context, bytes, &p->y[i]));
    return ST_OK;
}

enum status launch_run_pipeline(struct launch_run *r, void *context, void *kernel, double from,
                                struct arena *a)
{
    struct pipe p = {
        .r = r, .backend = r->options->device.backend, .context = context, .kernel = kernel};
    int64_t chunk = r->options->bytes / LAUNCH_CHUNKS / (int64_t)sizeof(float);
    p.floats = max_i64(chunk / BLOCK, 1) * BLOCK;
    enum status st = open_pipe(&p);
    if (st == ST_OK) st = measure(&p, from, a);
    for (int i = 0; i < BACKEND_STREAMS; i++)
        if (p.y[i]) p.backend->memory.free(context, p.y[i]);
    if (p.from) p.backend->pinned->free(context, p.from);
    if (p.to) p.backend->pinned->free(context, p.to);
    return st;
}

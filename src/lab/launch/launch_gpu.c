/* Small GPU kernels, launched one by one, on two streams, as a captured graph, and fused. */
#include "base/clock.h"
#include "lab/launch/launch_parts.h"

const struct lab_rung launch_gpu_kernels[] = {{.name = "add", .file = "launch/gpu/01_add.cu"}, {0}};

/* Events before and after a sample (stream 1 waits for FROM), and at the end of stream 1. */
enum { FROM, TO, JOIN };
enum { BLOCK = LAUNCH_BLOCK, BUFFERS = 2, FALLBACK_THREADS = 2048 };
static const double SHARE = 0.6; /* of the time limit, for launches; copies get the rest */

struct work {
    struct gpu *g;
    struct launch_point *point;
    const struct gpu_way *way;
    void *recording;   /* the captured graph of all launches; NULL: none */
    double *device_ms; /* per sample, warm-up samples first */
    int samples;
};

struct gpu {
    struct launch_run *r;
    const struct backend *backend;
    void *context, *kernel, *y[BUFFERS];
    int64_t most_floats;
};

struct gpu_way {
    struct launch_way way;
    /* Makes all launches; *ret_ns: the time of the launching calls. */
    enum status (*run)(struct work *w, int64_t *ret_ns);
    bool brief; /* measured only for kernels with one addition */
};

/* Launches one kernel with `times` the additions of the work. */
static enum status launch(struct work *w, int buffer, int64_t times)
{
    struct gpu *g = w->g;
    const struct launch_point *p = w->point;
    struct kernel_shape shape = {{(unsigned)(p->floats / BLOCK), 1, 1}, {BLOCK, 1, 1}, 0};
    int64_t n = p->floats, additions = times * p->additions;
    void *argument[] = {&g->y[buffer], &n, &additions};
    return g->backend->texts->launch(g->context, g->kernel, &shape, argument);
}

static enum status run_waiting(struct work *w, int64_t *ret_ns)
{
    for (int i = 0; i < w->g->r->options->launches; i++) {
        int64_t start = clock_ns();
        TRY(launch(w, 0, 1));
        *ret_ns += clock_ns() - start;
        TRY(w->g->backend->stream.sync(w->g->context));
    }
    return ST_OK;
}

static enum status run_stream(struct work *w, int64_t *ret_ns)
{
    int64_t start = clock_ns();
    for (int i = 0; i < w->g->r->options->launches; i++) TRY(launch(w, 0, 1));
    *ret_ns = clock_ns() - start;
    return ST_OK;
}

static enum status run_two_streams(struct work *w, int64_t *ret_ns)
{
    const struct backend_streams *s = w->g->backend->streams;
    void *context = w->g->context;
    int64_t start = clock_ns();
    TRY(s->select(context, 1));
    TRY(s->wait(context, FROM));
    for (int i = 0; i < w->g->r->options->launches; i++) {
        TRY(s->select(context, i % 2));
        TRY(launch(w, i % 2, 1));
    }
    TRY(s->select(context, 1));
    TRY(w->g->backend->stream.event_record(context, JOIN));
    TRY(s->select(context, 0));
    TRY(s->wait(context, JOIN));
    *ret_ns = clock_ns() - start;
    return ST_OK;
}

static enum status run_graph(struct work *w, int64_t *ret_ns)
{
    const struct backend_recording *b = w->g->backend->recording;
    void *context = w->g->context;
    if (!w->recording) {
        int64_t ns;
        TRY(b->begin(context));
        enum status st = run_stream(w, &ns), ended = b->end(context, &w->recording);
        TRY(st != ST_OK ? st : ended);
    }
    int64_t start = clock_ns();
    TRY(b->replay(context, w->recording));
    *ret_ns = clock_ns() - start;
    return ST_OK;
}

static enum status run_fused(struct work *w, int64_t *ret_ns)
{
    int64_t start = clock_ns();
    TRY(launch(w, 0, w->g->r->options->launches));
    *ret_ns = clock_ns() - start;
    return ST_OK;
}

enum { WAITING, STREAM, TWO_STREAMS, GRAPH, FUSED, KINDS };
static const struct gpu_way ways[KINDS] = {
    [WAITING] = {{"waiting"}, run_waiting, true},
    [STREAM] = {{"one stream", true}, run_stream},
    [TWO_STREAMS] = {{"two streams"}, run_two_streams, true},
    [GRAPH] = {{"graph"}, run_graph},
    [FUSED] = {{"fused"}, run_fused},
};

/* --- a sample --------------------------------------------------------------------------------- */

static enum status sample(void *user, int, double *ret_ms)
{
    struct work *w = user;
    const struct backend_stream *s = &w->g->backend->stream;
    void *context = w->g->context;
    int64_t launching = 0;
    TRY(s->sync(context));
    int64_t start = clock_ns();
    TRY(s->event_record(context, FROM));
    TRY(w->way->run(w, &launching));
    TRY(s->event_record(context, TO));
    TRY(s->sync(context));
    ret_ms[0] = clock_ms(0, launching);
    ret_ms[1] = clock_ms(start, clock_ns()) - ret_ms[0];
    return s->event_elapsed(context, FROM, TO, &w->device_ms[w->samples++]);
}

/* Runs the work once on zeros and checks the buffers. If there are two streams, each has its own
 * buffer and half of the launches. */
static enum status check(struct work *w)
{
    struct gpu *g = w->g;
    const struct launch_point *p = w->point;
    const struct backend_memory *m = &g->backend->memory;
    int launches = g->r->options->launches;
    int64_t bytes = p->floats * (int64_t)sizeof(float), ns = 0;
    bool two = w->way == &ways[TWO_STREAMS];
    struct arena a = {0};
    float *y = ARENA_NEW(&a, float, p->floats);
    enum status st = ST_OK;
    for (int i = 0; i < BUFFERS; i++) TRY_OUT(st, m->fill(g->context, g->y[i], 0, bytes));
    TRY_OUT(st, g->backend->stream.event_record(g->context, FROM));
    TRY_OUT(st, w->way->run(w, &ns));
    for (int i = 0; i < (two ? 2 : 1); i++) {
        int64_t times = !two ? launches : i ? launches / 2 : launches - launches / 2;
        TRY_OUT(st, m->download(g->context, y, g->y[i], bytes));
        TRY_OUT(st, launch_check(y, p->floats, NULL, (double)times * p->additions, p->way->name));
    }
out:
    arena_release(&a);
    return st;
}

/* --- all measurements ------------------------------------------------------------------------- */

static void add_work(struct launch_run *r, int64_t floats, int additions)
{
    for (int k = 0; k < KINDS; k++) {
        if (ways[k].brief && additions > 1) continue;
        r->point[r->points++] =
            (struct launch_point){.way = &ways[k].way, .floats = floats, .additions = additions};
    }
}

/* Adds three kinds of work: kernels of one block and kernels of one wave with one addition, and
 * kernels of one block with more and more additions. Allocates memory and compiles the kernel. */
static enum status open_gpu(struct gpu *g)
{
    static const int more[] = {256, 512, 1024, 2048, 4096, 8192};
    const struct launch_options *o = g->r->options;
    struct device_facts f;
    int64_t size;
    TRY(g->backend->devices.describe(o->device.number, &f));
    int threads = f.sm_threads > 0 ? f.sm_threads : FALLBACK_THREADS;
    g->most_floats = (int64_t)max_i64(f.processors, 1) * (threads / BLOCK) * BLOCK;
    add_work(g->r, BLOCK, 1);
    add_work(g->r, g->most_floats, 1);
    for (int i = 0; i < COUNT_OF(more); i++) add_work(g->r, BLOCK, more[i]);
    TRY(g->backend->open(o->device.number, &g->context));
    for (int i = 0; i < BUFFERS; i++)
        TRY(g->backend->memory.alloc(g->context, g->most_floats * (int64_t)sizeof(float),
                                     &g->y[i]));
    const struct lab_rung *k = &launch_gpu_kernels[0];
    const struct kernel_text text = {k->file, lab_source(k, &size), "", "launch"};
    return g->backend->texts->add(g->context, &text, &g->kernel);
}

static void close_gpu(struct gpu *g, struct work *w)
{
    if (!g->context) return;
    for (int i = 0; i < g->r->points; i++)
        if (w[i].recording) g->backend->recording->free(g->context, w[i].recording);
    for (int i = 0; i < BUFFERS; i++)
        if (g->y[i]) g->backend->memory.free(g->context, g->y[i]);
    if (g->kernel) g->backend->texts->free(g->context, g->kernel);
    g->backend->close(g->context);
}

static enum status measure(struct gpu *g, struct work *w, struct arena *a)
{
    struct launch_run *r = g->r;
    struct contender c[LAUNCH_POINTS] = {0};
    TRY(open_gpu(g));
    for (int i = 0; i < r->points; i++) {
        w[i] = (struct work){.g = g, .point = &r->point[i]};
        for (int k = 0; k < KINDS; k++)
            if (r->point[i].way == &ways[k].way) w[i].way = &ways[k];
        w[i].device_ms = ARENA_NEW(a, double, r->options->samples + LAUNCH_WARMUP);
        c[i] = (struct contender){.sample = sample, .user = &w[i], .parts = 2};
        TRY(check(&w[i]));
    }
    TRY(launch_time(r, c, r->points, 0, SHARE, "launches in turns", a));
    for (int i = 0; i < r->points; i++) {
        r->point[i].time = c[i];
        r->point[i].device = stats_of(w[i].device_ms + w[i].samples - c[i].taken, c[i].taken);
    }
    return launch_run_pipeline(r, g->context, g->kernel, SHARE, a);
}

enum status launch_run_gpu(struct launch_run *r, struct arena *a)
{
    struct gpu g = {.r = r, .backend = r->options->device.backend};
    struct work w[LAUNCH_POINTS] = {0};
    enum status st = measure(&g, w, a);
    close_gpu(&g, w);
    if (st != ST_OK) return st;
    for (int i = 0; i < r->points; i++) {
        const struct launch_point *p = &r->point[i];
        if (p->floats != BLOCK) continue;
        double ms = p->time.total.median / r->options->launches;
        if (p->way == &ways[STREAM].way) r->started[r->works] = ms;
        if (p->way == &ways[GRAPH].way) r->alone[r->works++] = ms;
    }
    return ST_OK;
}

/* Hooks that time kernels. If the host is the device they read its clock before and after each
 * kernel. Otherwise they record a device event after each kernel: the time between two events
 * counts for the kernel between them. */
#include "profile/collect.h"

#include "base/clock.h"
#include "base/threads.h"

/* Events are a ring of two halves: while one is recorded, the other is read. */
enum { SPANS_MOST = 4096, THREAD_SPANS_MOST = 1 << 19 };
enum { EVENT_HALF = EVENT_STEPS / 2, EVENT_RING = 2 * EVENT_HALF };

struct watch {
    struct marks marks;
    const struct backend *backend;
    void *context;
    struct activity *activity;
    int64_t activities, capacity;
    struct profile_span *step;
    int steps;
    struct mark_threads *threads;
    struct threads_watch watched;
    struct threads_span *span; /* of the threads in one kernel */
    struct profile_thread_span *thread_span;
    int64_t thread_spans, span_capacity;
    struct host_watch *host;
    /* with events */
    int64_t first;           /* first activity of this step */
    int64_t marked, settled; /* recorded events of this step; those whose time is known */
    double at_ms;            /* time of the last of these */
    enum status st;          /* status of the event before the first kernel */
};

struct watch *watch_new(const struct marks *m, int steps, struct host_watch *host, struct arena *a)
{
    struct watch *w = ARENA_NEW(a, struct watch, 1);
    const struct engine *e = m->engine;
    *w = (struct watch){.marks = *m, .backend = e->backend, .context = e->context, .host = host};
    w->capacity = (int64_t)m->per_step * steps;
    w->activity = ARENA_NEW(a, struct activity, w->capacity);
    w->step = ARENA_NEW(a, struct profile_span, steps);
    if (!e->backend->host_memory || e->communicator) return w;
    w->threads = ARENA_NEW(a, struct mark_threads, m->marks);
    w->span_capacity = min_i64(2 * w->capacity * threads_count(), THREAD_SPANS_MOST);
    w->thread_span = ARENA_NEW(a, struct profile_thread_span, w->span_capacity);
    w->span = ARENA_NEW(a, struct threads_span, SPANS_MOST);
    return w;
}

static struct activity *next(struct watch *w, const struct plan *p, int node)
{
    BUG_IF(w->activities == w->capacity, "more kernels than the plans have");
    struct activity *at = &w->activity[w->activities++];
    *at = (struct activity){.kind = ACTIVITY_KERNEL, .mark = mark_of(&w->marks, p, node)};
    return at;
}

/* --- host clock ------------------------------------------------------------------------------- */

static void before_by_clock(void *user, const struct plan *p, int node)
{
    struct watch *w = user;
    struct activity *at = next(w, p, node);
    host_watch_before(w->host, at->mark);
    w->watched = (struct threads_watch){.span = w->span, .capacity = SPANS_MOST};
    at->start_ns = clock_ns();
}

/* A kernel that opened no parallel region ran on one thread. */
static void note_threads(struct watch *w, const struct activity *at)
{
    struct mark_threads *t = &w->threads[at->mark];
    t->unseen |= w->watched.unseen;
    if (w->watched.unseen) return;
    bool alone = w->watched.regions == 0;
    int64_t took = at->end_ns - at->start_ns;
    t->busy_ns += alone ? took : w->watched.busy_ns;
    t->busiest_ns += alone ? took : w->watched.busiest_ns;
    t->regions += alone ? 1 : w->watched.regions;
}

static void add_thread_span(struct watch *w, const struct activity *at, int thread, int64_t start,
                            int64_t end)
{
    if (w->thread_spans == w->span_capacity) return; /* the trace shows fewer threads */
    w->thread_span[w->thread_spans++] = (struct profile_thread_span){.mark = at->mark,
                                                                     .thread = thread,
                                                                     .step = w->steps,
                                                                     .unseen = w->watched.unseen,
                                                                     .span = {start, end}};
}

/* When each thread worked on a kernel; without a region of its own the calling thread did. */
static void add_thread_spans(struct watch *w, const struct activity *at)
{
    for (int64_t i = 0; i < w->watched.spans; i++)
        add_thread_span(w, at, w->span[i].thread, w->span[i].start_ns, w->span[i].end_ns);
    if (!w->watched.spans) add_thread_span(w, at, 0, at->start_ns, at->end_ns);
}

static enum status after_by_clock(void *user, const struct plan *, int)
{
    struct watch *w = user;
    struct activity *at = &w->activity[w->activities - 1];
    at->end_ns = clock_ns();
    host_watch_after(w->host);
    if (!w->threads) return ST_OK;
    note_threads(w, at);
    add_thread_spans(w, at);
    return ST_OK;
}

/* --- events ----------------------------------------------------------------------------------- */

/* Event 0 of a step precedes its first kernel, event i follows kernel i. */
static enum status settle(struct watch *w, int64_t until)
{
    if (w->settled < until)
        TRY(w->backend->stream.event_wait(w->context, (int)((until - 1) % EVENT_RING)));
    for (; w->settled < until; w->settled++) {
        double ms = 0;
        int64_t at = w->settled;
        if (at > 0)
            TRY(w->backend->stream.event_elapsed(w->context, (int)((at - 1) % EVENT_RING),
                                                 (int)(at % EVENT_RING), &ms));
        if (at > 0) w->activity[w->first + at - 1].start_ns = (int64_t)(1e6 * w->at_ms);
        w->at_ms += ms;
        if (at > 0) w->activity[w->first + at - 1].end_ns = (int64_t)(1e6 * w->at_ms);
    }
    return ST_OK;
}

static enum status mark_event(struct watch *w)
{
    /* The next half holds older events; the event after its last one must be read before reuse. */
    if (w->marked % EVENT_HALF == 0 && w->marked >= EVENT_RING)
        TRY(settle(w, w->marked - EVENT_HALF + 1));
    TRY(w->backend->stream.event_record(w->context, (int)(w->marked % EVENT_RING)));
    w->marked++;
    return ST_OK;
}

static void before_by_events(void *user, const struct plan *p, int node)
{
    struct watch *w = user;
    host_watch_before(w->host, next(w, p, node)->mark);
    if (w->marked == 0) w->st = mark_event(w);
}

static enum status after_by_events(void *user, const struct plan *, int)
{
    struct watch *w = user;
    enum status st = w->st == ST_OK ? mark_event(w) : w->st;
    host_watch_after(w->host);
    return st;
}

struct plan_hooks watch_hooks(struct watch *w)
{
    if (w->backend->host_memory)
        return (struct plan_hooks){.user = w, .before = before_by_clock, .after = after_by_clock};
    return (struct plan_hooks){.user = w, .before = before_by_events, .after = after_by_events};
}

void watch_step_begin(struct watch *w)
{
    w->first = w->activities;
    w->marked = w->settled = 0;
    w->at_ms = 0;
    if (w->threads) threads_watch(&w->watched);
}

/* Steps are timed by the host clock, kernels by device events. If the device clock runs faster, its
 * times are scaled so that no kernel ends after its step. */
static double clock_ratio(const struct watch *w, int64_t step_ns)
{
    int64_t last = 0;
    for (int64_t i = w->first; i < w->activities; i++)
        if (w->activity[i].end_ns > last) last = w->activity[i].end_ns;
    return last > step_ns ? (double)step_ns / (double)last : 1;
}

enum status watch_step_end(struct watch *w, int64_t start_ns, int64_t end_ns)
{
    if (!w->backend->host_memory) {
        TRY(settle(w, w->marked));
        double ratio = clock_ratio(w, end_ns - start_ns);
        for (int64_t i = w->first; i < w->activities; i++) {
            struct activity *x = &w->activity[i];
            x->start_ns = start_ns + (int64_t)(ratio * (double)x->start_ns);
            x->end_ns = start_ns + (int64_t)(ratio * (double)x->end_ns);
        }
    }
    w->step[w->steps++] = (struct profile_span){start_ns, end_ns};
    return ST_OK;
}

void watch_take(struct watch *w, struct collected *ret)
{
    ret->trace = (struct trace){.activity = w->activity, .activities = w->activities};
    ret->step = w->step;
    ret->steps = w->steps;
    ret->threads = w->threads;
    ret->thread_span = w->thread_span;
    ret->thread_spans = w->thread_spans;
}

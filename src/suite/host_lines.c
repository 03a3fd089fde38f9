#include "suite/host_lines.h"

#include "present/table_cells.h"

#include <string.h>

enum { FIRST_CAPACITY = 64 };
static const char host[] = "host", api[] = "API call", copy[] = "copy or fill";

/* The line of these words; a new one if there is none. */
static struct host_line *find(struct host_lines *h, const struct host_line *like)
{
    for (int i = 0; i < h->lines; i++) {
        struct host_line *x = &h->line[i];
        if (x->T == like->T && x->side == like->side && x->kind == like->kind &&
            !strcmp(x->name, like->name) && !strcmp(x->within, like->within) &&
            !strcmp(x->thread, like->thread))
            return x;
    }
    if (!h->line) h->line = ARENA_NEW(h->a, struct host_line, h->capacity = FIRST_CAPACITY);
    ARENA_GROW(h->a, h->line, h->lines, h->capacity);
    struct host_line *x = &h->line[h->lines++];
    *x = *like;
    x->name = arena_strdup(h->a, like->name);
    x->within = arena_strdup(h->a, like->within);
    x->thread = arena_strdup(h->a, like->thread);
    return x;
}

static void count(struct host_lines *h, const struct host_line *like, int64_t ns, double bytes,
                  int steps)
{
    struct host_line *x = find(h, like);
    x->steps = steps;
    x->calls++;
    x->ms += 1e-6 * (double)ns;
    x->bytes += bytes;
}

static int64_t length(const struct profile_span *s)
{
    return s->end_ns > s->start_ns ? s->end_ns - s->start_ns : 0;
}

static const char *thread_name(int thread, struct arena *a)
{
    return thread ? arena_printf(a, "thread %d", thread) : "main";
}

/* --- calls of the device's API ---------------------------------------------------------------- */

/* The part of a profiled step in which a call was made; NULL: none. Parts do not overlap, and the
 * list is in the order of their starts, with launches in between. The clocks of the two records
 * differ by a little, so the middle of the call counts. */
static const struct profile_action *part_of(const struct profile *p, const struct api_call *c)
{
    const struct profile_record *r = &p->record;
    int64_t middle = c->start_ns + (c->end_ns - c->start_ns) / 2, low = 0, high = r->actions;
    while (low < high) {
        int64_t half = (low + high) / 2;
        if (r->action[half].span.start_ns <= middle)
            low = half + 1;
        else
            high = half;
    }
    while (low > 0 && r->action[low - 1].mark >= 0) low--;
    const struct profile_action *x = low ? &r->action[low - 1] : NULL;
    return x && x->step < p->steps && middle < x->span.end_ns ? x : NULL;
}

static void add_calls(struct host_lines *h, struct host_line like, const struct profile *p)
{
    like.kind = api;
    for (int64_t i = 0; i < p->record.apis; i++) {
        const struct api_call *c = &p->record.api[i];
        const struct profile_action *part = part_of(p, c);
        if (!part) continue;
        like.name = c->name;
        like.within = profile_part_name(p, part->part);
        like.thread = thread_name(c->thread, h->a);
        count(h, &like, c->end_ns - c->start_ns, 0, p->steps);
    }
}

/* Calls before the profiled steps, all of them. */
static void add_opening(struct host_lines *h, struct host_line like, const struct profile *p)
{
    like.kind = api;
    like.within = "before, in all";
    for (int64_t i = 0; i < p->record.openings; i++) {
        const struct api_call *c = &p->record.opening[i];
        like.name = c->name;
        like.thread = thread_name(c->thread, h->a);
        count(h, &like, c->end_ns - c->start_ns, 0, 1);
    }
}

/* --- all of them ------------------------------------------------------------------------------ */

static void add_deeds(struct host_lines *h, struct host_line like, const struct profile *p)
{
    const struct profile_record *r = &p->record;
    for (int64_t i = 0; i < r->actions; i++) {
        const struct profile_action *x = &r->action[i];
        bool launch = x->mark >= 0;
        if (x->span.end_ns < x->span.start_ns || x->step >= p->steps) continue;
        if (launch && r->apis) continue;
        like.kind = launch ? api : host;
        like.name = launch ? "launch of a kernel" : profile_part_name(p, x->part);
        like.thread = thread_name(0, h->a);
        count(h, &like, length(&x->span), 0, p->steps);
    }
}

void host_lines_add(struct host_lines *h, const char *side, int64_t T, const struct profile *p)
{
    const struct profile_record *r = &p->record;
    struct host_line like = {.T = T, .side = side, .within = "", .thread = ""};
    add_deeds(h, like, p);
    add_calls(h, like, p);
    add_opening(h, like, p);
    like.kind = copy;
    for (int step = 0; step < p->steps; step++)
        for (int64_t i = r->begin[step]; i < r->end[step]; i++) {
            const struct activity *x = &r->activity[i];
            if (x->kind == ACTIVITY_KERNEL) continue;
            like.name = x->short_name ? x->short_name : x->name;
            count(h, &like, x->end_ns - x->start_ns, (double)x->bytes, p->steps);
        }
}

/* clang-format off */
#define LINE(X) \
    X("attention", "attention", "slow or flash", TEXT, x->side) \
    X("T", "T", "tokens per sequence", NUMBER, true, 0, (double)x->T) \
    X("kind", "kind", "work of the host, a call of the driver, or a copy on the device", TEXT, x->kind) \
    X("name", "what", "as in the trace", TEXT, x->name) \
    X("within", "within", "the part of a step in which the call was made; `before, in all`: while memory was allocated, kernels were loaded and the first steps ran", TEXT, x->within) \
    X("thread", "thread", "of the host", TEXT, x->thread) \
    X("calls", "calls", "per step; `before`: all", NUMBER, true, 3, (double)x->calls / x->steps) \
    X("ms", "ms", "per step; `before`: all", NUMBER, true, 4, x->ms / x->steps) \
    X("us", "avg us", "mean of one", NUMBER, true, 4, 1e3 * x->ms / (double)x->calls) \
    X("bytes", "bytes", "copied or filled, per step", BYTES, x->bytes > 0, (int64_t)(x->bytes / x->steps))
#define WAIT(X) \
    X("attention", "attention", "slow or flash", TEXT, x->side) \
    X("T", "T", "tokens per sequence", NUMBER, true, 0, (double)x->T) \
    X("thread", "thread", "of the host; `main` launches the steps", TEXT, x->thread) \
    X("what", "what", "what it does, or waits for", TEXT, x->name) \
    X("ms", "ms", "per step, by the clock of the host", NUMBER, true, 4, x->ms) \
    X("percent", "%", "share of the host's time for a step", NUMBER, true, 3, 100 * x->share)
/* clang-format on */

void host_lines_table(const struct host_lines *h, struct sheet *s)
{
    static const struct table_column columns[] = {LINE(TABLE_COLUMN)};
    struct table *t = &sheet_add(s, "API calls, copies and work of the host, from the trace",
                                 columns, COUNT_OF(columns), h->lines, h->a)
                           ->table;
    struct table_row row = {t, 0, 0, h->a};
    for (const struct host_line *x = h->line; row.row < h->lines; x++, row.row++, row.column = 0) {
        LINE(TABLE_CELL)
    }
}

/* --- waits ------------------------------------------------------------------------------------ */

static void add_wait(struct host_lines *h, struct host_line like, int thread, const char *what,
                     double ms, double step_ms)
{
    like.kind = host;
    like.name = what;
    like.thread = thread_name(thread, h->a);
    struct host_line *x = find(h, &like);
    x->steps = 1;
    x->ms += ms;
    x->share += ms / step_ms;
}

/* cuStreamSynchronize, cudaEventSynchronize and the like end when the device is done. */
static bool waits(const struct api_call *c)
{
    return strstr(c->name, "Synchronize") != NULL;
}

/* The time of the host for a step, which need not be the device's. */
static double host_ms(const struct profile *p)
{
    int64_t ns = 0;
    for (int64_t i = 0; i < p->record.actions; i++) {
        const struct profile_action *x = &p->record.action[i];
        if (x->mark < 0 && x->step < p->steps) ns += length(&x->span);
    }
    return 1e-6 * (double)ns / p->steps;
}

/* The main thread works whenever it does not wait for the device; of other threads only their calls
 * are known. */
static void add_callers(struct host_lines *h, struct host_line like, const struct profile *p)
{
    const struct profile_record *r = &p->record;
    double step_ms = host_ms(p);
    int threads = 0;
    for (int64_t i = 0; i < r->apis; i++) threads = (int)max_i64(threads, r->api[i].thread + 1);
    for (int thread = 0; thread < threads; thread++) {
        double waited = 0, called = 0;
        for (int64_t i = 0; i < r->apis; i++) {
            const struct api_call *c = &r->api[i];
            if (c->thread != thread || !part_of(p, c)) continue;
            double ms = 1e-6 * (double)(c->end_ns - c->start_ns) / p->steps;
            if (waits(c)) {
                add_wait(h, like, thread, arena_printf(h->a, "waits for the device in %s", c->name),
                         ms, step_ms);
                waited += ms;
            } else {
                called += ms;
            }
        }
        double worked = thread ? called : step_ms - waited;
        if (worked > 0) add_wait(h, like, thread, "works", worked, step_ms);
    }
}

/* Without a record of calls, the part `wait` of a step is all that is known. */
static void add_part(struct host_lines *h, struct host_line like, const struct profile *p)
{
    double waited = 0, step_ms = host_ms(p);
    for (int64_t i = 0; i < p->record.actions; i++) {
        const struct profile_action *x = &p->record.action[i];
        if (x->mark < 0 && x->part == RANDOM_STEP_WAITS && x->step < p->steps)
            waited += 1e-6 * (double)length(&x->span) / p->steps;
    }
    add_wait(h, like, 0, "waits for the device", waited, step_ms);
    add_wait(h, like, 0, "works", step_ms - waited, step_ms);
}

/* Where the host is the device: threads work on kernels, and wait while others do. */
static void add_workers(struct host_lines *h, struct host_line like, const struct profile *p)
{
    double step_ms = p->step_ms.mean;
    for (int thread = 0; thread < p->threads; thread++) {
        double busy = 0, unseen = 0;
        for (int64_t i = 0; i < p->record.thread_spans; i++) {
            const struct profile_thread_span *x = &p->record.thread_span[i];
            if (x->step >= p->steps) continue;
            double ms = 1e-6 * (double)length(&x->span) / p->steps;
            if (x->unseen && x->thread != thread)
                unseen += ms;
            else if (x->thread == thread)
                busy += ms;
        }
        add_wait(h, like, thread, "works on kernels", busy, step_ms);
        if (unseen > 0)
            add_wait(h, like, thread, "unknown: a library's kernel runs", unseen, step_ms);
        add_wait(h, like, thread, thread ? "waits for work" : "other work, and waits for threads",
                 step_ms - busy - unseen, step_ms);
    }
}

void host_waits_add(struct host_lines *h, const char *side, int64_t T, const struct profile *p)
{
    struct host_line like = {.T = T, .side = side, .within = ""};
    if (p->threads)
        add_workers(h, like, p);
    else if (p->record.apis)
        add_callers(h, like, p);
    else
        add_part(h, like, p);
}

void host_waits_table(const struct host_lines *h, struct sheet *s)
{
    static const struct table_column columns[] = {WAIT(TABLE_COLUMN)};
    struct table *t = &sheet_add(s, "What each thread of the host waits for", columns,
                                 COUNT_OF(columns), h->lines, h->a)
                           ->table;
    struct table_row row = {t, 0, 0, h->a};
    for (const struct host_line *x = h->line; row.row < h->lines; x++, row.row++, row.column = 0) {
        WAIT(TABLE_CELL)
    }
}

#include "profile/collect.h"

#include "backend/backend.h"
#include "base/clock.h"
#include "base/threads.h"
#include "measure/noise.h"

enum { STEPS_LEAST = 3, PLAYS = 2 };

static const enum graph_kind kinds[] = {GRAPH_MICRO, GRAPH_MICRO_MORE, GRAPH_UPDATE};

static int64_t runs_of(const struct engine *e, enum graph_kind kind)
{
    return kind == GRAPH_MICRO_MORE ? e->config->train.gradient_accumulation_steps - 1 : 1;
}

struct marks marks_of(const struct engine *e)
{
    struct marks m = {.engine = e};
    for (int kind = 0; kind < GRAPH_COUNT; kind++) m.first[kind] = -1;
    for (int i = 0; i < COUNT_OF(kinds); i++) {
        enum graph_kind kind = kinds[i];
        if (!e->built[kind]) continue;
        m.first[kind] = m.marks;
        m.marks += e->plan[kind].steps;
        m.per_step += (int)(runs_of(e, kind) * plan_kernels(&e->plan[kind]));
    }
    return m;
}

int mark_of(const struct marks *m, const struct plan *p, int node)
{
    return m->first[p - m->engine->plan] + node;
}

enum graph_kind mark_kind(const struct marks *m, int mark, int *ret_node)
{
    enum graph_kind kind = GRAPH_MICRO;
    for (int i = 0; i < COUNT_OF(kinds); i++)
        if (m->first[kinds[i]] >= 0 && mark >= m->first[kinds[i]]) kind = kinds[i];
    *ret_node = mark - m->first[kind];
    return kind;
}

struct session {
    struct engine *engine;
    const struct profile_options *o;
    struct profile *p;
    struct collected *c;
    struct noise noise;
    struct host_watch *host;
    int iteration;
    double done_ms, all_ms; /* progress */
    struct arena *a;
};

static void tell(struct session *s, const char *what)
{
    double share = s->all_ms > 0 ? s->done_ms / s->all_ms : 0;
    if (s->o->each) s->o->each(s->o->user, share < 1 ? share : 1, what);
}

static enum status step(struct session *s, const struct plan_hooks *hooks, double *ret_ms)
{
    TRY(noise_step(&s->noise, s->iteration++, hooks, ret_ms));
    s->done_ms += *ret_ms;
    return ST_OK;
}

static enum status warm_up(struct session *s, const struct plan_hooks *hooks, double *ret_ms)
{
    for (int i = 0; i < s->o->warmup || i == 0; i++) {
        tell(s, "warming up");
        TRY(step(s, hooks, ret_ms));
    }
    return ST_OK;
}

/* How many steps of each kind there is time for. */
static void choose_steps(struct session *s, double ms)
{
    double fit = ms > 0 ? s->o->limit_ms / (2 * ms) : s->o->steps;
    int least = s->o->steps < STEPS_LEAST ? s->o->steps : STEPS_LEAST;
    int n = fit < s->o->steps ? (int)fit : s->o->steps;
    s->p->steps = n < least ? least : n;
    s->done_ms = 0;
    s->all_ms = 2 * ms * s->p->steps;
    s->c->plain_ms = ARENA_NEW(s->a, double, s->p->steps);
    s->c->watched_ms = ARENA_NEW(s->a, double, s->p->steps);
    s->c->host_ms = ARENA_NEW(s->a, double, s->p->steps);
    host_watch_room(s->host, s->p->steps);
}

/* Steps between these two are what a profiler that is attached shall look at, too. */
static void attend(struct session *s, bool begin)
{
    const struct engine *e = s->engine;
    if (e->backend->attend) e->backend->attend(e->context, begin);
}

static enum status plain_step(struct session *s, int i)
{
    int64_t before = s->noise.starting_ns;
    TRY(step(s, NULL, &s->c->plain_ms[i]));
    s->c->host_ms[i] = 1e-6 * (double)(s->noise.starting_ns - before);
    s->c->plain_steps = i + 1;
    return ST_OK;
}

static enum status watched_step(struct session *s, struct watch *w, int i)
{
    struct plan_hooks hooks = watch_hooks(w);
    watch_step_begin(w);
    host_watch_begin(s->host, &s->noise, s->iteration, i);
    enum status st = step(s, &hooks, &s->c->watched_ms[i]);
    host_watch_end(s->host, &s->noise);
    threads_watch(NULL);
    TRY(st);
    int64_t end = s->noise.done_ns;
    return watch_step_end(w, end - (int64_t)(1e6 * s->c->watched_ms[i]), end);
}

/* Watched and unwatched steps take turns, each as often the first of a pair, so that drift of the clock is in both. */
static enum status take_turns(struct session *s, struct watch *w)
{
    for (int i = 0; i < s->p->steps; i++) {
        tell(s, "steps");
        if (i % 2) TRY(watched_step(s, w, i));
        TRY(plain_step(s, i));
        if (i % 2 == 0) TRY(watched_step(s, w, i));
    }
    return ST_OK;
}

/* A profiler that is attached to the process looks once, from here to there: then watched steps follow the others. */
static enum status one_after_the_other(struct session *s, struct watch *w)
{
    enum status st = ST_OK;
    for (int i = 0; i < s->p->steps; i++) {
        tell(s, "steps");
        TRY(plain_step(s, i));
    }
    attend(s, true);
    for (int i = 0; i < s->p->steps && st == ST_OK; i++) {
        tell(s, "watched steps");
        st = watched_step(s, w, i);
    }
    attend(s, false);
    return st;
}

static enum status collect_by_hooks(struct session *s)
{
    double ms;
    s->p->by = s->engine->backend->host_memory ? PROFILE_CLOCK : PROFILE_EVENTS;
    s->p->replay = false;
    TRY(warm_up(s, NULL, &ms));
    choose_steps(s, ms);
    struct watch *w = watch_new(&s->c->marks, s->p->steps, s->host, s->a);
    TRY(s->engine->backend->attend ? one_after_the_other(s, w) : take_turns(s, w));
    watch_take(w, s->c);
    return ST_OK;
}

/* --- the device's own record --------------------------------------------------------------------- */

static void mark_before(void *user, const struct plan *p, int node)
{
    const struct session *s = user;
    int mark = mark_of(&s->c->marks, p, node);
    p->backend->trace_mark(p->context, mark);
    host_watch_before(s->host, mark);
}

static enum status mark_after(void *user, const struct plan *p, int node)
{
    const struct session *s = user;
    (void)node;
    host_watch_after(s->host);
    p->backend->trace_mark(p->context, -1);
    return ST_OK;
}

/* A step begins with the first thing that it does for a node: what the device moves before counts to the one that
 * ends. So the last one is seen whole only if another follows. */
static void find_steps(struct session *s)
{
    const struct trace *t = &s->c->trace;
    bool updated = true;
    int64_t start = -1;
    s->c->step = ARENA_NEW(s->a, struct profile_span, s->p->steps);
    for (int64_t i = 0; i < t->activities && s->c->steps < s->p->steps; i++) {
        int node;
        if (t->activity[i].mark < 0) continue;
        bool update = mark_kind(&s->c->marks, t->activity[i].mark, &node) == GRAPH_UPDATE;
        int64_t now = t->activity[i].start_ns;
        if (!update && updated && start >= 0)
            s->c->step[s->c->steps++] = (struct profile_span){start, now};
        if (!update && updated) start = now;
        updated = update;
    }
}

static enum status traced_steps(struct session *s, const struct plan_hooks *hooks)
{
    const struct engine *e = s->engine;
    double ms;
    TRY(e->backend->trace_begin(e->context));
    enum status st = ST_OK;
    host_watch_begin(s->host, &s->noise, s->iteration, 0);
    for (int i = 0; i <= s->p->steps && st == ST_OK; i++) {
        tell(s, "watched steps");
        s->noise.ahead = i < s->p->steps;
        st = step(s, hooks, &ms);
        if (i < s->p->steps) s->c->watched_ms[i] = ms;
    }
    host_watch_end(s->host, &s->noise);
    enum status ended = e->backend->trace_end(e->context, &s->c->trace, s->a);
    TRY(st);
    TRY(ended);
    find_steps(s);
    s->p->steps = s->c->steps;
    if (s->p->steps) return ST_OK;
    return fail(ST_DEVICE, "the device's record has no whole step%s%s", s->c->trace.why ? ": " : "",
                s->c->trace.why ? s->c->trace.why : "");
}

/* A recording that is to be seen later must be made while the device is looked at. */
static enum status traced_warm_up(struct session *s, const struct plan_hooks *hooks, double *ret_ms)
{
    const struct engine *e = s->engine;
    struct trace unused;
    struct arena scratch = {0};
    TRY(e->backend->trace_begin(e->context));
    enum status st = warm_up(s, hooks, ret_ms);
    if (st == ST_OK) st = warm_up(s, hooks, ret_ms);
    enum status ended = e->backend->trace_end(e->context, &unused, &scratch);
    arena_release(&scratch);
    return st == ST_OK ? ended : st;
}

/* Looking at a device is switched on once, so watched steps follow the others. */
static enum status collect_by_trace(struct session *s)
{
    struct plan_hooks hooks = {.user = s, .recorded = true};
    hooks.before = mark_before;
    hooks.after = mark_after;
    double ms;
    TRY(traced_warm_up(s, &hooks, &ms));
    s->p->by = PROFILE_TRACE;
    s->p->replay = engine_replays(s->engine, &hooks);
    choose_steps(s, ms);
    s->noise.ahead = true;
    for (int i = 0; i < s->p->steps; i++) {
        tell(s, "steps");
        TRY(plain_step(s, i));
    }
    TRY(noise_land(&s->noise));
    attend(s, true);
    enum status st = traced_steps(s, &hooks);
    attend(s, false);
    return st;
}

/* Whether that worked; if not, why. */
static bool traced(struct session *s)
{
    const struct backend *b = s->engine->backend;
    struct profile *p = s->p;
    if (b->host_memory) return false;
    if (s->o->no_trace)
        p->why = "events were asked for";
    else if (!b->trace_begin)
        p->why = arena_printf(s->a, "%s does not tell what its device does", b->name);
    else if (collect_by_trace(s) != ST_OK)
        p->why = arena_strdup(s->a, fail_message());
    return !p->why;
}

enum status collect(struct engine *e, const struct profile_options *o, struct profile *p,
                    struct collected *ret, struct arena *a)
{
    struct session s = {.engine = e, .o = o, .p = p, .c = ret, .a = a};
    *ret = (struct collected){.marks = marks_of(e)};
    p->warmup = o->warmup;
    p->threads = e->backend->host_memory ? (int)threads_count() : 0;
    TRY(noise_init(&s.noise, e, a));
    s.host = host_watch_new(&ret->marks, a);
    enum status st = ST_OK;
    if (!traced(&s)) {
        s.noise.ahead = false;
        ret->steps = 0;
        ret->trace = (struct trace){0};
        st = noise_land(&s.noise);
        if (st == ST_OK) st = collect_by_hooks(&s);
    }
    noise_close(&s.noise);
    host_watch_take(s.host, ret);
    return st;
}

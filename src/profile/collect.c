#include "profile/collect.h"

#include "backend/communicator.h"
#include "base/interrupt.h"
#include "base/threads.h"
#include "engine/facts.h"
#include "profile/ranks.h"

#include <string.h>

/* The first step compiles, the second is captured, the third can be timed. */
enum { WARM_LEAST = 1, WARM_LEAST_RECORDED = 3, BLOCKS = 5, BLOCKS_IN_TURNS = 16 };

static const enum graph_kind kinds[] = {GRAPH_MICRO, GRAPH_MICRO_MORE, GRAPH_MICRO_LAST,
                                        GRAPH_UPDATE};

struct marks marks_of(const struct engine *e)
{
    struct marks m = {.engine = e};
    for (int kind = 0; kind < GRAPH_COUNT; kind++) m.first[kind] = -1;
    for (int i = 0; i < COUNT_OF(kinds); i++) {
        enum graph_kind kind = kinds[i];
        if (!e->program.built[kind]) continue;
        m.first[kind] = m.marks;
        m.marks += e->program.plan[kind].steps;
        int64_t runs = runs_per_step(e->program.config, kind);
        m.per_step += (int)(runs * plan_kernels(&e->program.plan[kind]));
    }
    return m;
}

int mark_of(const struct marks *m, const struct plan *p, int node)
{
    return m->first[p - m->engine->program.plan] + node;
}

enum graph_kind mark_kind(const struct marks *m, int mark, int *ret_node)
{
    enum graph_kind kind = GRAPH_MICRO;
    for (int i = 0; i < COUNT_OF(kinds); i++)
        if (m->first[kinds[i]] >= 0 && mark >= m->first[kinds[i]]) kind = kinds[i];
    *ret_node = mark - m->first[kind];
    return kind;
}

bool mark_communicates(const struct marks *m, int mark)
{
    int node;
    enum graph_kind kind = mark_kind(m, mark, &node);
    const struct graph *g = m->engine->program.plan[kind].graph;
    return op_def(g->node[node].op)->family == FAMILY_COMMUNICATION;
}

struct session {
    struct engine *engine;
    const struct profile_options *o;
    struct profile *p;
    struct collected *c;
    struct random_step random_step;
    struct host_watch *host;
    struct pace pace;
    int plain_steps; /* unprofiled steps to run */
    /* Hooks of the current step, called after those that track progress; NULL: none. */
    const struct plan_hooks *looked;
    int iteration;
    int turn_done; /* pairs or blocks before this turn */
    /* For a device trace: callback of `host`; final number of each step, -1 if incomplete. */
    void (*told)(void *user, enum random_step_part part, int iteration, bool begins);
    int *kept;
    struct arena *a;
};

static void progress_before(void *user, const struct plan *p, int node)
{
    struct session *s = user;
    pace_look(&s->pace, p, node);
    if (s->looked && s->looked->before) s->looked->before(s->looked->user, p, node);
}

/* During warm-up, Ctrl-C stops at once: no result would be lost. */
static enum status progress_after(void *user, const struct plan *p, int node)
{
    const struct session *s = user;
    if (!s->pace.chosen && interrupt_noted()) return fail(ST_INTERRUPTED, "interrupted");
    return s->looked && s->looked->after ? s->looked->after(s->looked->user, p, node) : ST_OK;
}

static enum status step(struct session *s, const char *what, const struct plan_hooks *hooks,
                        double *ret_ms)
{
    struct plan_hooks look = {.user = s, .before = progress_before, .after = progress_after};
    s->looked = hooks;
    if (s->engine->backend->host_memory && pace_is_slow(&s->pace)) hooks = &look;
    pace_begin(&s->pace, what);
    TRY(random_step_run(&s->random_step, s->iteration++, hooks, ret_ms));
    pace_end(&s->pace, *ret_ms);
    return ST_OK;
}

static enum status warm_up(struct session *s, int least, const struct plan_hooks *hooks)
{
    double ms;
    pace_init(&s->pace, s->o, s->engine, least);
    while (pace_warms(&s->pace)) {
        TRY(step(s, "warming up", hooks, &ms));
        if (interrupt_noted()) return fail(ST_INTERRUPTED, "interrupted");
    }
    return ST_OK;
}

static void choose_steps(struct session *s)
{
    s->p->steps = s->p->wanted = pace_choose(&s->pace, &s->plain_steps);
    s->p->warmup = s->iteration;
    s->c->plain_ms = ARENA_NEW(s->a, double, s->p->steps);
    s->c->watched_ms = ARENA_NEW(s->a, double, s->p->steps);
    s->c->host_ms = ARENA_NEW(s->a, double, s->p->steps);
    s->c->ratio = ARENA_NEW(s->a, double, s->p->steps);
    s->c->plain_steps = s->c->watched_steps = s->c->ratios = 0;
    host_watch_events(s->host, s->p->steps);
}

/* Marks the steps that an attached profiler should record, too. */
static void set_profiler_range(struct session *s, bool begin)
{
    const struct engine *e = s->engine;
    if (e->backend->trace) e->backend->trace->profiler_range(e->context, begin);
}

static enum status plain_step(struct session *s)
{
    struct collected *c = s->c;
    int64_t ns = s->random_step.starting_ns, starts = s->random_step.starts;
    TRY(step(s, "steps", NULL, &c->plain_ms[c->plain_steps]));
    c->host_ms[c->plain_steps] =
        1e-6 * (double)(s->random_step.starting_ns - ns) / (double)(s->random_step.starts - starts);
    c->plain_steps++;
    return ST_OK;
}

static enum status watched_step(struct session *s, struct watch *w)
{
    struct plan_hooks hooks = watch_hooks(w);
    int i = s->c->watched_steps;
    watch_step_begin(w);
    host_watch_begin(s->host, &s->random_step, s->iteration, i, i + 1);
    ranks_before(s->o->ranks, &s->random_step, i);
    enum status st = step(s, "profiled steps", &hooks, &s->c->watched_ms[i]);
    ranks_after(s->o->ranks, &s->random_step);
    host_watch_end(s->host, &s->random_step);
    threads_watch(NULL);
    TRY(st);
    s->c->watched_steps++;
    int64_t end = s->random_step.done_ns;
    return watch_step_end(w, end - (int64_t)(1e6 * s->c->watched_ms[i]), end);
}

/* Compares the last `n` profiled steps with the last `n` unprofiled ones. */
static void compare(struct session *s, int n)
{
    struct collected *c = s->c;
    double watched = stats_of(c->watched_ms + c->watched_steps - n, n).median;
    c->ratio[c->ratios++] = watched / stats_of(c->plain_ms + c->plain_steps - n, n).median;
}

/* Waits for the next turn if this one is over. `done` of `all`: pairs of steps, or blocks. */
static enum status keep_turns(struct session *s, int done, int all, int steps)
{
    struct collected *c = s->c;
    double ms = c->plain_steps ? s->pace.step_ms * 2 : 0;
    bool over = done == 0 || done >= s->turn_done + s->p->turn.units || done == all;
    if (s->o->turns <= 0 || !over) return ST_OK;
    s->turn_done = done;
    return chunks_take_turn(s->o, s->p, c->plain_steps, steps, all - done, ms, s->a);
}

/* Runs profiled and unprofiled steps in pairs, each kind first in every other pair, so that clock
 * drift affects both. If there is no time for more pairs, the first one counts for all. */
static enum status alternate_steps(struct session *s, struct watch *w)
{
    for (int i = 0; i < s->p->steps && !interrupt_noted(); i++) {
        bool plain = i < s->plain_steps;
        TRY(keep_turns(s, i, s->p->steps, s->c->watched_steps));
        if (i % 2) TRY(watched_step(s, w));
        if (plain && !interrupt_noted()) TRY(plain_step(s));
        if (i % 2 == 0 && !interrupt_noted()) TRY(watched_step(s, w));
        if (s->c->plain_steps > i && s->c->watched_steps > i) compare(s, 1);
    }
    return keep_turns(s, s->p->steps, s->p->steps, s->c->watched_steps);
}

/* An attached profiler records one interval, so the profiled steps follow the unprofiled ones. */
static enum status run_plain_then_profiled(struct session *s, struct watch *w)
{
    enum status st = ST_OK;
    for (int i = 0; i < s->plain_steps && !interrupt_noted(); i++) TRY(plain_step(s));
    set_profiler_range(s, true);
    for (int i = 0; i < s->p->steps && st == ST_OK && !interrupt_noted(); i++)
        st = watched_step(s, w);
    set_profiler_range(s, false);
    int pairs = s->c->watched_steps < s->plain_steps ? s->c->watched_steps : s->plain_steps;
    if (st == ST_OK && pairs) compare(s, pairs);
    return st;
}

static enum status collect_by_hooks(struct session *s)
{
    s->p->by = s->engine->backend->host_memory ? PROFILE_CLOCK : PROFILE_EVENTS;
    s->p->replay = false;
    TRY(warm_up(s, WARM_LEAST, NULL));
    choose_steps(s);
    struct watch *w = watch_new(&s->c->marks, s->p->steps, s->host, s->a);
    ranks_begin(s->o->ranks, s->engine, &s->random_step, s->p->steps, s->a);
    TRY(s->engine->backend->trace ? run_plain_then_profiled(s, w) : alternate_steps(s, w));
    watch_take(w, s->c);
    s->p->steps = s->c->watched_steps;
    return ST_OK;
}

/* --- the device's trace ----------------------------------------------------------------------- */

static void mark_before(void *user, const struct plan *p, int node)
{
    const struct session *s = user;
    int mark = mark_of(&s->c->marks, p, node);
    p->backend->trace->mark(p->context, mark);
    host_watch_before(s->host, mark);
}

static enum status mark_after(void *user, const struct plan *p, int)
{
    const struct session *s = user;
    host_watch_after(s->host);
    p->backend->trace->mark(p->context, -1);
    return ST_OK;
}

/* Copies to the device for a step, before its first kernel, carry the mark of the step. */
static void mark_start(void *user, enum random_step_part part, int iteration, bool begins)
{
    struct session *s = user;
    const struct engine *e = s->engine;
    if (part == RANDOM_STEP_STARTS)
        e->backend->trace->mark(e->context, begins ? steps_mark(&s->c->marks, iteration) : -1);
    if (s->told) s->told(s->host, part, iteration, begins);
}

static void mark_starts(struct session *s)
{
    s->told = s->random_step.tell;
    s->random_step.tell = mark_start;
    s->random_step.user = s;
}

static void append_calls(struct session *s, struct trace *all, const struct trace *t)
{
    struct api_call *both = ARENA_NEW(s->a, struct api_call, all->apis + t->apis);
    if (all->apis) memcpy(both, all->api, (size_t)all->apis * sizeof *both);
    if (t->apis) memcpy(both + all->apis, t->api, (size_t)t->apis * sizeof *both);
    all->api = both;
    all->apis += t->apis;
}

/* Appends the activities and calls of `t` to those collected so far. */
static void append(struct session *s, const struct trace *t)
{
    struct trace *all = &s->c->trace;
    struct activity *both = ARENA_NEW(s->a, struct activity, all->activities + t->activities);
    if (all->activities) memcpy(both, all->activity, (size_t)all->activities * sizeof *both);
    if (t->activities)
        memcpy(both + all->activities, t->activity, (size_t)t->activities * sizeof *both);
    all->activity = both;
    all->activities += t->activities;
    append_calls(s, all, t);
    all->dropped += t->dropped;
    all->unmatched += t->unmatched;
    if (!all->why) all->why = t->why;
    all->by = t->by;
}

/* Keeps the complete steps of a block of n steps; its first has that iteration and number. */
static void keep_steps(struct session *s, struct trace *t, int iteration, int number, int n)
{
    struct seen_step *seen = ARENA_NEW(s->a, struct seen_step, n + 1);
    int found = steps_find(&s->c->marks, t, iteration - 1, seen, n + 1);
    for (int i = 0; i < found; i++) {
        int of = seen[i].iteration - iteration;
        if (of < 0 || of >= n || s->kept[number + of] >= 0) continue;
        s->kept[number + of] = s->c->steps;
        s->c->step[s->c->steps++] = seen[i].span;
    }
    append(s, t);
}

/* Waits for a step in flight. */
static enum status wait_in_flight(struct session *s)
{
    s->iteration += (int)sequence_in_flight(&s->random_step.step);
    return random_step_finish(&s->random_step);
}

/* One extra step before and after a block: its steps are complete and do not start when idle. */
static enum status traced_block(struct session *s, const struct plan_hooks *hooks, int n)
{
    const struct engine *e = s->engine;
    struct trace trace;
    double ms;
    int number = s->c->watched_steps, first = s->iteration + 1;
    TRY(e->backend->trace->begin(e->context));
    enum status st = ST_OK;
    host_watch_begin(s->host, &s->random_step, first, number, number + n);
    mark_starts(s);
    for (int i = -1; i <= n && st == ST_OK && !interrupt_noted(); i++) {
        s->random_step.lookahead = i < n;
        st = step(s, "profiled steps", hooks, &ms);
        if (i >= 0 && i < n && st == ST_OK) s->c->watched_ms[s->c->watched_steps++] = ms;
    }
    if (st == ST_OK) st = wait_in_flight(s); /* after Ctrl-C there may be one in flight */
    host_watch_end(s->host, &s->random_step);
    enum status ended = e->backend->trace->end(e->context, &trace, s->a);
    TRY(st);
    TRY(ended);
    keep_steps(s, &trace, first, number, n);
    return ST_OK;
}

static enum status plain_block(struct session *s, int n)
{
    double ms;
    s->random_step.lookahead = true;
    TRY(step(s, "steps", NULL, &ms));
    for (int i = 0; i < n && !interrupt_noted(); i++) TRY(plain_step(s));
    return wait_in_flight(s);
}

/* The trace can only match replays of a graph that was captured while a trace was active. */
static enum status traced_warm_up(struct session *s, const struct plan_hooks *hooks)
{
    const struct engine *e = s->engine;
    struct trace t;
    struct arena scratch = {0};
    TRY(e->backend->trace->begin(e->context));
    mark_starts(s);
    enum status st = warm_up(s, WARM_LEAST_RECORDED, hooks);
    s->random_step.tell = NULL;
    enum status ended = e->backend->trace->end(e->context, &t, s->o->calls ? s->a : &scratch);
    if (ended == ST_OK && s->o->calls) append_calls(s, &s->c->opening, &t);
    arena_release(&scratch);
    return st == ST_OK ? ended : st;
}

/* Starting a device trace takes a while, so blocks of steps alternate, not single steps. */
static enum status alternate_blocks(struct session *s, const struct plan_hooks *hooks)
{
    struct collected *c = s->c;
    int steps = s->p->steps, most = s->o->turns > 0 ? BLOCKS_IN_TURNS : BLOCKS;
    int blocks = steps < most ? steps : most;
    for (int i = 0; i < blocks && !interrupt_noted(); i++) {
        int n = steps * (i + 1) / blocks - steps * i / blocks;
        TRY(keep_turns(s, i, blocks, c->steps));
        if (i % 2) TRY(traced_block(s, hooks, n));
        if (!interrupt_noted()) TRY(plain_block(s, n));
        if (i % 2 == 0 && !interrupt_noted()) TRY(traced_block(s, hooks, n));
        if (interrupt_noted() && c->ratios) break;
        if (c->plain_steps < n) n = c->plain_steps;
        if (c->watched_steps < n) n = c->watched_steps;
        if (n) compare(s, n);
    }
    return keep_turns(s, blocks, blocks, c->steps);
}

/* In its first step a process loads NCCL's kernels and joins the others. CUPTI would instrument all
 * of these kernels, so the trace begins later. */
static enum status join_ranks(struct session *s)
{
    double ms;
    pace_init(&s->pace, s->o, s->engine, WARM_LEAST);
    return step(s, "joining the ranks", NULL, &ms);
}

static enum status collect_by_trace(struct session *s)
{
    struct plan_hooks hooks = {.user = s, .recorded = true};
    hooks.before = mark_before;
    hooks.after = mark_after;
    if (!communicator_in_process(s->engine->communicator)) TRY(join_ranks(s));
    TRY(traced_warm_up(s, &hooks));
    s->p->by = PROFILE_TRACE;
    s->p->replay = sequence_replays(&s->random_step.step, &hooks);
    choose_steps(s);
    s->c->step = ARENA_NEW(s->a, struct profile_span, s->p->steps);
    s->kept = ARENA_NEW(s->a, int, s->p->steps);
    for (int i = 0; i < s->p->steps; i++) s->kept[i] = -1;
    if (!communicator_in_process(s->engine->communicator))
        ranks_begin(s->o->ranks, s->engine, &s->random_step, 0, s->a);
    set_profiler_range(s, true);
    enum status st = alternate_blocks(s, &hooks);
    set_profiler_range(s, false);
    TRY(st);
    s->p->steps = s->c->steps;
    if (s->p->steps || interrupt_noted()) return ST_OK;
    return fail(ST_DEVICE, "the device trace has no complete step%s%s", s->c->trace.why ? ": " : "",
                s->c->trace.why ? s->c->trace.why : "");
}

/* Profiles with a device trace. False if that is not possible; p->why says why. True with a failure
 * in *ret if a rank failed. */
static bool traced(struct session *s, enum status *ret)
{
    const struct backend *b = s->engine->backend;
    struct profile *p = s->p;
    *ret = ST_OK;
    if (b->host_memory) return false;
    if (s->o->no_trace)
        p->why = "events were requested";
    else if (!b->trace)
        p->why = arena_printf(s->a, "the %s backend has no device trace", b->name);
    else
        *ret = collect_by_trace(s);
    if (*ret == ST_OK || communicator_has_failed(s->engine->communicator)) return !p->why;
    *ret = ST_OK;
    if (!interrupt_noted()) p->why = arena_strdup(s->a, fail_message());
    return !p->why;
}

/* Takes the calls that opened the engine; none if that fails. The message of a failure is kept. */
static void end_calls(struct session *s)
{
    struct failure first;
    fail_keep(&first);
    if (s->engine->backend->trace->calls_end(&s->c->opening, s->a) != ST_OK)
        s->c->opening = (struct trace){0};
    fail_restore(&first);
}

enum status collect(struct engine *e, const struct profile_options *o, struct profile *p,
                    struct collected *ret, struct arena *a)
{
    struct session s = {.engine = e, .o = o, .p = p, .c = ret, .a = a};
    *ret = (struct collected){.marks = marks_of(e)};
    /* The threads of several ranks are not told apart. */
    p->threads = e->backend->host_memory && !e->communicator ? (int)threads_count() : 0;
    enum status st = random_step_init(&s.random_step, e, a);
    if (o->calls) end_calls(&s);
    TRY(st);
    s.host = host_watch_new(&ret->marks, a);
    if (o->turns > 0) TRY(chunks_take_turn(o, p, 0, 0, 1, 0, a)); /* to warm up */
    if (!traced(&s, &st)) {
        s.random_step.lookahead = false;
        s.kept = NULL;
        s.turn_done = p->chunks = 0;
        ret->steps = 0;
        ret->trace = (struct trace){0};
        st = random_step_finish(&s.random_step);
        if (st == ST_OK) st = collect_by_hooks(&s);
    }
    if (st == ST_OK && o->counters && !interrupt_noted()) {
        pace_show(&s.pace, "hardware counters");
        counters_collect(&s.random_step, s.iteration, ret, p, a);
    }
    random_step_close(&s.random_step);
    /* mpirun also sends SIGTERM to the other ranks if one is lost */
    if (st != ST_OK && communicator_has_failed(e->communicator)) return st;
    if (interrupt_noted() && (!ret->ratios || !p->steps))
        return fail(ST_INTERRUPTED,
                    "stopped: there is no profile yet, because no pair of a profiled and an "
                    "unprofiled step was complete");
    TRY(st);
    host_watch_take(s.host, s.kept, ret);
    return ST_OK;
}

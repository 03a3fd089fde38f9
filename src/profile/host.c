/* Records the host's actions in profiled steps, and sends them as NVTX ranges. */
#include "profile/collect.h"

#include "backend/range.h"
#include "base/clock.h"

struct host_watch {
    struct marks marks;
    bool host_memory, heard, on; /* heard: a profiler receives NVTX ranges */
    struct profile_action *action;
    int64_t actions, capacity, part; /* part: the current one */
    int first, step, end;            /* step number `step` is iteration `first` */
    const struct range *range;       /* per mark; NULL: no profiler is attached */
    struct range now;                /* the ranges that are open */
    struct arena *a;
};

static const struct range *ranges_of(const struct marks *m, struct arena *a)
{
    const struct optimizer *o = optimizer_of(m->engine->program.config);
    struct range *range = ARENA_NEW(a, struct range, m->marks);
    for (int mark = 0; mark < m->marks; mark++) {
        int node;
        enum graph_kind kind = mark_kind(m, mark, &node);
        range[mark] = range_of(&m->engine->program.graph[kind].node[node], o, a);
    }
    return range;
}

struct host_watch *host_watch_new(const struct marks *m, struct arena *a)
{
    struct host_watch *w = ARENA_NEW(a, struct host_watch, 1);
    *w = (struct host_watch){.marks = *m, .a = a};
    w->host_memory = m->engine->backend->host_memory;
    w->heard = range_active();
    if (w->heard) w->range = ranges_of(m, a);
    return w;
}

void host_watch_events(struct host_watch *w, int steps)
{
    int64_t kernels = w->host_memory ? 0 : w->marks.per_step;
    w->actions = 0;
    w->capacity = (kernels + RANDOM_STEP_PARTS) * steps;
    w->action = ARENA_NEW(w->a, struct profile_action, w->capacity);
}

/* Records the start of an action. Returns its number; -1: no space, or not in a profiled step. */
static int64_t record_start(struct host_watch *w, int mark, enum random_step_part part, int step)
{
    if (w->actions == w->capacity || step < w->step || step >= w->end) return -1;
    w->action[w->actions] = (struct profile_action){mark, part, step, {clock_ns(), 0}};
    return w->actions++;
}

static void record_end(struct host_watch *w, int64_t action)
{
    if (action >= 0) w->action[action].span.end_ns = clock_ns();
}

/* --- ranges ----------------------------------------------------------------------------------- */

/* Pops the ranges that `to` is not in, and pushes the rest of `to`. */
static void move(struct host_watch *w, const struct range *to)
{
    int same = range_shared(to, &w->now);
    for (int i = w->now.words; i > same; i--) range_pop();
    for (int i = same; i < to->words; i++) range_push(to->word[i]);
    w->now = *to;
}

static void mark_part(struct host_watch *w, enum random_step_part part, bool begins)
{
    static const char *const names[RANDOM_STEP_PARTS] = {"generate tokens", "step", "wait"};
    static const struct range nowhere;
    if (!begins) move(w, &nowhere);
    if (begins)
        range_push(names[part]);
    else
        range_pop();
}

/* --- what is noted ---------------------------------------------------------------------------- */

static void on_part(void *user, enum random_step_part part, int iteration, bool begins)
{
    struct host_watch *w = user;
    if (w->heard) mark_part(w, part, begins);
    if (begins)
        w->part = record_start(w, -1, part, iteration - w->first + w->step);
    else
        record_end(w, w->part);
}

void host_watch_begin(struct host_watch *w, struct random_step *n, int iteration, int step, int end)
{
    w->on = true;
    w->first = iteration;
    w->step = step;
    w->end = end;
    w->part = -1;
    n->tell = on_part;
    n->user = w;
}

void host_watch_end(struct host_watch *w, struct random_step *n)
{
    w->on = false;
    n->tell = NULL;
}

void host_watch_before(struct host_watch *w, int mark)
{
    if (!w->on) return;
    if (w->heard) move(w, &w->range[mark]);
    if (!w->host_memory && w->part >= 0)
        (void)record_start(w, mark, RANDOM_STEP_STARTS, w->action[w->part].step);
}

void host_watch_after(struct host_watch *w)
{
    if (w->on && !w->host_memory && w->part >= 0 && w->actions - 1 > w->part)
        record_end(w, w->actions - 1);
}

void host_watch_take(struct host_watch *w, const int *kept, struct collected *ret)
{
    int64_t actions = 0;
    for (int64_t i = 0; i < w->actions; i++) {
        struct profile_action action = w->action[i];
        if (kept) action.step = kept[action.step];
        if (action.step >= 0) w->action[actions++] = action;
    }
    w->actions = actions;
    ret->action = w->action;
    ret->actions = w->actions;
}

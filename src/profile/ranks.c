/* Communication of several ranks: each records its collectives, and those but rank 0, whose kernels
 * are the profile's, also their kernels. */
#include "profile/ranks.h"

#include "backend/communicator.h"
#include "base/clock.h"

#include <math.h>

struct rank_log {
    struct profile_ranks *all;
    struct marks marks; /* with the engine of the rank */
    struct profile_rank log;
    int64_t at, end; /* in log.kernel, of this step */
};

struct profile_ranks {
    struct marks marks;
    int ranks;
    int *mark; /* of each collective of a step, in their order */
    int collectives;
    struct rank_log *rank;
};

static bool is_collective(const struct node *n)
{
    return op_def(n->op)->family == FAMILY_COMMUNICATION && n->op != OP_AWAIT;
}

/* Lists the collectives of a step if `mark` is not NULL; returns their number. */
static int list_collectives(const struct marks *m, const struct random_step *n, int *mark)
{
    int count = 0;
    for (int i = 0; i < n->step.parts; i++) {
        const struct plan *p = &m->engine->program.plan[n->step.part[i].kind];
        for (int id = 0; id < p->steps; id++) {
            if (!p->step[id].kernel || !is_collective(&p->graph->node[id])) continue;
            if (mark) mark[count] = mark_of(m, p, id);
            count++;
        }
    }
    return count;
}

struct profile_ranks *profile_ranks_new(struct arena *a)
{
    return ARENA_NEW(a, struct profile_ranks, 1);
}

void ranks_begin(struct profile_ranks *r, const struct engine *e, const struct random_step *n,
                 int steps, struct arena *a)
{
    if (!r || !e->communicator) return;
    r->marks = marks_of(e);
    r->ranks = communicator_ranks(e->communicator);
    r->collectives = list_collectives(&r->marks, n, NULL);
    r->mark = ARENA_NEW(a, int, r->collectives);
    list_collectives(&r->marks, n, r->mark);
    r->rank = ARENA_NEW(a, struct rank_log, r->ranks);
    for (int k = 0; k < r->ranks; k++) {
        struct rank_log *l = &r->rank[k];
        *l = (struct rank_log){.all = r, .marks = r->marks};
        l->log.collective = ARENA_NEW(a, struct collective_record, (int64_t)steps * r->collectives);
        if (k)
            l->log.kernel = ARENA_NEW(a, struct profile_kernel, (int64_t)steps * r->marks.per_step);
    }
}

static void record(struct rank_log *l, const struct engine *e, int step)
{
    int n = l->all->collectives;
    communicator_record(e->communicator, l->log.collective + (int64_t)step * n, n);
}

/* --- rank 0 ----------------------------------------------------------------------------------- */

void ranks_before(struct profile_ranks *r, struct random_step *n, int step)
{
    if (!r || !r->rank) return;
    n->mark = step + 1;
    record(&r->rank[0], n->engine, step);
}

void ranks_after(struct profile_ranks *r, struct random_step *n)
{
    if (!r || !r->rank) return;
    n->mark = 0;
    communicator_record(n->engine->communicator, NULL, 0);
}

/* --- the other ranks -------------------------------------------------------------------------- */

static void before_kernel(void *user, const struct plan *p, int node)
{
    struct rank_log *l = user;
    if (l->at == l->end) return;
    l->log.kernel[l->at].mark = mark_of(&l->marks, p, node);
    l->log.kernel[l->at].start_ns = clock_ns();
}

static enum status after_kernel(void *user, const struct plan *, int)
{
    struct rank_log *l = user;
    if (l->at < l->end) l->log.kernel[l->at++].end_ns = clock_ns();
    return ST_OK;
}

/* With fusion=primitive the update of a shard has another number of kernels at each rank. Marks are
 * those of rank 0, so the kernels of such a rank are not recorded. */
static bool same_kernels(const struct profile_ranks *r, const struct rank_log *l)
{
    return l->marks.per_step == r->marks.per_step && l->marks.marks == r->marks.marks;
}

static struct plan_hooks begin_step(void *user, const struct engine *e, int64_t mark)
{
    struct profile_ranks *r = user;
    struct rank_log *l = &r->rank[communicator_rank(e->communicator)];
    l->marks = marks_of(e);
    l->at = (mark - 1) * r->marks.per_step;
    l->end = same_kernels(r, l) ? l->at + r->marks.per_step : l->at;
    record(l, e, (int)mark - 1);
    return (struct plan_hooks){.user = l, .before = before_kernel, .after = after_kernel};
}

static void end_step(void *, const struct engine *e)
{
    communicator_record(e->communicator, NULL, 0);
}

struct random_crew_watch profile_ranks_watch(struct profile_ranks *r)
{
    return (struct random_crew_watch){.begin = begin_step, .end = end_step, .user = r};
}

/* --- what it comes to ------------------------------------------------------------------------- */

static double ms_between(int64_t from_ns, int64_t to_ns)
{
    return to_ns > from_ns ? clock_ms(from_ns, to_ns) : 0;
}

static bool computes(const struct profile_ranks *r, const struct activity *x)
{
    int node;
    if (x->mark < 0) return false;
    enum graph_kind kind = mark_kind(&r->marks, x->mark, &node);
    const struct plan *p = &r->marks.engine->program.plan[kind];
    return op_def(p->graph->node[node].op)->family != FAMILY_COMMUNICATION;
}

/* The part of from ... to in which kernels compute. Activities are in order; *at is the first that
 * can still reach into the time, and the next call is of a later one. */
static double computed_ms(const struct profile_ranks *r, const struct trace *t, int64_t *at,
                          int64_t from_ns, int64_t to_ns)
{
    double ms = 0;
    const struct activity *x = t->activity;
    while (*at < t->activities && x[*at].end_ns <= from_ns) ++*at;
    for (int64_t i = *at; i < t->activities && x[i].start_ns < to_ns; i++)
        if (computes(r, &x[i]))
            ms += ms_between(max_i64(x[i].start_ns, from_ns), min_i64(x[i].end_ns, to_ns));
    return ms;
}

/* Adds a step: the time in which a collective was started and not done, and how much of it passed
 * beside kernels of rank 0. Collectives are done in the order in which they start. */
static void add_step(const struct profile_ranks *r, const struct trace *t, int step, int64_t *at,
                     struct profile_communication *ret)
{
    int64_t now = 0;
    const struct collective_record *c = r->rank[0].log.collective + (int64_t)step * r->collectives;
    for (int i = 0; i < r->collectives; i++) {
        int64_t from = max_i64(now, c[i].posted_ns);
        if (c[i].done_ns <= from) continue;
        ret->all_ms += ms_between(from, c[i].done_ns);
        ret->hidden_ms += computed_ms(r, t, at, from, c[i].done_ns);
        now = c[i].done_ns;
    }
}

/* Collective i of the step, over all steps of rank 0. */
static struct profile_collective collective(const struct profile_ranks *r, int i, int steps)
{
    int node;
    enum graph_kind kind = mark_kind(&r->marks, r->mark[i], &node);
    const struct plan *p = &r->marks.engine->program.plan[kind];
    const struct node *n = &p->graph->node[node];
    const struct collective_record *c = r->rank[0].log.collective + i;
    struct profile_collective x = {.mark = r->mark[i], .op = n->op, .name = n->scope};
    x.bytes = type_bytes(graph_type(p->graph, n->in[0]));
    x.link_bytes = p->step[node].cost.bytes;
    for (int s = 0; s < steps; s++, c += r->collectives) {
        x.ms += ms_between(c->met_ns, c->done_ns) / steps;
        x.waited_ms += ms_between(c->begun_ns, c->met_ns) / steps;
    }
    return x;
}

static double waited_ms(const struct profile_ranks *r, int rank, int steps)
{
    double ms = 0;
    const struct collective_record *c = r->rank[rank].log.collective;
    for (int64_t i = 0; i < (int64_t)steps * r->collectives; i++)
        ms += ms_between(c[i].begun_ns, c[i].met_ns);
    return ms / steps;
}

void ranks_take(const struct profile_ranks *r, const struct collected *c, struct profile *p,
                struct arena *a)
{
    int64_t at = 0;
    if (!r || !r->rank || !p->steps) return;
    struct profile_communication *x = ARENA_NEW(a, struct profile_communication, 1);
    *x = (struct profile_communication){.ranks = r->ranks, .collectives = r->collectives};
    for (int step = 0; step < p->steps; step++) add_step(r, &c->trace, step, &at, x);
    x->all_ms /= p->steps;
    x->hidden_ms /= p->steps;
    x->exposed_ms = fmax(x->all_ms - x->hidden_ms, 0);
    x->collective = ARENA_NEW(a, struct profile_collective, r->collectives);
    for (int i = 0; i < r->collectives; i++) {
        struct profile_collective *one = &x->collective[i];
        *one = collective(r, i, p->steps);
        if (p->machine && one->op == OP_ALL_REDUCE)
            one->ceiling = machine_link_rate(p->machine, r->ranks, (double)one->bytes);
    }
    x->rank = ARENA_NEW(a, struct profile_rank, r->ranks);
    for (int k = 0; k < r->ranks; k++) {
        x->rank[k] = r->rank[k].log;
        x->rank[k].kernels = k && same_kernels(r, &r->rank[k]) ? r->marks.per_step : 0;
        x->rank[k].waited_ms = waited_ms(r, k, p->steps);
    }
    p->communication = x;
}

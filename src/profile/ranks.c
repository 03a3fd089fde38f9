/* Communication of several ranks. Threads record their collectives, and those but rank 0, whose
 * kernels are the profile's, also their kernels. Of ranks that are processes only rank 0 records:
 * its collectives on a CPU; on a GPU they are kernels of NCCL in the trace. */
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
    int ranks, seen;
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
    r->seen = communicator_in_process(e->communicator) ? r->ranks : 1;
    r->collectives = list_collectives(&r->marks, n, NULL);
    r->mark = ARENA_NEW(a, int, r->collectives);
    list_collectives(&r->marks, n, r->mark);
    r->rank = ARENA_NEW(a, struct rank_log, r->seen);
    for (int k = 0; k < r->seen; k++) {
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
    return x->mark >= 0 && !mark_communicates(&r->marks, x->mark);
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

/* Describes collective i of a step, without its times. */
static struct profile_collective describe(const struct profile_ranks *r, int i)
{
    int node;
    enum graph_kind kind = mark_kind(&r->marks, r->mark[i], &node);
    const struct plan *p = &r->marks.engine->program.plan[kind];
    const struct node *n = &p->graph->node[node];
    return (struct profile_collective){.mark = r->mark[i],
                                       .op = n->op,
                                       .name = n->scope,
                                       .bytes = type_bytes(graph_type(p->graph, n->in[0])),
                                       .link_bytes = p->step[node].cost.bytes};
}

static double waited_ms(const struct profile_ranks *r, int rank, int steps)
{
    double ms = 0;
    const struct collective_record *c = r->rank[rank].log.collective;
    for (int64_t i = 0; i < (int64_t)steps * r->collectives; i++)
        ms += ms_between(c[i].begun_ns, c[i].met_ns);
    return ms / steps;
}

/* Times from the records of the ranks. */
static void take_records(const struct profile_ranks *r, const struct collected *c,
                         const struct profile *p, struct profile_communication *x, struct arena *a)
{
    int64_t at = 0;
    for (int step = 0; step < p->steps; step++) add_step(r, &c->trace, step, &at, x);
    x->all_ms /= p->steps;
    x->hidden_ms /= p->steps;
    for (int i = 0; i < r->collectives; i++) {
        const struct collective_record *one = r->rank[0].log.collective + i;
        for (int step = 0; step < p->steps; step++, one += r->collectives) {
            x->collective[i].ms += ms_between(one->met_ns, one->done_ns) / p->steps;
            x->collective[i].waited_ms += ms_between(one->begun_ns, one->met_ns) / p->steps;
        }
    }
    x->seen = r->seen;
    x->rank = ARENA_NEW(a, struct profile_rank, r->seen);
    for (int k = 0; k < r->seen; k++) {
        x->rank[k] = r->rank[k].log;
        x->rank[k].kernels = k && same_kernels(r, &r->rank[k]) ? r->marks.per_step : 0;
        x->rank[k].waited_ms = waited_ms(r, k, p->steps);
    }
}

/* Times from the rows of NCCL's kernels: a row has the exposed time of a step, and the rest. */
static void take_rows(const struct profile_ranks *r, const struct profile *p,
                      struct profile_communication *x)
{
    x->kernels = true;
    for (int i = 0; i < p->rows; i++) {
        const struct profile_row *row = &p->row[i];
        if (row->node < 0 || row->family != FAMILY_COMMUNICATION) continue;
        int mark = r->marks.first[row->kind] + row->node;
        x->all_ms += row->ms + row->hidden_ms;
        x->hidden_ms += row->hidden_ms;
        int same = 0; /* with zero=3 a collective runs in each micro-step */
        for (int k = 0; k < r->collectives; k++) same += r->mark[k] == mark;
        for (int k = 0; k < r->collectives; k++)
            if (r->mark[k] == mark) x->collective[k].ms += (row->ms + row->hidden_ms) / same;
    }
}

void ranks_take(const struct profile_ranks *r, const struct collected *c, struct profile *p,
                struct arena *a)
{
    if (!r || !r->rank || !p->steps) return;
    if (p->by == PROFILE_EVENTS && r->seen < r->ranks) return; /* NCCL has no records */
    struct profile_communication *x = ARENA_NEW(a, struct profile_communication, 1);
    *x = (struct profile_communication){.ranks = r->ranks, .collectives = r->collectives};
    x->collective = ARENA_NEW(a, struct profile_collective, r->collectives);
    bool waits = p->by != PROFILE_TRACE && r->seen == r->ranks;
    for (int i = 0; i < r->collectives; i++) {
        struct profile_collective *one = &x->collective[i];
        *one = describe(r, i);
        one->waited_ms = waits ? 0 : NAN;
        if (p->machine && one->op == OP_ALL_REDUCE && r->seen == r->ranks)
            one->ceiling = machine_link_rate(p->machine, r->ranks, (double)one->bytes);
    }
    if (p->by == PROFILE_TRACE)
        take_rows(r, p, x);
    else
        take_records(r, c, p, x, a);
    x->exposed_ms = fmax(x->all_ms - x->hidden_ms, 0);
    p->communication = x;
}

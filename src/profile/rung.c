#include "profile/rung.h"

#include "bench/call.h"
#include "bench/ladder.h"

#include <stdlib.h>
#include <string.h>

/* A kernel of a step: an operator with its place in the model. */
struct place {
    enum op op;
    enum phase phase;
    const char *scope;
    struct type type; /* of its result */
    int runs;
    double ms;
    bool product;
    enum machine_precision peak; /* that its arithmetic is compared with */
    int met;                     /* 1 + index of the matching place in the other plan; 0: none */
};

struct places {
    struct place *place;
    int n, capacity;
};

static const enum graph_kind kinds[] = {GRAPH_MICRO, GRAPH_MICRO_MORE, GRAPH_MICRO_LAST,
                                        GRAPH_UPDATE};

static double time_of(const struct profile *p, enum graph_kind kind, int node)
{
    double ms = 0;
    for (int i = 0; p && i < p->rows; i++)
        if (p->row[i].node == node && p->row[i].kind == kind) ms += p->row[i].ms;
    return ms;
}

/* `p` has the times; NULL: no times. */
static struct places places_of(const struct program *program, const struct profile *p,
                               struct arena *a)
{
    struct places all = {0};
    for (int k = 0; k < COUNT_OF(kinds); k++) {
        const struct plan *plan = &program->plan[kinds[k]];
        if (!program->built[kinds[k]]) continue;
        for (int id = 0; id < plan->steps; id++) {
            const struct node *n = &plan->graph->node[id];
            if (!plan->step[id].kernel) continue;
            ARENA_GROW(a, all.place, all.n, all.capacity);
            struct place *x = &all.place[all.n++];
            *x = (struct place){.op = n->op, .phase = n->phase, .scope = n->scope};
            x->type = *graph_type(plan->graph, n->out[0]);
            x->runs = (int)runs_per_step(program->config, kinds[k]);
            x->ms = time_of(p, kinds[k], id);
            x->product = family_of(n, false) == FAMILY_MATMUL;
            x->peak = call_precision(&plan->step[id].call);
        }
    }
    return all;
}

/* Matches places of two plans; with `typed` only those of equal result types. */
static void match(struct places *x, struct places *y, bool typed)
{
    for (int i = 0; i < x->n; i++)
        for (int k = 0; k < y->n && !x->place[i].met; k++) {
            struct place *a = &x->place[i], *b = &y->place[k];
            if (b->met || a->op != b->op || a->phase != b->phase || a->runs != b->runs) continue;
            if (strcmp(a->scope, b->scope) != 0) continue;
            if (typed && !type_same(&a->type, &b->type)) continue;
            a->met = k + 1;
            b->met = i + 1;
        }
}

static void count(struct rung_op of[OP_COUNT], const struct place *x)
{
    of[x->op].op = x->op;
    of[x->op].runs += x->runs;
    of[x->op].ms += x->ms;
}

static int most_first(const void *a, const void *b)
{
    const struct rung_op *x = a, *y = b;
    if (x->ms != y->ms) return x->ms < y->ms ? 1 : -1;
    return y->runs - x->runs;
}

static int choose(struct rung_op of[OP_COUNT], struct rung_op ret[RUNG_OPS])
{
    int n = 0;
    qsort(of, OP_COUNT, sizeof *of, most_first);
    while (n < RUNG_OPS && of[n].runs) ret[n] = of[n], n++;
    return n;
}

static void count_matmul(struct rung *r, const struct machine *m, const struct place *x,
                         const struct place *then)
{
    const struct machine_peak *from = m ? machine_peak(m, x->peak) : NULL;
    const struct machine_peak *to = m ? machine_peak(m, then->peak) : NULL;
    if (!x->product || !from || !to || !(to->flops > from->flops)) return;
    r->matmuls_ms += x->ms;
    r->gain_ms += x->ms * (1 - from->flops / to->flops);
}

static void compare(const struct profile *p, const struct program *next, struct rung *r,
                    struct arena *a)
{
    struct rung_op gone[OP_COUNT] = {0}, come[OP_COUNT] = {0};
    struct places here = places_of(&p->engine->program, p, a), there = places_of(next, NULL, a);
    match(&here, &there, true);
    for (int i = 0; i < here.n; i++) r->stay += here.place[i].met ? here.place[i].runs : 0;
    bool *same = ARENA_NEW(a, bool, here.n);
    for (int i = 0; i < here.n; i++) same[i] = here.place[i].met != 0;
    match(&here, &there, false);
    for (int i = 0; i < here.n; i++) {
        const struct place *x = &here.place[i];
        if (!x->met) {
            r->gone += x->runs;
            r->gone_ms += x->ms;
            count(gone, x);
        } else if (!same[i]) {
            r->retyped += x->runs;
            r->retyped_ms += x->ms;
            count_matmul(r, p->machine, x, &there.place[x->met - 1]);
        }
    }
    for (int i = 0; i < there.n; i++) {
        if (there.place[i].met) continue;
        r->come += there.place[i].runs;
        count(come, &there.place[i]);
    }
    r->gone_ops = choose(gone, r->gone_op);
    r->come_ops = choose(come, r->come_op);
}

/* Whether the rung changes this step: its plan differs, or it is replayed. */
static bool changes(const struct rung *r, const struct config *from, const struct config *to)
{
    return r->gone || r->come || r->retyped || from->plan.replay != to->plan.replay;
}

static enum status plan_next(const struct program *p, const struct ladder_rung *next,
                             struct program *ret, struct arena *a)
{
    unsigned built = 0;
    for (int kind = 0; kind < GRAPH_COUNT; kind++)
        if (p->built[kind] && kind != GRAPH_REFRESH) built |= 1u << kind;
    TRY(model_check(&next->config));
    return program_compile(ret, &next->config, p->model.vocab, p->target, p->tuning, built, a);
}

void rung_find(const struct profile *p, struct rung *ret, struct arena *a)
{
    const struct engine *e = p->engine;
    struct ladder_rung next;
    int at = 0;
    const char *idle = NULL;
    *ret = (struct rung){0};
    while (ladder_next(e->program.config, !e->backend->host_memory, &at, &next, a)) {
        struct program planned;
        struct rung r = {.name = next.name, .differs = next.differs};
        if (plan_next(&e->program, &next, &planned, a) != ST_OK) {
            /* in a CPU's ladder it stands for the published times alone */
            if (e->backend->host_memory && next.config.plan.dtype == PRECISION_TFLOAT32) continue;
            r.reason = arena_strdup(a, fail_message());
            *ret = r;
            continue;
        }
        compare(p, &planned, &r, a);
        if (changes(&r, e->program.config, &next.config)) {
            *ret = r;
            return;
        }
        idle = arena_printf(a, "%s%s%s", idle ? idle : "", idle ? ", " : "", r.name);
    }
    if (idle) *ret = (struct rung){.idle = idle};
}

/* The loop over steps: no decision is left, and nothing is allocated. */
#include "backend/backend.h"
#include "plan/plan.h"

/* All bits set: a NaN in every float type, -1 in every integer. */
static enum status poison(const struct plan *p, int v)
{
    const struct span *s = &p->span[v];
    return p->backend->fill(p->context, p->base[s->storage] + s->offset, 0xff, s->bytes);
}

static bool takes_place(const struct plan *p, const struct node *n, value out)
{
    for (int i = 0; i < n->n_in; i++)
        if (p->span[n->in[i].i].root == p->span[out.i].root) return true;
    return false;
}

/* What this step writes is unwritten before. */
static enum status poison_before(const struct plan *p, int id)
{
    const struct node *n = &p->graph->node[id];
    const struct step *s = &p->step[id];
    if (s->scratch_bytes && s->kernel)
        TRY(p->backend->fill(p->context, s->call.scratch, 0xff, s->scratch_bytes));
    for (int i = 0; n->op != OP_LEAF && i < n->n_out; i++)
        if (p->span[n->out[i].i].storage == STORAGE_ARENA && !takes_place(p, n, n->out[i]))
            TRY(poison(p, n->out[i].i));
    return ST_OK;
}

/* What died with this step is gone. */
static enum status poison_after(const struct plan *p, int id)
{
    const struct node *n = &p->graph->node[id];
    for (int i = 0; i < n->n_in; i++) {
        const struct span *s = &p->span[n->in[i].i];
        bool leaf = graph_producer(p->graph, (value){s->root})->op == OP_LEAF;
        if (s->storage == STORAGE_ARENA && s->last == id && !leaf) TRY(poison(p, n->in[i].i));
    }
    return ST_OK;
}

static enum status run_step(struct plan *p, int id, const struct plan_hooks *hooks)
{
    struct step *s = &p->step[id];
    if (hooks && hooks->before) hooks->before(hooks->user, p, id);
    enum status st = s->kernel->run(&s->call);
    if (st == ST_OK && hooks && hooks->after) st = hooks->after(hooks->user, p, id);
    if (st == ST_OK) return ST_OK;
    const struct node *n = &p->graph->node[id];
    return fail_in(st, "node %d %s %s", id, op_def(n->op)->name, n->scope);
}

enum status plan_run(struct plan *p, const struct plan_hooks *hooks)
{
    for (int id = 0; id < p->steps; id++) {
        if (p->options.poison) TRY(poison_before(p, id));
        if (p->step[id].kernel) TRY(run_step(p, id, hooks));
        if (p->options.poison) TRY(poison_after(p, id));
    }
    return ST_OK;
}

/* The loop over steps. plan_build and plan_bind have made all decisions; nothing is allocated. */
#include "backend/backend.h"
#include "plan/plan.h"

#include <stdio.h>

/* Sets all bits: a NaN in every float type, -1 in every integer type. */
static enum status poison(const struct plan *p, int v)
{
    const struct span *s = &p->span[v];
    return p->backend->memory.fill(p->context, p->base[s->storage] + s->offset, 0xff, s->bytes);
}

static bool is_in_place(const struct plan *p, const struct node *n, value out)
{
    for (int i = 0; i < n->n_in; i++)
        if (p->span[n->in[i].i].root == p->span[out.i].root) return true;
    return false;
}

static enum status poison_before(const struct plan *p, int id)
{
    const struct node *n = &p->graph->node[id];
    const struct step *s = &p->step[id];
    if (s->scratch_bytes && s->kernel)
        TRY(p->backend->memory.fill(p->context, s->call.scratch, 0xff, s->scratch_bytes));
    for (int i = 0; n->op != OP_LEAF && i < n->n_out; i++)
        if (p->span[n->out[i].i].storage == STORAGE_ARENA && !is_in_place(p, n, n->out[i]))
            TRY(poison(p, n->out[i].i));
    return ST_OK;
}

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

enum { SHAPES_TEXT = 512 };

static size_t add_types(char *buffer, size_t used, const struct graph *g, const value *v, int n)
{
    char type[TYPE_TEXT];
    for (int i = 0; i < n && used < SHAPES_TEXT; i++)
        used += (size_t)snprintf(buffer + used, SHAPES_TEXT - used, "%s%s", i ? ", " : "",
                                 type_text(type, graph_type(g, v[i])));
    return used < SHAPES_TEXT ? used : SHAPES_TEXT - 1;
}

/* For example "f32 (4,32) -> f32 (4,32)". */
static const char *shapes_text(char buffer[SHAPES_TEXT], const struct graph *g,
                               const struct node *n)
{
    size_t used = add_types(buffer, 0, g, n->in, n->n_in);
    used += (size_t)snprintf(buffer + used, SHAPES_TEXT - used, used ? " -> " : "-> ");
    add_types(buffer, used < SHAPES_TEXT ? used : SHAPES_TEXT - 1, g, n->out, n->n_out);
    return buffer;
}

static enum status run_step(struct plan *p, int id, const struct plan_hooks *hooks)
{
    struct step *s = &p->step[id];
    if (hooks && hooks->before) hooks->before(hooks->user, p, id);
    enum status st = s->kernel->run(&s->call);
    if (st == ST_OK && hooks && hooks->after) st = hooks->after(hooks->user, p, id);
    if (st == ST_OK) return ST_OK;
    const struct node *n = &p->graph->node[id];
    char shapes[SHAPES_TEXT];
    return fail_in(st, "node %d %s %s %s", id, op_def(n->op)->name, n->scope,
                   shapes_text(shapes, p->graph, n));
}

enum status plan_run_part(struct plan *p, int from, int to, const struct plan_hooks *hooks)
{
    for (int id = from; id < to; id++) {
        if (p->options.poison) TRY(poison_before(p, id));
        if (p->step[id].kernel) TRY(run_step(p, id, hooks));
        if (p->options.poison) TRY(poison_after(p, id));
    }
    return ST_OK;
}

enum status plan_run(struct plan *p, const struct plan_hooks *hooks)
{
    return plan_run_part(p, 0, p->steps, hooks);
}

int plan_backward_start(const struct plan *p)
{
    int id = 0;
    while (id < p->steps && (!p->step[id].kernel || p->graph->node[id].phase == PHASE_FORWARD))
        id++;
    return id;
}

#include "cli/generated.h"

#include "backend/backend.h"
#include "base/str.h"
#include "engine/engine.h"

#include <string.h>

/* A generated kernel and the nodes that use it, one line each. */
struct generated {
    const char *source, *nodes;
};

struct list {
    struct arena arena;
    struct generated *kernel;
    int n, capacity;
};

static void add(struct list *l, const char *source, const char *node)
{
    for (int i = 0; i < l->n; i++) {
        struct generated *known = &l->kernel[i];
        if (strcmp(known->source, source) != 0) continue;
        known->nodes = arena_printf(&l->arena, "%s%s", known->nodes, node);
        return;
    }
    ARENA_GROW(&l->arena, l->kernel, l->n, l->capacity);
    l->kernel[l->n++] = (struct generated){arena_strdup(&l->arena, source), node};
}

static const char *types_text(const struct type *t, int n, struct arena *a)
{
    const char *all = "";
    char text[TYPE_TEXT];
    for (int i = 0; i < n; i++)
        all = arena_printf(a, "%s%s%s", all, i ? ", " : "", type_text(text, &t[i]));
    return all;
}

/* "// update, node 5 CHAIN clip: f32 (1) -> f32 (1), f32 (1)" */
static const char *node_line(const struct plan *p, int id, enum graph_kind kind, struct arena *a)
{
    const struct node *n = &p->graph->node[id];
    const struct kernel_call *c = &p->step[id].call;
    return arena_printf(a, "// %s, node %d %s %s: %s -> %s\n", graph_kind_name(kind), id,
                        op_def(n->op)->name, n->scope, types_text(c->in_type, c->n_in, a),
                        types_text(c->out_type, c->n_out, a));
}

static void find(struct list *l, const struct plan *p, enum graph_kind kind)
{
    if (!p->backend->launches) return;
    for (int id = 0; id < p->steps; id++) {
        struct str source = {0};
        const struct step *s = &p->step[id];
        if (s->kernel && p->backend->launches->generated(s->kernel, &s->call, &source))
            add(l, str_text(&source), node_line(p, id, kind, &l->arena));
        str_release(&source);
    }
}

void generated_print(const struct program *p, struct str *s)
{
    struct list l = {0};
    for (int kind = 0; kind < GRAPH_COUNT; kind++)
        if (p->built[kind]) find(&l, &p->plan[kind], (enum graph_kind)kind);
    for (int i = 0; i < l.n; i++)
        str_printf(s, "%s%s%s", i ? "\n" : "", l.kernel[i].nodes, l.kernel[i].source);
    if (!l.n)
        str_append(s, "this plan has no generated kernels; they are generated for fused pointwise "
                      "chains, on a GPU with fusion=full\n");
    arena_release(&l.arena);
}

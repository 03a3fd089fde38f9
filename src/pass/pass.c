#include "pass/pass.h"

#include <string.h>

/* clang-format off */
const struct pass passes[] = {
    {"regions",   BEFORE_GRADIENT, pass_regions,   "marks what the backward pass recomputes"},
    {"join",      BEFORE_GRADIENT, pass_join,      "joins matmuls of one input"},
    {"expand",    BEFORE_GRADIENT, pass_expand,    "expands operators above the rung"},
    {"precision", AFTER_GRADIENT,  pass_precision, "chooses the types of the arithmetic"},
    {"recompute", AFTER_GRADIENT,  pass_recompute, "recomputes values in the backward pass"},
    {"numerics",  AFTER_GRADIENT,  pass_numerics,  "sets TF32 and determinism, if requested"},
    {"float8",    AFTER_GRADIENT,  pass_float8,    "quantizes matmuls of blocks, if requested"},
    {"fuse",      AFTER_GRADIENT,  pass_fuse,      "fuses neighboring operators"},
    {"chain",     AFTER_GRADIENT,  pass_chain,     "fuses consecutive pointwise operators"},
    {"pack",      AFTER_GRADIENT,  pass_pack,      "packs weights of matmuls"},
    {"shard",     AFTER_GRADIENT,  pass_shard,     "sums gradients over the ranks"},
    {"dead",      AFTER_GRADIENT,  pass_dead_code, "removes unused nodes"},
    {NULL, 0, NULL, NULL},
};
/* clang-format on */

const struct pass *pass_find(const char *name)
{
    for (const struct pass *p = passes; p->name; p++)
        if (!strcmp(p->name, name)) return p;
    return NULL;
}

enum status pass_run(const struct pass *p, const struct graph *in, struct graph *ret_out,
                     const struct pass_options *o)
{
    struct graph out;
    graph_init(&out, in->arena);
    enum status st = p->run(in, &out, o);
    graph_leave(&out, (struct graph_scope){"", -1});
    out.phase = PHASE_FORWARD;
    out.region = 0;
    out.numerics = (struct numerics){0};
    if (st == ST_OK) st = graph_verify(&out);
    if (st != ST_OK) return fail_in(st, "pass %s", p->name);
    *ret_out = out;
    return ST_OK;
}

enum status passes_run(enum pass_time time, struct graph *g, const struct pass_options *o,
                       const char *last)
{
    for (const struct pass *p = passes; p->name; p++) {
        if (p->time != time) continue;
        TRY(pass_run(p, g, g, o));
        if (last && !strcmp(last, p->name)) break;
    }
    return ST_OK;
}

void pass_copy_node(const struct graph *in, int id, struct graph *out, value *map)
{
    const struct node *n = &in->node[id];
    value first = graph_copy(out, in, n, map);
    for (int i = 0; i < n->n_out; i++) map[n->out[i].i] = graph_out(first, i);
}

void pass_finish(const struct graph *in, struct graph *out, const value *map)
{
    for (int i = 0; i < in->outputs; i++)
        graph_output(out, in->output[i].name, map[in->output[i].v.i]);
}

bool pass_kernel_is_faster(const struct pass_options *o, const struct graph *g, enum op op,
                           const union attr *attr, int n_in, const value *in,
                           const struct type *given)
{
    if (!o->kernels || graph_status(g) != ST_OK) return false;
    struct node n = {.op = op, .attr = *attr, .n_in = n_in, .numerics = g->numerics};
    struct type from[MAX_IN], to[MAX_OUT];
    for (int i = 0; i < n_in; i++) from[i] = *graph_type(g, in[i]);
    if (op_def(op)->shape(&n, from, given, to) != ST_OK) return false;
    return o->kernels->is_faster(o->kernels->who, &n, from, to);
}

bool pass_is_leaf_of(const struct node *n, enum storage storage)
{
    return n->op == OP_LEAF && n->attr.leaf.storage == storage;
}

bool pass_writes_gradient(const struct graph *g, const struct node *n)
{
    return op_writes(n->op) && pass_is_leaf_of(graph_producer(g, n->in[0]), STORAGE_GRADIENTS);
}

void pass_inherit_place(struct graph *out, const struct node *n)
{
    out->phase = n->phase;
    out->layer = n->layer;
    out->region = n->region;
    out->scope = n->scope;
    out->numerics = n->numerics;
}

static bool is_input(const struct node *n)
{
    return n->op == OP_LEAF && n->attr.leaf.storage == STORAGE_INPUT;
}

/* A node is live if an output or a write of state needs it. All inputs stay, because callers feed
 * all of them. */
enum status pass_dead_code(const struct graph *in, struct graph *out, const struct pass_options *)
{
    bool *live = ARENA_NEW(out->arena, bool, in->nodes);
    for (int i = 0; i < in->outputs; i++) live[in->info[in->output[i].v.i].producer] = true;
    for (int id = in->nodes - 1; id >= 0; id--) {
        const struct node *n = &in->node[id];
        live[id] |= op_writes(n->op) > 0 || is_input(n);
        for (int i = 0; live[id] && i < n->n_in; i++) live[in->info[n->in[i].i].producer] = true;
    }
    value *map = ARENA_NEW(out->arena, value, in->values);
    for (int id = 0; id < in->nodes; id++)
        if (live[id]) pass_copy_node(in, id, out, map);
    pass_finish(in, out, map);
    return graph_status(out);
}

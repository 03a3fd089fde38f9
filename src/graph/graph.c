#include "graph/graph.h"

#include <string.h>

void graph_init(struct graph *g, struct arena *a)
{
    *g = (struct graph){.arena = a, .layer = -1, .scope = ""};
    g->values = 1; /* value 0 means no value */
    g->info = arena_regrow(a, NULL, &g->value_capacity, sizeof *g->info);
    /* Code that builds a graph may call graph_type of value 0 after a failure. */
    g->info[0].type = type_scalar(DT_F32);
}

enum status graph_status(const struct graph *g)
{
    return g->st == ST_OK ? ST_OK : fail(g->st, "%s", g->st_text);
}

static value record_failure(struct graph *g, enum status st, const char *text)
{
    if (g->st == ST_OK) {
        g->st = st;
        g->st_text = arena_strdup(g->arena, text);
    }
    return (value){0};
}

static value append(struct graph *g, const struct node *n, const struct type *out)
{
    ARENA_GROW(g->arena, g->node, g->nodes, g->node_capacity);
    struct node *to = &g->node[g->nodes];
    *to = *n;
    for (int i = 0; i < n->n_out; i++) {
        ARENA_GROW(g->arena, g->info, g->values, g->value_capacity);
        g->info[g->values] = (struct value_info){out[i], g->nodes, i};
        to->out[i].i = g->values++;
    }
    g->nodes++;
    return to->out[0];
}

/* Values of at most VALUE_BYTES_MOST keep every size, offset and sum of a plan within 64 bits. */
static value refuse_size(struct graph *g, const struct node *n, const struct type *type)
{
    char t[TYPE_TEXT];
    enum status st = fail(ST_MEMORY,
                          "%s %s gives %s, more than the 16 TiB that one value may have; lower "
                          "batch_size, block_size, n_head or n_embd",
                          op_def(n->op)->name, n->scope, type_text(t, type));
    return record_failure(g, st, fail_message());
}

static value add_node(struct graph *g, struct node *n, const struct type *given)
{
    const struct op_def *def = op_def(n->op);
    BUG_IF(n->n_in < def->least_in || n->n_in > def->most_in, "%s with %d inputs", def->name,
           n->n_in);
    struct type in[MAX_IN], out[MAX_OUT];
    for (int i = 0; i < n->n_in; i++) {
        BUG_IF(n->in[i].i <= 0 || n->in[i].i >= g->values, "%s %s: input %d is not a value",
               def->name, n->scope, i);
        in[i] = g->info[n->in[i].i].type;
    }
    if (def->shape(n, in, given, out) != ST_OK) {
        enum status st = fail_in(ST_USAGE, "%s %s", def->name, n->scope);
        return record_failure(g, st, fail_message());
    }
    for (int i = 0; i < n->n_out; i++)
        if (type_bytes(&out[i]) > VALUE_BYTES_MOST) return refuse_size(g, n, &out[i]);
    return append(g, n, out);
}

value graph_add(struct graph *g, enum op op, const union attr *attr, int n_in, const value *in,
                const struct type *given)
{
    if (g->st != ST_OK) return (value){0};
    struct node n = {.op = op,
                     .phase = g->phase,
                     .layer = g->layer,
                     .region = g->region,
                     .scope = g->scope,
                     .n_in = n_in};
    if (attr) n.attr = *attr;
    if (op_def(op)->flags & OP_NUMERICS) n.numerics = g->numerics;
    for (int i = 0; i < n_in; i++) n.in[i] = in[i];
    return add_node(g, &n, given);
}

value graph_copy(struct graph *g, const struct graph *from, const struct node *old,
                 const value *map)
{
    if (g->st != ST_OK) return (value){0};
    struct node n = *old;
    for (int i = 0; i < n.n_in; i++) n.in[i] = map[old->in[i].i];
    return add_node(g, &n, &from->info[old->out[0].i].type);
}

void graph_output(struct graph *g, const char *name, value v)
{
    if (g->st != ST_OK) return;
    BUG_IF(!v.i, "output %s is not a value", name);
    ARENA_GROW(g->arena, g->output, g->outputs, g->output_capacity);
    g->output[g->outputs++] = (struct graph_output){arena_strdup(g->arena, name), v};
}

value graph_find_output(const struct graph *g, const char *name)
{
    for (int i = 0; i < g->outputs; i++)
        if (!strcmp(g->output[i].name, name)) return g->output[i].v;
    return (value){0};
}

value graph_find_leaf(const struct graph *g, enum storage storage, const char *name)
{
    for (int i = 0; i < g->nodes; i++) {
        const struct node *n = &g->node[i];
        if (n->op == OP_LEAF && n->attr.leaf.storage == storage && !strcmp(n->scope, name))
            return n->out[0];
    }
    return (value){0};
}

const struct type *graph_type(const struct graph *g, value v)
{
    return &g->info[v.i].type;
}

const struct node *graph_producer(const struct graph *g, value v)
{
    BUG_IF(v.i <= 0 || v.i >= g->values, "not a value");
    return &g->node[g->info[v.i].producer];
}

struct graph_scope graph_enter(struct graph *g, const char *word, int layer)
{
    struct graph_scope before = {g->scope, g->layer};
    g->scope =
        *g->scope ? arena_printf(g->arena, "%s.%s", g->scope, word) : arena_strdup(g->arena, word);
    if (layer >= 0) g->layer = layer;
    return before;
}

void graph_leave(struct graph *g, struct graph_scope before)
{
    g->scope = before.scope;
    g->layer = before.layer;
}

struct cost graph_node_cost(const struct graph *g, const struct node *n)
{
    struct type in[MAX_IN], out[MAX_OUT];
    for (int i = 0; i < n->n_in; i++) in[i] = g->info[n->in[i].i].type;
    for (int i = 0; i < n->n_out; i++) out[i] = g->info[n->out[i].i].type;
    return op_def(n->op)->cost(n, in, out);
}

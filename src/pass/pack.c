/* Matmuls whose second operand is a weight read its packed copy, which is in the memory order of
 * the library's inner loop. PACK writes the copy once per update, not once per matmul. */
#include "graph/build.h"
#include "pass/pass.h"

static bool is_weight(const struct node *n)
{
    return n->op == OP_LEAF &&
           (n->attr.leaf.storage == STORAGE_WEIGHTS || n->attr.leaf.storage == STORAGE_COPY);
}

static const struct packed_weight *find(const struct pass_packing *p, const struct node *leaf,
                                        int64_t elements)
{
    for (int i = 0; i < p->n; i++)
        if (p->weight[i].weight == leaf->attr.leaf.offset && p->weight[i].elements == elements)
            return &p->weight[i];
    return NULL;
}

/* The entry of `p` for the second operand of `n`, if `n` is a matmul with p->rows rows and the
 * operand has a packed copy; else NULL. */
static const struct packed_weight *match(const struct graph *g, const struct node *n,
                                         const struct pass_packing *p)
{
    if (n->op != OP_MATMUL && n->op != OP_LINEAR) return NULL;
    const struct node *leaf = graph_producer(g, n->in[1]);
    if (!is_weight(leaf) || graph_type(g, n->in[1])->rank != 2) return NULL;
    if (n->op == OP_MATMUL && n->attr.matmul.ta) return NULL;
    if (type_rows(graph_type(g, n->in[0])) != p->rows) return NULL;
    return find(p, leaf, type_elements(graph_type(g, n->in[1])));
}

static void pack(const struct graph *in, const struct node *n, const struct packed_weight *w,
                 struct graph *out, value *map)
{
    const struct node *leaf = graph_producer(in, n->in[1]);
    const struct type *a = graph_type(in, n->in[0]), *c = graph_type(in, n->out[0]);
    bool tb = n->op == OP_LINEAR ? n->attr.linear.tb : n->attr.matmul.tb;
    struct type t =
        type_1d(graph_type(in, n->in[1])->dtype, packed_elements(type_columns(a), type_columns(c)));
    union attr attr = n->attr;
    if (n->op == OP_LINEAR)
        attr.linear.packed = type_columns(c);
    else
        attr.matmul.packed = type_columns(c);
    const char *name = arena_printf(out->arena, "%s%s", leaf->scope, tb ? ".transposed" : "");
    value from[MAX_IN] = {map[n->in[0].i], g_leaf_named(out, STORAGE_PACKED, name, t, w->at[tb])};
    pass_inherit_place(out, n);
    if (n->n_in > 2) from[2] = map[n->in[2].i];
    map[n->out[0].i] = graph_add(out, n->op, &attr, n->n_in, from, c);
}

enum status pass_pack(const struct graph *in, struct graph *out, const struct pass_options *o)
{
    const struct packed_weight *w;
    value *map = ARENA_NEW(out->arena, value, in->values);
    for (int id = 0; id < in->nodes; id++) {
        if (o->packing && (w = match(in, &in->node[id], o->packing)))
            pack(in, &in->node[id], w, out, map);
        else
            pass_copy_node(in, id, out, map);
    }
    pass_finish(in, out, map);
    return graph_status(out);
}

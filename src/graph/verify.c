#include "graph/graph.h"

static enum status verify_types(const struct graph *g, int id)
{
    struct node n = g->node[id];
    struct type in[MAX_IN], out[MAX_OUT];
    for (int i = 0; i < n.n_in; i++) in[i] = g->info[n.in[i].i].type;
    int outs = n.n_out;
    TRY(op_def(n.op)->shape(&n, in, &g->info[n.out[0].i].type, out));
    if (n.n_out != outs) return fail(ST_FORMAT, "has %d outputs, its rule gives %d", outs, n.n_out);
    for (int i = 0; i < outs; i++)
        if (!type_same(&out[i], &g->info[n.out[i].i].type)) {
            char a[TYPE_TEXT], b[TYPE_TEXT];
            return fail(ST_FORMAT, "output %d is %s, its rule gives %s", i,
                        type_text(a, &g->info[n.out[i].i].type), type_text(b, &out[i]));
        }
    return ST_OK;
}

struct check {
    const struct graph *g;
    int *leaf;     /* per value: the leaf that owns its bytes, 0 if the value owns them */
    bool *written; /* per leaf: it was overwritten */
    int *state;    /* leaves that can be written */
    int states;
};

static void note_bytes(struct check *c, const struct node *n)
{
    int v = n->out[0].i;
    if (n->op == OP_LEAF) {
        c->leaf[v] = v;
        if (n->attr.leaf.storage != STORAGE_INPUT) c->state[c->states++] = v;
    } else if (op_def(n->op)->flags & OP_VIEW) {
        c->leaf[v] = c->leaf[n->in[0].i];
    }
}

/* Marks every leaf that shares bytes with this one. */
static void note_written(struct check *c, value v)
{
    const struct node *to = graph_producer(c->g, v);
    int64_t first = to->attr.leaf.offset, end = first + type_elements(graph_type(c->g, v));
    for (int i = 0; i < c->states; i++) {
        value other = {c->state[i]};
        const struct node *n = graph_producer(c->g, other);
        int64_t at = n->attr.leaf.offset;
        if (n->attr.leaf.storage == to->attr.leaf.storage && at < end &&
            first < at + type_elements(graph_type(c->g, other)))
            c->written[other.i] = true;
    }
}

static enum status verify_node(struct check *c, int id)
{
    const struct graph *g = c->g;
    const struct node *n = &g->node[id];
    const struct op_def *def = op_def(n->op);
    if (n->n_in < def->least_in || n->n_in > def->most_in)
        return fail(ST_FORMAT, "has %d inputs", n->n_in);
    for (int i = 0; i < n->n_in; i++) {
        value v = n->in[i];
        if (v.i <= 0 || v.i >= g->values) return fail(ST_FORMAT, "input %d is not a value", i);
        if (g->info[v.i].producer >= id) return fail(ST_FORMAT, "input %d is computed later", i);
        if (c->written[c->leaf[v.i]]) return fail(ST_FORMAT, "input %d is already overwritten", i);
    }
    for (int i = 0; i < n->n_out; i++) {
        const struct value_info *info = &g->info[n->out[i].i];
        if (info->producer != id || info->index != i)
            return fail(ST_FORMAT, "output %d belongs to node %d", i, info->producer);
        if (n->out[i].i != n->out[0].i + i) return fail(ST_FORMAT, "outputs are not consecutive");
    }
    for (int i = 0; i < op_writes(n->op); i++) {
        const struct node *leaf = graph_producer(g, n->in[i]);
        if (leaf->op != OP_LEAF || leaf->attr.leaf.storage == STORAGE_INPUT)
            return fail(ST_FORMAT, "writes a value that is not state");
        note_written(c, n->in[i]);
    }
    note_bytes(c, n);
    return verify_types(g, id);
}

enum status graph_verify(const struct graph *g)
{
    TRY(graph_status(g));
    struct arena scratch = {0};
    struct check c = {.g = g,
                      .leaf = ARENA_NEW(&scratch, int, g->values),
                      .written = ARENA_NEW(&scratch, bool, g->values),
                      .state = ARENA_NEW(&scratch, int, g->values)};
    enum status st = ST_OK;
    for (int id = 0; id < g->nodes && st == ST_OK; id++) {
        st = verify_node(&c, id);
        if (st != ST_OK)
            st = fail_in(ST_FORMAT, "node %d %s %s", id, op_def(g->node[id].op)->name,
                         g->node[id].scope);
    }
    for (int i = 0; i < g->outputs && st == ST_OK; i++)
        if (g->output[i].v.i <= 0 || g->output[i].v.i >= g->values)
            st = fail(ST_FORMAT, "output %s is not a value", g->output[i].name);
    arena_release(&scratch);
    return st;
}

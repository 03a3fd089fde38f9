#include "base/checked.h"
#include "graph/graph.h"

#include <stdlib.h>

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

/* A leaf that can be written: elements first ... end - 1 of its storage. */
struct state {
    enum storage storage;
    int64_t first, end;
    int64_t most; /* the largest `end` of this state and earlier states of the same storage */
    int leaf;
};

struct check {
    const struct graph *g;
    int *leaf;           /* per value: the leaf that the value is, or is a view of; 0: none */
    bool *written;       /* per leaf: whether it was overwritten */
    struct state *state; /* sorted by storage and `first` */
    int states;
};

static int by_place(const void *a, const void *b)
{
    const struct state *x = a, *y = b;
    if (x->storage != y->storage) return x->storage < y->storage ? -1 : 1;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->leaf - y->leaf;
}

static struct state state_of(const struct graph *g, const struct node *n)
{
    int64_t first = n->attr.leaf.offset;
    int64_t end = size_add(first, type_elements(graph_type(g, n->out[0])));
    return (struct state){n->attr.leaf.storage, first, end, end, n->out[0].i};
}

/* Sorts the leaves, because a large model has thousands and an update writes most of them. */
static void list_states(struct check *c, struct arena *scratch)
{
    c->state = ARENA_NEW(scratch, struct state, c->g->nodes);
    for (int id = 0; id < c->g->nodes; id++) {
        const struct node *n = &c->g->node[id];
        if (n->op == OP_LEAF && n->attr.leaf.storage != STORAGE_INPUT)
            c->state[c->states++] = state_of(c->g, n);
    }
    qsort(c->state, (size_t)c->states, sizeof *c->state, by_place);
    for (int i = 1; i < c->states; i++)
        if (c->state[i].storage == c->state[i - 1].storage)
            c->state[i].most = max_i64(c->state[i].end, c->state[i - 1].most);
}

static void note_bytes(struct check *c, const struct node *n)
{
    int v = n->out[0].i;
    if (n->op == OP_LEAF) {
        c->leaf[v] = v;
    } else if (op_def(n->op)->flags & OP_VIEW) {
        c->leaf[v] = c->leaf[n->in[0].i];
    }
}

/* The number of states in the list before the first state of `storage` that begins at `first` or
 * later. */
static int states_before(const struct check *c, enum storage storage, int64_t first)
{
    int low = 0, high = c->states;
    while (low < high) {
        int middle = low + (high - low) / 2;
        const struct state *s = &c->state[middle];
        if (s->storage < storage || (s->storage == storage && s->first < first))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Node `id` writes the leaf `v`: marks each leaf that comes before node `id` and shares bytes with
 * `v`. */
static void note_written(struct check *c, value v, int id)
{
    struct state to = state_of(c->g, graph_producer(c->g, v));
    for (int i = states_before(c, to.storage, to.end); i-- > 0;) {
        const struct state *s = &c->state[i];
        if (s->storage != to.storage || s->most <= to.first) break;
        if (to.first < s->end && c->g->info[s->leaf].producer < id) c->written[s->leaf] = true;
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
        note_written(c, n->in[i], id);
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
                      .written = ARENA_NEW(&scratch, bool, g->values)};
    list_states(&c, &scratch);
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

/* On the rung `full`, consecutive pointwise operators that no pattern of `fuse` matched become one
 * operator, CHAIN. Values used only inside a chain are never written to memory.
 *
 * Chains grow in node order: a node joins the chains that produce its inputs. A chain is placed
 * where its last node was. A chain therefore ends where another node uses one of its values, and
 * where state is written, because the chain may read this state. It also ends at the end of a
 * phase, because its inputs would have to be kept for the next phase. Then chains of one scope that
 * read the same tensor are merged, so that the tensor is read once. */
#include "graph/chain.h"

#include "base/str.h"
#include "pass/pass.h"

#include <string.h>

enum { NONE = -1 };

struct link { /* a chain under construction */
    bool closed;
    int member[CHAIN_STEPS], members; /* nodes, in order */
};

struct chaining {
    const struct graph *in;
    struct graph *out;
    value *map;
    int *uses;         /* per value: number of uses as an input or an output */
    struct link *link; /* capacity: one per node */
    int links;
    int *of; /* per node: its link, or NONE */
};

struct interface {
    int ins, outs;
    value in[MAX_IN], out[CHAIN_OUTPUTS];
    bool fits;
};

static bool is_constant(const struct graph *g, value v)
{
    return graph_producer(g, v)->op == OP_FILL;
}

static bool is_member(const struct link *l, int id)
{
    for (int i = 0; i < l->members; i++)
        if (l->member[i] == id) return true;
    return false;
}

static int uses_within(const struct graph *g, const struct link *l, value v)
{
    int n = 0;
    for (int i = 0; i < l->members; i++)
        for (int k = 0; k < g->node[l->member[i]].n_in; k++)
            n += g->node[l->member[i]].in[k].i == v.i;
    return n;
}

static void add_input(struct interface *b, const struct graph *g, const struct link *l, value v)
{
    if (is_constant(g, v) || is_member(l, g->info[v.i].producer)) return;
    for (int i = 0; i < b->ins; i++)
        if (b->in[i].i == v.i) return;
    if (b->ins == MAX_IN)
        b->fits = false;
    else
        b->in[b->ins++] = v;
}

/* How suitable input `v` is as input 0, which determines the shape of the chain. 0: not suitable,
 * because `v` is not float or has another shape; 2: suitable, and output 0 can overwrite `v`; 1:
 * suitable. */
static int rank_of(const struct chaining *c, const struct link *l, value v, value out)
{
    const struct type *t = graph_type(c->in, v), *to = graph_type(c->in, out);
    if (!dtype_is_float(t->dtype) || !type_same_shape(t, to)) return 0;
    return 1 + (t->dtype == to->dtype && uses_within(c->in, l, v) == c->uses[v.i]);
}

static void choose_first_input(const struct chaining *c, const struct link *l, struct interface *b)
{
    int best = 0, rank = 0;
    for (int i = 0; i < b->ins; i++) {
        int r = rank_of(c, l, b->in[i], b->out[0]);
        if (r > rank) best = i, rank = r;
    }
    b->fits &= rank > 0;
    value first = b->in[best];
    memmove(b->in + 1, b->in, (size_t)best * sizeof first);
    b->in[0] = first;
}

static struct interface interface_of(const struct chaining *c, const struct link *l)
{
    struct interface b = {.fits = true};
    int dropouts = 0;
    for (int i = 0; i < l->members; i++) {
        const struct node *n = &c->in->node[l->member[i]];
        dropouts += n->op == OP_DROPOUT;
        for (int k = 0; k < n->n_in; k++) add_input(&b, c->in, l, n->in[k]);
        if (uses_within(c->in, l, n->out[0]) == c->uses[n->out[0].i]) continue;
        if (b.outs == CHAIN_OUTPUTS)
            b.fits = false;
        else
            b.out[b.outs++] = n->out[0];
    }
    b.fits &= dropouts <= CHAIN_DRAWS && b.ins > 0 && b.outs > 0;
    if (b.fits) choose_first_input(c, l, &b);
    return b;
}

/* True if the node can be a step of a chain; some forms of these operators are excluded. */
static bool may_join(const struct graph *g, const struct node *n)
{
    const struct type *t = graph_type(g, n->out[0]);
    if (!chain_operands(n->op) || !dtype_is_float(t->dtype)) return false;
    if (n->op == OP_DROPOUT) return n->attr.drop.pattern == DROPOUT_POINTWISE;
    if (n->op == OP_CAST)
        return dtype_is_float(graph_type(g, n->in[0])->dtype) &&
               graph_type(g, n->in[0])->dtype != t->dtype;
    return !is_constant(g, n->in[0]) || (n->n_in > 1 && !is_constant(g, n->in[1]));
}

static struct link *producer_of(struct chaining *c, value v)
{
    int at = c->of[c->in->info[v.i].producer];
    return at == NONE || c->link[at].closed ? NULL : &c->link[at];
}

/* Merges the nodes of `b` into `a` in order; false if there are too many. */
static bool merged(struct link *a, const struct link *b)
{
    struct link sum = {0};
    if (a->members + b->members > CHAIN_STEPS) return false;
    for (int i = 0, k = 0; i < a->members || k < b->members;) {
        bool first = k == b->members || (i < a->members && a->member[i] < b->member[k]);
        sum.member[sum.members++] = first ? a->member[i++] : b->member[k++];
    }
    *a = sum;
    return true;
}

/* Starts a link with node `id` and merges into it the links that produce its inputs, if they fit
 * together. Closes those links. */
static void join(struct chaining *c, int id)
{
    const struct node *n = &c->in->node[id];
    struct link all = {.member = {id}, .members = 1};
    for (int i = 0; i < n->n_in; i++) {
        struct link *producer = producer_of(c, n->in[i]), trial = all;
        if (!producer || is_member(&all, producer->member[0])) continue;
        const struct type *t = graph_type(c->in, n->out[0]);
        if (type_same_shape(graph_type(c->in, n->in[i]), t) && merged(&trial, producer) &&
            interface_of(c, &trial).fits)
            all = trial;
        producer->closed = true;
    }
    for (int i = 0; i < all.members; i++) c->of[all.member[i]] = c->links;
    c->link[c->links++] = all;
}

static void find_chains(struct chaining *c)
{
    enum phase phase = PHASE_FORWARD;
    for (int id = 0; id < c->in->nodes; id++) {
        const struct node *n = &c->in->node[id];
        c->of[id] = NONE;
        if (n->op == OP_LEAF || n->op == OP_FILL) continue;
        bool ends = op_writes(n->op) || n->phase != phase;
        for (int i = 0; ends && i < c->links; i++) c->link[i].closed = true;
        phase = n->phase;
        if (may_join(c->in, n)) {
            join(c, id);
            continue;
        }
        for (int i = 0; i < n->n_in; i++) {
            struct link *producer = producer_of(c, n->in[i]);
            if (producer) producer->closed = true;
        }
    }
}

static int last_of(const struct link *l)
{
    return l->member[l->members - 1];
}

static bool reads(const struct chaining *c, const struct link *l, value v)
{
    return !is_constant(c->in, v) && !is_member(l, c->in->info[v.i].producer) &&
           uses_within(c->in, l, v) > 0;
}

/* True if the two links have one shape and read the same tensor of this shape. */
static bool read_same(const struct chaining *c, const struct link *l, const struct link *m)
{
    const struct type *t = graph_type(c->in, c->in->node[last_of(l)].out[0]);
    if (!type_same_shape(t, graph_type(c->in, c->in->node[last_of(m)].out[0]))) return false;
    for (int i = 0; i < l->members; i++) {
        const struct node *n = &c->in->node[l->member[i]];
        for (int k = 0; k < n->n_in; k++)
            if (type_same_shape(graph_type(c->in, n->in[k]), t) && reads(c, l, n->in[k]) &&
                reads(c, m, n->in[k]))
                return true;
    }
    return false;
}

/* True if the link can be placed at node `id` instead of at its last node. */
static bool may_move(const struct chaining *c, const struct link *l, int id)
{
    const struct node *last = &c->in->node[last_of(l)];
    for (int at = last_of(l) + 1; at <= id; at++) {
        const struct node *n = &c->in->node[at];
        if (op_writes(n->op) || n->phase != last->phase) return false;
        for (int i = 0; i < n->n_in; i++)
            if (is_member(l, c->in->info[n->in[i].i].producer)) return false;
    }
    const struct node *n = &c->in->node[id];
    return n->layer == last->layer && n->region == last->region && str_same(n->scope, last->scope);
}

/* Merges each link with preceding links that read the same tensor. */
static void join_readers(struct chaining *c)
{
    enum { WINDOW = 16 }; /* nodes; a wider window would keep more tensors alive longer */
    for (int id = 0; id < c->in->nodes; id++) {
        if (c->of[id] == NONE || last_of(&c->link[c->of[id]]) != id) continue;
        for (int at = id - 1; at >= 0 && at >= id - WINDOW; at--) {
            struct link *l = &c->link[c->of[id]];
            if (c->of[at] == NONE || c->of[at] == c->of[id]) continue;
            const struct link *other = &c->link[c->of[at]];
            struct link both = *l;
            if (last_of(other) != at || !read_same(c, l, other) || !may_move(c, other, id) ||
                !merged(&both, other) || !interface_of(c, &both).fits)
                continue;
            *l = both;
            for (int i = 0; i < both.members; i++) c->of[both.member[i]] = c->of[id];
        }
    }
}

static struct chain_operand operand_of(const struct chaining *c, const struct link *l,
                                       const struct interface *b, value v)
{
    const struct node *n = graph_producer(c->in, v);
    if (n->op == OP_FILL) return (struct chain_operand){CHAIN_CONSTANT, 0, n->attr.constant.value};
    for (int k = 0; k < l->members; k++)
        if (&c->in->node[l->member[k]] == n) return (struct chain_operand){CHAIN_RESULT, k, 0};
    int i = 0;
    while (b->in[i].i != v.i) i++;
    return (struct chain_operand){CHAIN_INPUT, i, 0};
}

static const struct chain *program_of(const struct chaining *c, const struct link *l,
                                      const struct interface *b)
{
    struct chain *chain = ARENA_NEW(c->out->arena, struct chain, 1);
    chain->shape = *graph_type(c->in, b->out[0]);
    chain->steps = l->members;
    for (int k = 0; k < l->members; k++) {
        const struct node *n = &c->in->node[l->member[k]];
        struct chain_step *s = &chain->step[k];
        *s = (struct chain_step){
            .op = n->op, .attr = n->attr, .to = graph_type(c->in, n->out[0])->dtype};
        for (int i = 0; i < n->n_in; i++) s->operand[i] = operand_of(c, l, b, n->in[i]);
        for (int o = 0; o < b->outs; o++)
            if (b->out[o].i == n->out[0].i) chain->output[chain->outputs++] = k;
    }
    return chain;
}

static void append(const struct chaining *c, const struct link *l)
{
    struct interface b = interface_of(c, l);
    union attr attr = {.chain = program_of(c, l, &b)};
    value in[MAX_IN];
    for (int i = 0; i < b.ins; i++) in[i] = c->map[b.in[i].i];
    pass_inherit_place(c->out, &c->in->node[l->member[l->members - 1]]);
    value first = graph_add(c->out, OP_CHAIN, &attr, b.ins, in, NULL);
    for (int i = 0; i < b.outs; i++) c->map[b.out[i].i] = graph_out(first, i);
}

enum status pass_chain(const struct graph *in, struct graph *out, const struct pass_options *o)
{
    struct graph live = *in;
    struct chaining c = {.in = &live, .out = out};
    if (o->rung == RUNG_FULL) { /* dead code that uses a value would end a chain */
        graph_init(&live, in->arena);
        TRY(pass_dead_code(in, &live, o));
    }
    c.map = ARENA_NEW(out->arena, value, live.values);
    c.uses = ARENA_NEW(out->arena, int, live.values);
    c.link = ARENA_NEW(out->arena, struct link, live.nodes);
    c.of = ARENA_NEW(out->arena, int, live.nodes);
    for (int id = 0; id < live.nodes; id++)
        for (int i = 0; i < live.node[id].n_in; i++) c.uses[live.node[id].in[i].i]++;
    for (int i = 0; i < live.outputs; i++) c.uses[live.output[i].v.i]++;
    if (o->rung == RUNG_FULL) {
        find_chains(&c);
        join_readers(&c);
    }
    for (int id = 0; id < live.nodes; id++) {
        const struct link *l = o->rung == RUNG_FULL && c.of[id] != NONE ? &c.link[c.of[id]] : NULL;
        if (!l || l->members < 2)
            pass_copy_node(&live, id, out, c.map);
        else if (id == l->member[l->members - 1])
            append(&c, l);
    }
    pass_finish(&live, out, c.map);
    return graph_status(out);
}

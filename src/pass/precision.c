/* Assigns the type of each value.
 *
 * In double precision, which checks of gradients against finite differences use, every float value
 * becomes a double. In mixed precision (Micikevicius et al., arXiv 1710.03740) matmuls, attention
 * and the values between them are bf16; weights and their gradients, row statistics, the loss, the
 * optimizer and all sums are f32. Below the rung `full`, CAST nodes convert the inputs of an
 * operator that computes in f32, and further CASTs convert its results for operators that compute
 * in bf16, like autocast in an eager framework. At `full` such operators read and write bf16 and
 * compute in f32, and the optimizer keeps a bf16 copy of the weights. */
#include "graph/build.h"
#include "pass/pass.h"

struct precision {
    const struct graph *in;
    struct graph *out;
    const struct pass_options *options;
    bool full;
    value *map;            /* per value of `in`: its new value, in the type of its producer */
    value *cast[DT_COUNT]; /* cast[t], per value of `in`: its new value, cast to type t */
};

static enum dtype dtype_at(const struct precision *p, value old)
{
    return graph_type(p->out, p->map[old.i])->dtype;
}

/* The bf16 copy that the optimizer keeps, if `old` is a whole parameter; else no value. */
static value copy_of(const struct precision *p, value old)
{
    const struct node *leaf = graph_producer(p->in, old);
    if (!p->full || p->options->units.n || leaf->op != OP_LEAF ||
        leaf->attr.leaf.storage != STORAGE_WEIGHTS)
        return (value){0};
    struct type t = *graph_type(p->in, old);
    t.dtype = DT_BF16;
    return g_leaf_named(p->out, STORAGE_COPY, leaf->scope, t, leaf->attr.leaf.offset);
}

/* The new value of `old`, cast to `dtype`; integers are not cast. */
static value in_type(struct precision *p, value old, enum dtype dtype)
{
    enum dtype now = dtype_at(p, old);
    if (now == dtype || !dtype_is_float(now)) return p->map[old.i];
    value *known = &p->cast[dtype][old.i];
    if (!known->i && dtype == DT_BF16) *known = copy_of(p, old);
    if (!known->i) *known = g_cast(p->out, p->map[old.i], dtype);
    return *known;
}

static enum dtype wider(const struct precision *p, const struct node *n)
{
    enum dtype a = dtype_at(p, n->in[0]), b = dtype_at(p, n->in[1]);
    enum broadcast how = type_broadcast(graph_type(p->in, n->in[0]), graph_type(p->in, n->in[1]));
    bool repeated = how == BROADCAST_TRAILING || how == BROADCAST_SCALAR;
    return repeated || a == b ? a : DT_F32;
}

/* The type of the first float input; of the first input if there is no float input. */
static enum dtype input_type(const struct precision *p, const struct node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (dtype_is_float(dtype_at(p, n->in[i]))) return dtype_at(p, n->in[i]);
    return dtype_at(p, n->in[0]);
}

/* The type to which the float inputs of `n` are cast, except inputs that stay f32. */
static enum dtype work_type(const struct precision *p, const struct node *n)
{
    switch (op_def(n->op)->policy) {
    case POLICY_F32:
        return DT_F32;
    case POLICY_BF16:
        return DT_BF16;
    case POLICY_AS_INPUT:
        return input_type(p, n);
    case POLICY_WIDER:
        return wider(p, n);
    case POLICY_ROWS:
        return p->full ? DT_BF16 : DT_F32;
    }
    return DT_F32;
}

/* True for gradients of parameters, whose results are f32. These gradients are sums over rows:
 * matmuls of two activations with the first transposed, sums over leading dimensions,
 * EMBED_GRAD. */
static bool is_parameter_gradient(const struct graph *g, const struct node *n)
{
    if (n->op == OP_MATMUL) return n->attr.matmul.ta && graph_type(g, n->out[0])->rank == 2;
    return n->op == OP_SUM_LEADING || n->op == OP_EMBED_GRAD;
}

/* True if the bias of a linear layer is read from the optimizer's bf16 copy, because the fused
 * kernel of the library accepts a bias only in the type of the operands. */
static bool narrows_bias(const struct precision *p, const struct node *n)
{
    const struct pass_kernels *k = p->options->kernels;
    if (n->op != OP_LINEAR || !p->full || !k) return false;
    if (graph_producer(p->in, n->in[2])->op != OP_LEAF) return false;
    struct type in[MAX_IN], out = *graph_type(p->in, n->out[0]);
    for (int i = 0; i < n->n_in; i++) {
        in[i] = *graph_type(p->in, n->in[i]);
        in[i].dtype = DT_BF16;
    }
    out.dtype = DT_BF16;
    return k->is_faster(k->who, n, in, &out);
}

/* True if `old` is a summed gradient in bf16, which the update reads without a cast. */
static bool is_reduced(const struct precision *p, value old)
{
    const struct node *leaf = graph_producer(p->in, old);
    return p->full && leaf->op == OP_LEAF && leaf->attr.leaf.storage == STORAGE_REDUCED;
}

static void mixed(struct precision *p, int id)
{
    const struct node *n = &p->in->node[id];
    enum dtype work = work_type(p, n);
    struct type given = *graph_type(p->in, n->out[0]);
    value from[MAX_IN];
    pass_inherit_place(p->out, n);
    unsigned f32_inputs = narrows_bias(p, n) ? 0 : op_def(n->op)->f32_inputs;
    for (int i = 0; i < n->n_in; i++) {
        bool stays_f32 = f32_inputs >> i & 1;
        from[i] = is_reduced(p, n->in[i]) ? p->map[n->in[i].i]
                                          : in_type(p, n->in[i], stays_f32 ? DT_F32 : work);
    }
    if (n->n_in && dtype_is_float(given.dtype))
        given.dtype = is_parameter_gradient(p->in, n) ? DT_F32 : work;
    if (n->op == OP_DROPOUT_MASK || n->op == OP_CAST) given = *graph_type(p->in, n->out[0]);
    value first = graph_add(p->out, n->op, &n->attr, n->n_in, from, &given);
    for (int i = 0; i < n->n_out; i++) p->map[n->out[i].i] = graph_out(first, i);
}

static enum status mix(const struct graph *in, struct graph *out, const struct pass_options *o)
{
    struct precision p = {.in = in, .out = out, .options = o, .full = o->rung == RUNG_FULL};
    p.map = ARENA_NEW(out->arena, value, in->values);
    for (int i = 0; i < DT_COUNT; i++) p.cast[i] = ARENA_NEW(out->arena, value, in->values);
    for (int id = 0; id < in->nodes; id++) {
        if (graph_status(out) != ST_OK) break;
        if (in->node[id].op == OP_LEAF || in->node[id].op == OP_FILL)
            pass_copy_node(in, id, out, p.map);
        else
            mixed(&p, id);
    }
    TRY(graph_status(out));
    for (int i = 0; i < in->outputs; i++) /* outputs keep the type that the model defined */
        p.map[in->output[i].v.i] =
            in_type(&p, in->output[i].v, graph_type(in, in->output[i].v)->dtype);
    pass_finish(in, out, p.map);
    return graph_status(out);
}

static enum status widen(const struct graph *in, struct graph *out)
{
    value *map = ARENA_NEW(out->arena, value, in->values);
    for (int id = 0; id < in->nodes; id++) {
        const struct node *n = &in->node[id];
        struct type given = in->info[n->out[0].i].type;
        if (given.dtype == DT_F32) given.dtype = DT_F64;
        value from[MAX_IN];
        for (int i = 0; i < n->n_in; i++) from[i] = map[n->in[i].i];
        pass_inherit_place(out, n);
        value first = graph_add(out, n->op, &n->attr, n->n_in, from, &given);
        for (int i = 0; i < n->n_out; i++) map[n->out[i].i] = graph_out(first, i);
    }
    pass_finish(in, out, map);
    return graph_status(out);
}

enum status pass_precision(const struct graph *in, struct graph *out, const struct pass_options *o)
{
    if (o->compute == DT_F64) return widen(in, out);
    if (o->compute == DT_BF16) return mix(in, out, o);
    value *map = ARENA_NEW(out->arena, value, in->values);
    for (int id = 0; id < in->nodes; id++) pass_copy_node(in, id, out, map);
    pass_finish(in, out, map);
    return graph_status(out);
}

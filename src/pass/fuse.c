/* Fuses neighboring operators on the rung `full`.
 *
 * A matcher looks at the last node of its pattern. If the whole pattern is present, the matcher
 * appends the fused operator to `out` and maps the outputs of every node that it replaces. These
 * values are then computed at the last node, so no earlier node may use them
 * (fuse_unused_between). */
#include "pass/fuse.h"
#include "graph/build.h"

#include <math.h>

static bool used_between(const struct graph *g, value v, int after, int before)
{
    for (int id = after + 1; id < before; id++)
        for (int i = 0; i < g->node[id].n_in; i++)
            if (g->node[id].in[i].i == v.i) return true;
    return false;
}

bool fuse_unused_between(const struct fuse *f, const struct node *n, int id)
{
    for (int i = 0; i < n->n_out; i++)
        if (used_between(f->in, n->out[i], (int)(n - f->in->node), id)) return false;
    return true;
}

static const struct node *producer_with_op(const struct fuse *f, value v, enum op op)
{
    const struct node *n = graph_producer(f->in, v);
    return n->op == op ? n : NULL;
}

const struct node *fuse_sole_use(const struct fuse *f, value v, enum op op)
{
    return f->uses[v.i] == 1 ? producer_with_op(f, v, op) : NULL;
}

static bool same_shape(const struct fuse *f, value a, value b)
{
    return type_same_shape(graph_type(f->in, a), graph_type(f->in, b));
}

static void replace(struct fuse *f, const struct node *old, int from, value first)
{
    for (int i = 0; from + i < old->n_out; i++) f->map[old->out[from + i].i] = graph_out(first, i);
}

/* layernorm(a + [dropout](b)) -> add_layernorm: sum, y, mean, rstd */
static bool add_layernorm(struct fuse *f, int id)
{
    const struct node *norm = &f->in->node[id], *add, *drop;
    if (norm->op != OP_LAYERNORM || !(add = producer_with_op(f, norm->in[0], OP_ADD))) return false;
    if (!f->step.i || !same_shape(f, add->in[0], add->in[1]) || !fuse_unused_between(f, add, id))
        return false;
    union attr attr = norm->attr;
    value branch = add->in[1];
    if ((drop = fuse_sole_use(f, branch, OP_DROPOUT)) &&
        drop->attr.drop.pattern == DROPOUT_POINTWISE) {
        attr.norm.drop = drop->attr.drop;
        branch = drop->in[0];
    }
    value in[5] = {mapped(f, add->in[0]), mapped(f, branch), f->step, mapped(f, norm->in[1])};
    if (norm->n_in == 3) in[4] = mapped(f, norm->in[2]);
    value first = graph_add(f->out, OP_ADD_LAYERNORM, &attr, norm->n_in + 2, in, NULL);
    replace(f, add, 0, first);
    replace(f, norm, 0, graph_out(first, 1));
    return true;
}

/* rmsnorm(a + b) -> add_rmsnorm: sum, y, 1 / rms */
static bool add_rmsnorm(struct fuse *f, int id)
{
    const struct node *norm = &f->in->node[id], *add;
    if (norm->op != OP_RMSNORM || !(add = producer_with_op(f, norm->in[0], OP_ADD))) return false;
    if (!same_shape(f, add->in[0], add->in[1]) || !fuse_unused_between(f, add, id)) return false;
    value in[] = {mapped(f, add->in[0]), mapped(f, add->in[1]), mapped(f, norm->in[1])};
    value first = graph_add(f->out, OP_ADD_RMSNORM, &norm->attr, 3, in, NULL);
    replace(f, add, 0, first);
    replace(f, norm, 0, graph_out(first, 1));
    return true;
}

/* The first node after `id` that applies pointwise dropout to `v`, or NULL. */
static const struct node *dropped_later(const struct fuse *f, value v, int id)
{
    for (int later = id + 1; f->step.i && later < f->in->nodes; later++) {
        const struct node *n = &f->in->node[later];
        if (n->op == OP_DROPOUT && n->in[0].i == v.i && n->attr.drop.threshold &&
            n->attr.drop.pattern == DROPOUT_POINTWISE)
            return n;
    }
    return NULL;
}

/* residual gradient + gradient of a norm -> layernorm_grad_add or rmsnorm_grad_add, or
 * layernorm_grad_drop if dropout is applied to the sum */
static bool norm_grad_add(struct fuse *f, int id)
{
    const struct node *add = &f->in->node[id], *grad, *drop = NULL;
    if (add->op != OP_ADD) return false;
    bool rms = (grad = fuse_sole_use(f, add->in[1], OP_RMSNORM_GRAD));
    if (!rms && !(grad = fuse_sole_use(f, add->in[1], OP_LAYERNORM_GRAD))) return false;
    if (add->in[1].i != grad->out[0].i || !same_shape(f, add->in[0], add->in[1])) return false;
    if (!fuse_unused_between(f, grad, id)) return false;
    value in[7] = {mapped(f, add->in[0])};
    for (int i = 0; i < grad->n_in; i++) in[i + 1] = mapped(f, grad->in[i]);
    if (!rms) drop = dropped_later(f, add->out[0], id);
    if (drop) {
        union attr attr = grad->attr;
        attr.norm.drop = drop->attr.drop;
        in[6] = f->step;
        if (pass_kernel_is_faster(f->options, f->out, OP_LAYERNORM_GRAD_DROP, &attr, 7, in, NULL)) {
            value first = graph_add(f->out, OP_LAYERNORM_GRAD_DROP, &attr, 7, in, NULL);
            f->map[add->out[0].i] = f->map[grad->out[0].i] = first;
            f->dropped[drop->out[0].i] = graph_out(first, 1);
            replace(f, grad, 1, graph_out(first, 2));
            return true;
        }
    }
    enum op op = rms ? OP_RMSNORM_GRAD_ADD : OP_LAYERNORM_GRAD_ADD;
    value first = graph_add(f->out, op, &grad->attr, grad->n_in + 1, in, NULL);
    replace(f, grad, 0, first);
    replace(f, add, 0, first);
    return true;
}

/* gradient of the tied output head + embed_grad of the token table -> embed_grad_add */
static bool embed_grad_add(struct fuse *f, int id)
{
    const struct node *add = &f->in->node[id];
    if (add->op != OP_ADD || !same_shape(f, add->in[0], add->in[1])) return false;
    for (int i = 0; i < 2; i++) {
        const struct node *grad = fuse_sole_use(f, add->in[i], OP_EMBED_GRAD);
        if (!grad || graph_type(f->in, add->in[0])->rank != 2 || !fuse_unused_between(f, grad, id))
            continue;
        value in[] = {mapped(f, add->in[1 - i]), mapped(f, grad->in[0]), mapped(f, grad->in[1])};
        replace(f, add, 0, graph_add(f->out, OP_EMBED_GRAD_ADD, NULL, 3, in, NULL));
        return true;
    }
    return false;
}

/* embed_grad of rows summed over sequences that have the same ids -> embed_grad_sum */
static bool embed_grad_sum(struct fuse *f, int id)
{
    const struct node *grad = &f->in->node[id], *sum;
    if (grad->op != OP_EMBED_GRAD || !(sum = fuse_sole_use(f, grad->in[1], OP_SUM_LEADING)))
        return false;
    const struct type *dy = graph_type(f->in, sum->in[0]);
    if (graph_type(f->in, grad->in[0])->rank != 1 || graph_type(f->in, sum->out[0])->rank != 2 ||
        dy->rank < 3 || !fuse_unused_between(f, sum, id))
        return false;
    const struct type *table = graph_type(f->in, grad->out[0]);
    union attr attr = {.table = {table->dim[0]}};
    value in[] = {mapped(f, grad->in[0]), mapped(f, sum->in[0])};
    replace(f, grad, 0, graph_add(f->out, OP_EMBED_GRAD_SUM, &attr, 2, in, table));
    return true;
}

/* dropout of a gradient -> the output of the layernorm_grad_drop that has computed this dropout */
static bool dropped_gradient(struct fuse *f, int id)
{
    value v = f->in->node[id].out[0];
    if (f->in->node[id].op != OP_DROPOUT || !f->dropped[v.i].i) return false;
    f->map[v.i] = f->dropped[v.i];
    return true;
}

/* True if a later node with the operator `op` and of the same phase uses `v`. Recomputed copies of
 * `v` have their own consumers, so nodes of other phases do not count. */
static bool followed_by(const struct fuse *f, value v, enum op op)
{
    const struct node *n = graph_producer(f->in, v), *end = f->in->node + f->in->nodes;
    for (const struct node *later = n + 1; later < end; later++)
        if (later->op == op && later->in[0].i == v.i && later->phase == n->phase) return true;
    return false;
}

/* [dropout](softmax([causal mask](scale(scores)))) -> score_softmax: p [, dropped p] */
static bool score_softmax(struct fuse *f, int id)
{
    const struct node *last = &f->in->node[id], *softmax = last, *mask, *scale;
    union attr attr = {0};
    if (last->op == OP_DROPOUT && last->attr.drop.pattern == DROPOUT_ATTENTION &&
        last->attr.drop.threshold) {
        softmax = producer_with_op(f, last->in[0], OP_SOFTMAX);
        attr.score.drop = last->attr.drop;
        if (!softmax || !fuse_unused_between(f, softmax, id)) return false;
    } else if (last->op != OP_SOFTMAX || followed_by(f, last->out[0], OP_DROPOUT)) {
        return false;
    }
    value x = softmax->in[0];
    if ((mask = fuse_sole_use(f, x, OP_CAUSAL_MASK)) && isinf(mask->attr.constant.value)) {
        attr.score.causal = true;
        x = mask->in[0];
    }
    if (!f->step.i || !(scale = fuse_sole_use(f, x, OP_SCALE))) return false;
    attr.score.scale = scale->attr.constant.value;
    const struct type *t = graph_type(f->in, scale->in[0]);
    if (t->rank != 4 || t->dim[2] != t->dim[3]) return false;
    value first = graph_add(f->out, OP_SCORE_SOFTMAX, &attr, 2,
                            (value[]){mapped(f, scale->in[0]), f->step}, NULL);
    replace(f, softmax, 0, first);
    if (last != softmax) replace(f, last, 0, graph_out(first, 1));
    return true;
}

/* scale([mask](softmax_grad([dropout](d), p))) -> score_softmax_grad */
static bool score_softmax_grad(struct fuse *f, int id)
{
    const struct node *scale = &f->in->node[id], *mask, *grad, *drop;
    union attr attr = {0};
    if (scale->op != OP_SCALE || !f->step.i) return false;
    value x = scale->in[0];
    if ((mask = fuse_sole_use(f, x, OP_CAUSAL_MASK)) && mask->attr.constant.value == 0) {
        attr.score.causal = true;
        x = mask->in[0];
    }
    if (!(grad = fuse_sole_use(f, x, OP_SOFTMAX_GRAD))) return false;
    value d = grad->in[0];
    if ((drop = fuse_sole_use(f, d, OP_DROPOUT)) && drop->attr.drop.pattern == DROPOUT_ATTENTION) {
        attr.score.drop = drop->attr.drop;
        d = drop->in[0];
    }
    attr.score.scale = scale->attr.constant.value;
    const struct type *t = graph_type(f->in, d);
    if (t->rank != 4 || t->dim[2] != t->dim[3]) return false;
    value in[] = {mapped(f, d), mapped(f, grad->in[1]), f->step};
    replace(f, scale, 0, graph_add(f->out, OP_SCORE_SOFTMAX_GRAD, &attr, 3, in, NULL));
    return true;
}

/* cross_entropy and its gradient -> cross_entropy_both, which reads the logits once */
static bool cross_entropy_both(struct fuse *f, int id)
{
    const struct node *grad = &f->in->node[id], *loss;
    if (grad->op != OP_CROSS_ENTROPY_GRAD ||
        !(loss = fuse_sole_use(f, grad->in[2], OP_CROSS_ENTROPY)))
        return false;
    if (f->uses[loss->out[0].i] || loss->in[0].i != grad->in[0].i) return false;
    value in[] = {mapped(f, grad->in[0]), mapped(f, grad->in[1]), mapped(f, grad->in[3])};
    value first = graph_add(f->out, OP_CROSS_ENTROPY_BOTH, &grad->attr, 3, in, NULL);
    f->map[grad->out[0].i] = first;
    f->map[loss->out[0].i] = graph_out(first, 1);
    return true;
}

/* [dropout](embed(tokens) + embed(positions)) -> embed_sum */
static bool embed_sum(struct fuse *f, int id)
{
    const struct node *last = &f->in->node[id], *add = last, *token, *position;
    union attr attr = {0};
    if (last->op == OP_DROPOUT && last->attr.drop.pattern == DROPOUT_POINTWISE) {
        attr.drop = last->attr.drop;
        if (!(add = fuse_sole_use(f, last->in[0], OP_ADD))) return false;
    } else if (last->op != OP_ADD || followed_by(f, last->out[0], OP_DROPOUT)) {
        return false;
    }
    if (!f->step.i || !(token = fuse_sole_use(f, add->in[0], OP_EMBED)) ||
        !(position = fuse_sole_use(f, add->in[1], OP_EMBED)))
        return false;
    if (graph_type(f->in, position->in[1])->rank != 1) return false;
    value in[] = {mapped(f, token->in[0]), mapped(f, token->in[1]), mapped(f, position->in[0]),
                  mapped(f, position->in[1]), f->step};
    const struct type *given = graph_type(f->in, last->out[0]);
    replace(f, last, 0, graph_add(f->out, OP_EMBED_SUM, &attr, 5, in, given));
    return true;
}

/* gelu(x), if its gradient is needed later -> gelu_both: one exponential serves the value and the
 * slope. GELU_BOTH writes the slope, which the gradient would otherwise recompute, so memory-bound
 * kernels are not faster. If the GELU is recomputed, only the recomputed node is fused, so that no
 * slope is kept across the forward pass. */
static bool gelu_both(struct fuse *f, int id)
{
    const struct node *gelu = &f->in->node[id];
    if (gelu->op != OP_GELU) return false;
    for (int later = id + 1; later < f->in->nodes; later++) {
        const struct node *grad = &f->in->node[later];
        if (grad->op == OP_GELU && grad->in[0].i == gelu->in[0].i) return false;
        if (grad->op != OP_GELU_GRAD || grad->in[1].i != gelu->in[0].i) continue;
        if (grad->attr.gelu.tanh != gelu->attr.gelu.tanh) continue;
        value x = mapped(f, gelu->in[0]);
        if (f->options->kernels &&
            !pass_kernel_is_faster(f->options, f->out, OP_GELU_BOTH, &gelu->attr, 1, &x, NULL))
            return false;
        value first = graph_add(f->out, OP_GELU_BOTH, &gelu->attr, 1, &x, NULL);
        replace(f, gelu, 0, first);
        f->slope[gelu->in[0].i] = graph_out(first, 1);
        return true;
    }
    return false;
}

static bool gelu_grad(struct fuse *f, int id)
{
    const struct node *grad = &f->in->node[id];
    if (grad->op != OP_GELU_GRAD || !f->slope[grad->in[1].i].i) return false;
    const struct node *both = graph_producer(f->out, f->slope[grad->in[1].i]);
    if (both->attr.gelu.tanh != grad->attr.gelu.tanh) return false;
    replace(f, grad, 0, g_mul(f->out, mapped(f, grad->in[0]), f->slope[grad->in[1].i]));
    return true;
}

static bool (*const matchers[])(struct fuse *, int) = {
    add_layernorm,         norm_grad_add,    embed_grad_sum,     embed_grad_add,
    add_rmsnorm,           score_softmax,    score_softmax_grad, cross_entropy_both,
    dropped_gradient,      embed_sum,        fuse_linear_gelu,   gelu_both,
    fuse_matmul_gelu_grad, gelu_grad,        fuse_quantize,      fuse_quantize_norm,
    fuse_matmul_sum,       fuse_sum_squares, fuse_update,        fuse_update_copy,
};

static bool match(struct fuse *f, int id)
{
    for (int i = 0; i < COUNT_OF(matchers); i++)
        if (matchers[i](f, id)) return true;
    return false;
}

/* First removes dead code, such as the log-sum-exp of slow attention, because its uses of values
 * would prevent matches. */
enum status pass_fuse(const struct graph *in, struct graph *out, const struct pass_options *o)
{
    struct graph live = *in;
    if (o->rung == RUNG_FULL) {
        graph_init(&live, in->arena);
        TRY(pass_dead_code(in, &live, o));
        in = &live;
    }
    struct fuse f = {
        .options = o, .in = in, .out = out, .map = ARENA_NEW(out->arena, value, in->values)};
    f.uses = ARENA_NEW(out->arena, int, in->values);
    f.slope = ARENA_NEW(out->arena, value, in->values);
    f.dropped = ARENA_NEW(out->arena, value, in->values);
    for (int id = 0; id < in->nodes; id++)
        for (int i = 0; i < in->node[id].n_in; i++) f.uses[in->node[id].in[i].i]++;
    value step = graph_find_leaf(in, STORAGE_INPUT, "step");
    for (int id = 0; id < in->nodes; id++) {
        pass_inherit_place(out, &in->node[id]);
        if (o->rung != RUNG_FULL || !match(&f, id)) pass_copy_node(in, id, out, f.map);
        if (step.i && id == in->info[step.i].producer) f.step = f.map[step.i];
    }
    pass_finish(in, out, f.map);
    return graph_status(out);
}

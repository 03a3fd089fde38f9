/* Fuses a matmul with a neighboring pointwise operator or sum, and QUANTIZE with the GELU or norm
 * that it reads, if the target has a fused kernel that is faster. */
#include "pass/fuse.h"

/* gelu(linear(x)) -> linear_gelu: y [, linear(x), if the gradient needs it] */
bool fuse_linear_gelu(struct fuse *f, int id)
{
    const struct node *gelu = &f->in->node[id];
    if (gelu->op != OP_GELU) return false;
    const struct node *matmul = graph_producer(f->in, gelu->in[0]);
    bool plain = matmul->op == OP_MATMUL && !matmul->attr.matmul.ta;
    if ((!plain && matmul->op != OP_LINEAR) || !fuse_unused_between(f, matmul, id)) return false;
    if (graph_type(f->in, matmul->in[1])->rank != 2) return false;
    union attr attr = matmul->attr;
    if (plain) attr = (union attr){.linear = {.tb = matmul->attr.matmul.tb}};
    attr.linear.tanh = gelu->attr.gelu.tanh;
    attr.linear.keep = f->uses[matmul->out[0].i] > 1;
    value in[3] = {{0}};
    for (int i = 0; i < matmul->n_in; i++) in[i] = mapped(f, matmul->in[i]);
    const struct type *t = graph_type(f->in, matmul->out[0]);
    f->out->numerics = matmul->numerics;
    if (!pass_kernel_is_faster(f->options, f->out, OP_LINEAR_GELU, &attr, matmul->n_in, in, t))
        return false;
    value first = graph_add(f->out, OP_LINEAR_GELU, &attr, matmul->n_in, in, t);
    f->map[gelu->out[0].i] = first;
    if (attr.linear.keep) f->map[matmul->out[0].i] = graph_out(first, 1);
    return true;
}

/* gelu_grad(matmul(dy, w), x) -> matmul_gelu_grad, unless GELU_BOTH has computed the slope */
bool fuse_matmul_gelu_grad(struct fuse *f, int id)
{
    const struct node *grad = &f->in->node[id], *matmul;
    if (grad->op != OP_GELU_GRAD || f->slope[grad->in[1].i].i) return false;
    if (!(matmul = fuse_sole_use(f, grad->in[0], OP_MATMUL)) || matmul->attr.matmul.ta)
        return false;
    union attr attr = matmul->attr;
    attr.matmul.tanh = grad->attr.gelu.tanh;
    value in[] = {mapped(f, matmul->in[0]), mapped(f, matmul->in[1]), mapped(f, grad->in[1])};
    const struct type *t = graph_type(f->in, matmul->out[0]);
    f->out->numerics = matmul->numerics;
    if (!pass_kernel_is_faster(f->options, f->out, OP_MATMUL_GELU_GRAD, &attr, 3, in, t))
        return false;
    f->map[grad->out[0].i] = graph_add(f->out, OP_MATMUL_GELU_GRAD, &attr, 3, in, t);
    return true;
}

/* quantize(gelu(x)) -> quantize_gelu; quantize(gelu_grad(dy, x)) -> quantize_gelu_grad; only if
 * nothing else reads the result of gelu or gelu_grad */
bool fuse_quantize(struct fuse *f, int id)
{
    const struct node *n = &f->in->node[id], *gelu;
    if (n->op != OP_QUANTIZE) return false;
    bool grad = graph_producer(f->in, n->in[1])->op == OP_GELU_GRAD;
    gelu = fuse_sole_use(f, n->in[1], grad ? OP_GELU_GRAD : OP_GELU);
    if (!gelu || (grad && f->slope[gelu->in[1].i].i)) return false;
    enum op op = grad ? OP_QUANTIZE_GELU_GRAD : OP_QUANTIZE_GELU;
    union attr attr = n->attr;
    attr.quantize.tanh = gelu->attr.gelu.tanh;
    value in[4] = {mapped(f, n->in[0]), mapped(f, gelu->in[0]), mapped(f, n->in[2])};
    if (grad) in[3] = mapped(f, gelu->in[1]);
    if (!pass_kernel_is_faster(f->options, f->out, op, &attr, grad ? 4 : 3, in, NULL)) return false;
    value first = graph_add(f->out, op, &attr, grad ? 4 : 3, in, NULL);
    for (int i = 0; i < n->n_out; i++) f->map[n->out[i].i] = graph_out(first, i);
    return true;
}

static bool is_read(const struct graph *g, const struct node *n)
{
    for (const struct node *later = n + 1; later < g->node + g->nodes; later++)
        for (int i = 0; i < later->n_in; i++)
            if (graph_producer(g, later->in[i]) == n) return true;
    return false;
}

/* quantize(add_layernorm(a, b)) -> quantize_add_layernorm, if only QUANTIZE reads the norm's
 * result. The new node computes all values of ADD_LAYERNORM, which becomes dead code. */
bool fuse_quantize_norm(struct fuse *f, int id)
{
    const struct node *n = &f->in->node[id], *norm, *made;
    if (n->op != OP_QUANTIZE || !(norm = fuse_sole_use(f, n->in[1], OP_LAYERNORM))) return false;
    made = graph_producer(f->out, mapped(f, norm->out[0]));
    if (made->op != OP_ADD_LAYERNORM || is_read(f->out, made)) return false;
    union attr attr = n->attr;
    attr.quantize.eps = made->attr.norm.eps;
    attr.quantize.drop = made->attr.norm.drop;
    value in[6] = {mapped(f, n->in[0]), made->in[0], mapped(f, n->in[2]), made->in[1], made->in[3]};
    if (made->n_in == 5) in[5] = made->in[4];
    int ins = made->n_in + 1;
    if (!pass_kernel_is_faster(f->options, f->out, OP_QUANTIZE_ADD_LAYERNORM, &attr, ins, in, NULL))
        return false;
    pass_inherit_place(f->out, norm); /* tables show the name of the norm */
    value first = graph_add(f->out, OP_QUANTIZE_ADD_LAYERNORM, &attr, ins, in, NULL);
    for (int i = 0; i < n->n_out; i++) f->map[n->out[i].i] = graph_out(first, i);
    f->map[norm->in[0].i] = graph_out(first, 4);
    for (int i = 1; i < norm->n_out; i++) f->map[norm->out[i].i] = graph_out(first, 4 + i);
    return true;
}

static value behind_views(const struct graph *g, value v)
{
    const struct node *n = graph_producer(g, v);
    return n->op == OP_RESHAPE ? behind_views(g, n->in[0]) : v;
}

/* The node before `id` that computes a weight gradient a^T d from `d`; NULL if there is none. */
static const struct node *weight_gradient(const struct fuse *f, value d, int id)
{
    for (int i = f->in->info[d.i].producer + 1; i < id; i++) {
        const struct node *n = &f->in->node[i];
        if (n->op != OP_MATMUL || !n->attr.matmul.ta || n->attr.matmul.tb) continue;
        if (graph_type(f->in, n->out[0])->rank != 2) continue;
        if (behind_views(f->in, n->in[1]).i == d.i && fuse_unused_between(f, n, id)) return n;
    }
    return NULL;
}

/* matmul(a^T, d), sum of d over its rows -> matmul_sum: the gradients of a weight and its bias */
bool fuse_matmul_sum(struct fuse *f, int id)
{
    const struct node *sum = &f->in->node[id], *matmul;
    if (sum->op != OP_SUM_LEADING) return false;
    value d = behind_views(f->in, sum->in[0]);
    const struct type *t = graph_type(f->in, sum->out[0]);
    if (t->rank != 1 || !(matmul = weight_gradient(f, d, id))) return false;
    const struct type *w = graph_type(f->in, matmul->out[0]);
    if (w->dtype != t->dtype || type_columns(w) != t->dim[0]) return false;
    value in[] = {mapped(f, matmul->in[0]), mapped(f, matmul->in[1])};
    f->out->numerics = matmul->numerics;
    if (!pass_kernel_is_faster(f->options, f->out, OP_MATMUL_SUM, &matmul->attr, 2, in, w))
        return false;
    value first = graph_add(f->out, OP_MATMUL_SUM, &matmul->attr, 2, in, w);
    f->map[matmul->out[0].i] = first;
    f->map[sum->out[0].i] = graph_out(first, 1);
    return true;
}

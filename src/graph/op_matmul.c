#include "graph/build.h"
#include "graph/op_rules.h"

/* A (...,K) x packed (K,N) -> (...,N) */
static enum status shape_packed(struct node *n, const struct type *in, const struct type *given,
                                struct type *out)
{
    char ta[TYPE_TEXT], tb[TYPE_TEXT];
    const struct type *a = &in[0], *b = &in[1];
    int64_t N = n->attr.matmul.packed;
    bool fine = a->dtype == b->dtype && a->rank >= 2 && b->rank == 1 && !n->attr.matmul.ta &&
                b->dim[0] == packed_elements(type_columns(a), N);
    if (!fine)
        return fail(ST_USAGE, "cannot multiply %s by the packed %s", type_text(ta, a),
                    type_text(tb, b));
    out[0] = *a;
    out[0].dtype = result_dtype(a->dtype, given);
    out[0].dim[a->rank - 1] = N;
    n->n_out = 1;
    return ST_OK;
}

/* (...,M,K) x (...,K,N) -> (...,M,N); a second operand of rank 2 is used for all leading
 * dimensions of the first. */
enum status shape_matmul(struct node *n, const struct type *in, const struct type *given,
                         struct type *out)
{
    if (n->attr.matmul.packed) return shape_packed(n, in, given, out);
    char ta[TYPE_TEXT], tb[TYPE_TEXT];
    const struct type *a = &in[0], *b = &in[1];
    bool same = a->rank == b->rank, shared = b->rank == 2 && a->rank > 2 && !n->attr.matmul.ta;
    bool fine = a->dtype == b->dtype && a->rank >= 2 && (same || shared);
    for (int i = 0; fine && same && i + 2 < a->rank; i++) fine = a->dim[i] == b->dim[i];
    if (!fine)
        return fail(ST_USAGE, "cannot multiply %s by %s", type_text(ta, a), type_text(tb, b));
    const int64_t *da = a->dim + a->rank - 2, *db = b->dim + b->rank - 2;
    int64_t M = da[n->attr.matmul.ta], K = da[!n->attr.matmul.ta];
    int64_t Kb = db[n->attr.matmul.tb], N = db[!n->attr.matmul.tb];
    if (K != Kb)
        return fail(ST_USAGE, "cannot multiply %s by %s: the inner dimensions are %lld and %lld",
                    type_text(ta, a), type_text(tb, b), (long long)K, (long long)Kb);
    out[0] = *a;
    out[0].dtype = result_dtype(a->dtype, given);
    out[0].dim[a->rank - 2] = M;
    out[0].dim[a->rank - 1] = N;
    n->n_out = 1;
    return ST_OK;
}

/* w (K,N), or (N,K) with tb -> the same numbers in the packed layout that a matmul with
 * attr.pack.rows rows reads. Only the kernels know this layout. */
enum status shape_pack(struct node *n, const struct type *in, const struct type *, struct type *out)
{
    char t[TYPE_TEXT];
    if (in[0].rank != 2 || n->attr.pack.rows < 1)
        return fail(ST_USAGE, "%s is not a matrix that can be packed", type_text(t, &in[0]));
    out[0] = type_1d(in[0].dtype,
                     packed_elements(in[0].dim[n->attr.pack.tb], in[0].dim[!n->attr.pack.tb]));
    n->n_out = 1;
    return ST_OK;
}

static value flat(struct graph *g, value x) /* (...,C) -> (N,C) */
{
    const struct type t = *graph_type(g, x);
    return t.rank == 2 ? x : g_reshape(g, x, type_2d(t.dtype, type_rows(&t), type_columns(&t)));
}

/* For C = op(A) op(B), the gradients of A and of B are one matmul each. */
static value grad_of_a(struct graph *g, const struct node *n, value d)
{
    value b = n->in[1];
    bool tb = n->attr.matmul.tb;
    return n->attr.matmul.ta ? g_matmul(g, b, d, tb, true) : g_matmul(g, d, b, false, !tb);
}

static value grad_of_b(struct graph *g, const struct node *n, value d)
{
    value a = n->in[0];
    bool ta = n->attr.matmul.ta;
    if (graph_type(g, n->in[1])->rank != graph_type(g, a)->rank) a = flat(g, a), d = flat(g, d);
    return n->attr.matmul.tb ? g_matmul(g, d, a, true, ta) : g_matmul(g, a, d, !ta, false);
}

/* Appends the gradient of B first: that node is often the last reader of A, so A's memory is free
 * earlier. */
void grad_matmul(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[1] = grad_of_b(g, n, dout[0]);
    din[0] = grad_of_a(g, n, dout[0]);
}

struct cost cost_matmul(const struct node *n, const struct type *in, const struct type *out)
{
    struct cost c = cost_move(n, in, out);
    bool ta = n->op == OP_MATMUL && n->attr.matmul.ta;
    int64_t K = in[0].dim[in[0].rank - (ta ? 2 : 1)];
    c.flops = 2.0 * (double)type_elements(&out[0]) * (double)K;
    return c;
}

static struct node matmul_of(const struct node *linear)
{
    struct node matmul = {.op = OP_MATMUL, .n_in = 2};
    matmul.attr.matmul.tb = linear->attr.linear.tb;
    matmul.attr.matmul.packed = linear->attr.linear.packed;
    return matmul;
}

/* x (...,K), w (K,N) or (N,K), bias (N) -> (...,N) */
enum status shape_linear(struct node *n, const struct type *in, const struct type *given,
                         struct type *out)
{
    struct node matmul = matmul_of(n);
    TRY(shape_matmul(&matmul, in, given, out));
    if (in[2].rank != 1 || in[2].dim[0] != type_columns(&out[0]))
        return fail(ST_USAGE, "the bias needs %lld elements", (long long)type_columns(&out[0]));
    n->n_out = 1;
    return ST_OK;
}

void grad_linear(struct graph *g, const struct node *n, const value *dout, value *din)
{
    struct node matmul = {.op = OP_MATMUL, .in = {n->in[0], n->in[1]}};
    matmul.attr.matmul.tb = n->attr.linear.tb;
    din[1] = grad_of_b(g, &matmul, dout[0]);
    din[2] = g_sum_leading(g, dout[0], *graph_type(g, n->in[2]));
    din[0] = grad_of_a(g, &matmul, dout[0]);
}

void expand_linear(struct graph *g, const struct node *n, const value *in, value *out)
{
    value y = g_matmul(g, in[0], in[1], false, n->attr.linear.tb);
    out[0] = g_add(g, y, in[2]);
}

struct cost cost_linear(const struct node *n, const struct type *in, const struct type *out)
{
    struct cost c = cost_matmul(n, in, out);
    c.flops += (double)type_elements(&out[0]);
    return c;
}

/* x (...,K), w (K,N) or (N,K) [, bias (N)] -> gelu(x w + bias) (...,N) [, x w + bias] */
enum status shape_linear_gelu(struct node *n, const struct type *in, const struct type *given,
                              struct type *out)
{
    struct node matmul = matmul_of(n);
    TRY(n->n_in == 3 ? shape_linear(n, in, given, out) : shape_matmul(&matmul, in, given, out));
    out[1] = out[0];
    n->n_out = n->attr.linear.keep ? 2 : 1;
    return ST_OK;
}

void expand_linear_gelu(struct graph *g, const struct node *n, const value *in, value *out)
{
    bool tb = n->attr.linear.tb;
    value y =
        n->n_in == 3 ? g_linear(g, in[0], in[1], in[2], tb) : g_matmul(g, in[0], in[1], false, tb);
    out[0] = g_gelu(g, y, n->attr.linear.tanh);
    if (n->n_out == 2) out[1] = y;
}

/* The cost of the matmul or linear layer, plus ten operations of GELU per output element. */
struct cost cost_linear_gelu(const struct node *n, const struct type *in, const struct type *out)
{
    bool bias = n->op == OP_LINEAR_GELU && n->n_in == 3;
    struct cost c = bias ? cost_linear(n, in, out) : cost_matmul(n, in, out);
    c.flops += 10.0 * (double)type_elements(&out[0]);
    return c;
}

/* dy (...,K), w (K,N) or (N,K), x (...,N) -> the gradient of gelu(x): (dy w) gelu'(x) */
enum status shape_matmul_gelu_grad(struct node *n, const struct type *in, const struct type *given,
                                   struct type *out)
{
    TRY(shape_matmul(n, in, given, out));
    if (!type_same(&in[2], &out[0]))
        return fail(ST_USAGE, "the input of GELU and the matmul differ in shape");
    return ST_OK;
}

void expand_matmul_gelu_grad(struct graph *g, const struct node *n, const value *in, value *out)
{
    value dy = g_matmul(g, in[0], in[1], n->attr.matmul.ta, n->attr.matmul.tb);
    out[0] = g_gelu_grad(g, dy, in[2], n->attr.matmul.tanh);
}

/* a (K,M), b (K,N) -> a^T b, sum over the rows of b (N): the gradients of a weight and its bias */
enum status shape_matmul_sum(struct node *n, const struct type *in, const struct type *given,
                             struct type *out)
{
    TRY(shape_matmul(n, in, given, out));
    if (!n->attr.matmul.ta || n->attr.matmul.tb || in[1].rank != 2)
        return fail(ST_USAGE, "the first operand must be transposed, and the second must be a "
                              "matrix that is not transposed");
    out[1] = type_1d(out[0].dtype, type_columns(&in[1]));
    n->n_out = 2;
    return ST_OK;
}

void expand_matmul_sum(struct graph *g, const struct node *, const value *in, value *out)
{
    struct type b = *graph_type(g, in[1]);
    out[0] = g_matmul(g, in[0], in[1], true, false);
    out[1] = g_sum_leading(g, in[1], type_1d(b.dtype, type_columns(&b)));
}

struct cost cost_matmul_sum(const struct node *n, const struct type *in, const struct type *out)
{
    struct node matmul = *n;
    matmul.op = OP_MATMUL; /* so that cost_matmul reads the attribute ta */
    struct cost c = cost_matmul(&matmul, in, out);
    c.flops += (double)type_elements(&in[1]);
    return c;
}

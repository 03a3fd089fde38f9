/* Operators that move, gather and sum data: views, rows, heads, embeddings. */
#include "graph/build.h"
#include "graph/op_rules.h"

enum status shape_reshape(struct node *n, const struct type *in, const struct type *given,
                          struct type *out)
{
    char a[TYPE_TEXT], b[TYPE_TEXT];
    BUG_IF(!given, "RESHAPE needs its type");
    if (type_elements(given) != type_elements(&in[0]))
        return fail(ST_USAGE, "%s and %s differ in the number of elements", type_text(a, given),
                    type_text(b, &in[0]));
    out[0] = *given;
    out[0].dtype = in[0].dtype;
    n->n_out = 1;
    return ST_OK;
}

void grad_reshape(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = g_reshape(g, dout[0], *graph_type(g, n->in[0]));
}

/* (...,C) -> (...,1) */
enum status shape_per_row(struct node *n, const struct type *in, const struct type *,
                          struct type *out)
{
    out[0] = in[0];
    out[0].dim[out[0].rank - 1] = 1;
    n->n_out = 1;
    return ST_OK;
}

/* The gradient of a sum: every element of the input gets the adjoint of its sum. */
void grad_repeat(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = g_mul(g, g_fill(g, *graph_type(g, n->in[0]), 1), dout[0]);
}

/* (...,given) -> given */
enum status shape_trailing(struct node *n, const struct type *in, const struct type *given,
                           struct type *out)
{
    char a[TYPE_TEXT], b[TYPE_TEXT];
    BUG_IF(!given, "SUM_LEADING needs its type");
    if (type_broadcast(&in[0], given) != BROADCAST_TRAILING)
        return fail(ST_USAGE, "%s is not the trailing dimensions of %s", type_text(a, given),
                    type_text(b, &in[0]));
    out[0] = *given;
    out[0].dtype = result_dtype(in[0].dtype, given);
    n->n_out = 1;
    return ST_OK;
}

/* (...,C) -> parts of each row: (...,columns[0]), (...,columns[1]), ... */
enum status shape_split(struct node *n, const struct type *in, const struct type *,
                        struct type *out)
{
    const int64_t *columns = n->attr.split.columns;
    int64_t sum = 0;
    n->n_out = 0;
    for (int i = 0; i < MAX_PARTS && columns[i] > 0; i++) {
        out[i] = in[0];
        out[i].dim[in[0].rank - 1] = columns[i];
        sum += columns[i];
        n->n_out++;
    }
    if (n->n_out < 2 || sum != type_columns(&in[0]))
        return fail(ST_USAGE, "rows of %lld columns cannot be split into %d parts of %lld in total",
                    (long long)type_columns(&in[0]), n->n_out, (long long)sum);
    return ST_OK;
}

void grad_split(struct graph *g, const struct node *n, const value *dout, value *din)
{
    value d[MAX_PARTS];
    for (int i = 0; i < n->n_out; i++)
        d[i] = dout[i].i ? dout[i] : g_fill(g, *graph_type(g, n->out[i]), 0);
    din[0] = g_concat(g, n->n_out, d);
}

/* (...,C1), (...,C2), ... -> (...,C1+C2+...) */
enum status shape_concat(struct node *n, const struct type *in, const struct type *,
                         struct type *out)
{
    out[0] = in[0];
    for (int i = 1; i < n->n_in; i++) {
        struct type t = in[i];
        t.dim[t.rank - 1] = type_columns(&in[0]);
        if (!type_same(&t, &in[0])) return fail(ST_USAGE, "the tensors may differ only in columns");
        out[0].dim[out[0].rank - 1] += type_columns(&in[i]);
    }
    n->n_out = 1;
    return ST_OK;
}

void grad_concat(struct graph *g, const struct node *n, const value *dout, value *din)
{
    int64_t columns[MAX_PARTS];
    for (int i = 0; i < n->n_in; i++) columns[i] = type_columns(graph_type(g, n->in[i]));
    value first = g_split(g, dout[0], n->n_in, columns);
    for (int i = 0; i < n->n_in; i++) din[i] = graph_out(first, i);
}

/* The number of heads: H in the first part, KV in each other part; 0: KV does not divide H. */
static int64_t packed_heads(const struct node *n, int64_t H, int64_t parts)
{
    int64_t KV = n->attr.heads.kv_heads ? n->attr.heads.kv_heads : H;
    return H < 1 || KV < 1 || H % KV ? 0 : H + (parts - 1) * KV;
}

/* (B,T,(H+(P-1)*KV)*D) -> P tensors (B,H,T,D): a part after the first has KV heads, and head h of
 * its result is head h / (H/KV) of the part. */
enum status shape_split_heads(struct node *n, const struct type *in, const struct type *,
                              struct type *out)
{
    int H = n->attr.heads.heads, P = n->attr.heads.parts;
    int64_t all = P < 1 || P > MAX_PARTS ? 0 : packed_heads(n, H, P);
    char a[TYPE_TEXT];
    if (in[0].rank != 3 || all < 1 || in[0].dim[2] % all)
        return fail(ST_USAGE, "%s cannot be split into %d x %d heads", type_text(a, &in[0]), P, H);
    for (int i = 0; i < P; i++)
        out[i] = type_4d(in[0].dtype, in[0].dim[0], H, in[0].dim[1], in[0].dim[2] / all);
    n->n_out = P;
    return ST_OK;
}

void grad_split_heads(struct graph *g, const struct node *n, const value *dout, value *din)
{
    value d[MAX_PARTS];
    for (int i = 0; i < n->n_out; i++)
        d[i] = dout[i].i ? dout[i] : g_fill(g, *graph_type(g, n->out[i]), 0);
    din[0] = g_merge_heads(g, n->attr.heads.kv_heads, n->n_out, d);
}

/* P tensors (B,H,T,D) -> (B,T,(H+(P-1)*KV)*D): in each part after the first, every H/KV heads are
 * summed to one head */
enum status shape_merge_heads(struct node *n, const struct type *in, const struct type *,
                              struct type *out)
{
    for (int i = 0; i < n->n_in; i++)
        if (in[i].rank != 4 || !type_same(&in[i], &in[0]))
            return fail(ST_USAGE, "heads must be tensors of four dimensions and the same type");
    const int64_t *d = in[0].dim, all = packed_heads(n, d[1], n->n_in);
    if (!all) return fail(ST_USAGE, "%lld heads do not form groups of equal size", (long long)d[1]);
    out[0] = type_3d(in[0].dtype, d[0], d[2], all * d[3]);
    n->n_out = 1;
    return ST_OK;
}

void grad_merge_heads(struct graph *g, const struct node *n, const value *dout, value *din)
{
    int H = (int)graph_type(g, n->in[0])->dim[1];
    value first = g_split_heads(g, dout[0], H, n->attr.heads.kv_heads, n->n_in);
    for (int i = 0; i < n->n_in; i++) din[i] = graph_out(first, i);
}

struct cost cost_merge_heads(const struct node *n, const struct type *in, const struct type *out)
{
    struct cost c = cost_move(n, in, out);
    c.flops = (double)(n->n_in * type_elements(&in[0]) - type_elements(&out[0]));
    return c;
}

/* table (V,C), ids (...) -> (...,C) */
enum status shape_embed(struct node *n, const struct type *in, const struct type *given,
                        struct type *out)
{
    if (in[0].rank != 2 || in[1].dtype != DT_I32 || in[1].rank == MAX_RANK)
        return fail(ST_USAGE, "needs a table of two dimensions and integer ids");
    out[0] = in[1];
    out[0].dtype = result_dtype(in[0].dtype, given);
    out[0].dim[out[0].rank++] = in[0].dim[1];
    n->n_out = 1;
    return ST_OK;
}

void grad_embed(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = g_embed_grad(g, n->in[1], dout[0], *graph_type(g, n->in[0]));
}

/* The inputs are pairs of a table and ids; only the rows that the ids select count as read. */
struct cost cost_embed(const struct node *n, const struct type *in, const struct type *out)
{
    struct cost c = {0, (double)type_bytes(&out[0])};
    for (int i = 0; i + 1 < n->n_in; i += 2) {
        double row = (double)(type_columns(&in[i]) * dtype_size(in[i].dtype));
        c.bytes += (double)type_elements(&in[i + 1]) * row + (double)type_bytes(&in[i + 1]);
    }
    if (n->op == OP_EMBED_SUM)
        c.flops = (n->attr.drop.threshold ? 2 : 1) * (double)type_elements(&out[0]);
    return c;
}

struct cost cost_embed_grad(const struct node *n, const struct type *in, const struct type *out)
{
    return cost_each(n, in, out, 1, &in[1]);
}

/* ids (T), dy (...,T,C) -> (V,C): gradient of a table with the same ids in all sequences */
enum status shape_embed_grad_sum(struct node *n, const struct type *in, const struct type *given,
                                 struct type *out)
{
    const struct type *dy = &in[1];
    if (in[0].rank != 1 || in[0].dtype != DT_I32 || dy->rank < 2 ||
        dy->dim[dy->rank - 2] != in[0].dim[0] || n->attr.table.rows < 1)
        return fail(ST_USAGE, "needs one integer id for each position of a sequence");
    out[0] = type_2d(result_dtype(dy->dtype, given), n->attr.table.rows, type_columns(dy));
    n->n_out = 1;
    return ST_OK;
}

void expand_embed_grad_sum(struct graph *g, const struct node *n, const value *in, value *out)
{
    const struct type dy = *graph_type(g, in[1]);
    int64_t T = dy.dim[dy.rank - 2], C = type_columns(&dy);
    value sum = g_sum_leading(g, in[1], type_2d(dy.dtype, T, C));
    out[0] = g_embed_grad(g, in[0], sum, type_2d(dy.dtype, n->attr.table.rows, C));
}

/* The cost of summing the rows over the sequences for each position, then by id. */
struct cost cost_embed_grad_sum(const struct node *n, const struct type *in, const struct type *out)
{
    struct cost c = cost_move(n, in, out);
    c.flops = (double)(type_elements(&in[1]) + type_elements(&in[0]) * type_columns(&in[1]));
    return c;
}

/* onto (V,C), ids (...), dy (...,C) -> onto + EMBED_GRAD(ids, dy); `onto` is the gradient of the
 * output head that is tied to the table */
enum status shape_embed_grad_add(struct node *n, const struct type *in, const struct type *given,
                                 struct type *out)
{
    if (in[0].rank != 2 || in[1].dtype != DT_I32)
        return fail(ST_USAGE, "needs a table and integer ids");
    if (type_columns(&in[2]) != in[0].dim[1] || type_rows(&in[2]) != type_elements(&in[1]))
        return fail(ST_USAGE, "needs one row of the table's width for each id");
    return shape_same(n, in, given, out);
}

void expand_embed_grad_add(struct graph *g, const struct node *, const value *in, value *out)
{
    out[0] = g_add(g, in[0], g_embed_grad(g, in[1], in[2], *graph_type(g, in[0])));
}

/* Rows without an id do not change, so at most one row per id is read and written. */
struct cost cost_embed_grad_add(const struct node *, const struct type *in, const struct type *out)
{
    int64_t ids = type_elements(&in[1]), V = in[0].dim[0];
    double rows = (double)(ids < V ? ids : V),
           row = (double)(type_columns(&out[0]) * dtype_size(out[0].dtype));
    return (struct cost){
        .flops = (double)(type_elements(&in[2]) + type_elements(&out[0])),
        .bytes = (double)(type_bytes(&in[1]) + type_bytes(&in[2])) + 2 * rows * row,
    };
}

/* x (...,V), ids (...) -> (...,1) */
enum status shape_pick(struct node *n, const struct type *in, const struct type *given,
                       struct type *out)
{
    if (in[1].dtype != DT_I32 || type_elements(&in[1]) != type_rows(&in[0]))
        return fail(ST_USAGE, "needs one integer id for each row");
    return shape_per_row(n, in, given, out);
}

void grad_pick(struct graph *g, const struct node *n, const value *dout, value *din)
{
    din[0] = g_pick_grad(g, n->in[1], dout[0], *graph_type(g, n->in[0]));
}

/* token table (V,C), ids (B,T), position table (Tmax,C), positions (T), step -> (B,T,C) */
enum status shape_embed_sum(struct node *n, const struct type *in, const struct type *given,
                            struct type *out)
{
    if (in[2].rank != 2 || in[2].dim[1] != in[0].dim[1] || in[3].dtype != DT_I32 ||
        in[1].dim[in[1].rank - 1] != in[3].dim[0])
        return fail(ST_USAGE, "tokens and positions do not match in shape");
    return shape_embed(n, in, given, out);
}

void expand_embed_sum(struct graph *g, const struct node *n, const value *in, value *out)
{
    out[0] = g_add(g, g_embed(g, in[0], in[1]), g_embed(g, in[2], in[3]));
    if (n->attr.drop.threshold) out[0] = g_dropout(g, out[0], in[4], n->attr.drop);
}

/* Rotary position embeddings (Su et al., arXiv 2104.09864): columns 2i and 2i+1 of a head are a
 * point of the plane, which is rotated by the angle t theta^(-2i/D) at position t.
 *
 * A separate operator, ROPE_TABLE, computes cosines and sines, once per step for all layers and for
 * both the forward and the backward pass. ROPE_TABLE uses double precision: in float, an angle of
 * 1000 has an error of up to 6e-5. */
#include "graph/build.h"
#include "graph/op_rules.h"

/* positions (T) -> (T,D): cosine and sine of each pair of columns, adjacent; f32 or f64 */
enum status shape_rope_table(struct node *n, const struct type *in, const struct type *given,
                             struct type *out)
{
    TRY(shape_given(n, in, given, out));
    if (in[0].dtype != DT_I32 || in[0].rank != 1 || out[0].rank != 2 || out[0].dim[1] % 2 ||
        out[0].dim[0] != in[0].dim[0])
        return fail(ST_USAGE, "needs one row for each position, and pairs of columns");
    return ST_OK;
}

/* x (B,T,C), table (T,D) -> (B,T,C): the first rope.heads heads of D columns are rotated */
enum status shape_rope(struct node *n, const struct type *in, const struct type *given,
                       struct type *out)
{
    int64_t rotated = n->attr.rope.heads * in[1].dim[1];
    char a[TYPE_TEXT], b[TYPE_TEXT];
    if (in[0].rank != 3 || in[1].rank != 2 || in[1].dim[1] % 2 || in[0].dim[1] != in[1].dim[0] ||
        rotated < 1 || rotated > in[0].dim[2])
        return fail(ST_USAGE, "%s cannot rotate %d heads of %s", type_text(a, &in[1]),
                    n->attr.rope.heads, type_text(b, &in[0]));
    return shape_same(n, in, given, out);
}

/* The transpose of a rotation is its inverse. The table needs no gradient. */
void grad_rope(struct graph *g, const struct node *n, const value *dout, value *din)
{
    union attr attr = n->attr;
    attr.rope.back = !attr.rope.back;
    value in[] = {dout[0], n->in[1]};
    din[0] = graph_add(g, OP_ROPE, &attr, 2, in, NULL);
}

struct pairs {
    value even, odd;
};

/* (...,2K) -> columns 0, 2, 4, ... and 1, 3, 5, ...: each (...,K) */
static struct pairs apart(struct graph *g, value x)
{
    struct type t = *graph_type(g, x);
    value rows = g_reshape(g, x, type_2d(t.dtype, type_elements(&t) / 2, 2));
    value first = g_split(g, rows, 2, (int64_t[]){1, 1});
    t.dim[t.rank - 1] /= 2;
    return (struct pairs){g_reshape(g, first, t), g_reshape(g, graph_out(first, 1), t)};
}

static value together(struct graph *g, struct pairs p)
{
    struct type t = *graph_type(g, p.even);
    struct type rows = type_2d(t.dtype, type_elements(&t), 1);
    value both[] = {g_reshape(g, p.even, rows), g_reshape(g, p.odd, rows)};
    t.dim[t.rank - 1] *= 2;
    return g_reshape(g, g_concat(g, 2, both), t);
}

/* (T,K) -> (T,H*K): a copy for each of H heads */
static value for_heads(struct graph *g, value x, int64_t H)
{
    struct type t = *graph_type(g, x);
    int64_t T = t.dim[0], K = t.dim[1];
    value each = g_mul(g, g_fill(g, type_4d(t.dtype, 1, H, T, K), 1), x);
    return g_reshape(g, g_merge_heads(g, 0, 1, &each), type_2d(t.dtype, T, H * K));
}

/* (even, odd) -> (c even - s odd, s even + c odd) */
static value rotate(struct graph *g, const struct node *n, value x, value table)
{
    struct pairs p = apart(g, x), angle = apart(g, table);
    value c = for_heads(g, angle.even, n->attr.rope.heads);
    value s = for_heads(g, angle.odd, n->attr.rope.heads);
    if (n->attr.rope.back) s = g_scale(g, s, -1);
    struct pairs y = {g_sub(g, g_mul(g, p.even, c), g_mul(g, p.odd, s)),
                      g_add(g, g_mul(g, p.even, s), g_mul(g, p.odd, c))};
    return together(g, y);
}

void expand_rope(struct graph *g, const struct node *n, const value *in, value *out)
{
    int64_t C = type_columns(graph_type(g, in[0]));
    int64_t rotated = n->attr.rope.heads * type_columns(graph_type(g, in[1]));
    if (rotated == C) {
        out[0] = rotate(g, n, in[0], in[1]);
        return;
    }
    value first = g_split(g, in[0], 2, (int64_t[]){rotated, C - rotated});
    value both[] = {rotate(g, n, first, in[1]), graph_out(first, 1)};
    out[0] = g_concat(g, 2, both);
}

/* Per pair: a power, a multiplication, sine and cosine. */
struct cost cost_rope_table(const struct node *n, const struct type *in, const struct type *out)
{
    return cost_each(n, in, out, 2, &out[0]);
}

struct cost cost_rope(const struct node *n, const struct type *in, const struct type *out)
{
    struct cost c = cost_move(n, in, out);
    c.flops = 3.0 * (double)(type_rows(&in[0]) * n->attr.rope.heads * type_columns(&in[1]));
    return c;
}

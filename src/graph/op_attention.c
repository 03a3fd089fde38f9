/* Attention that never stores its T x T matrices, and the operators of its expansion.
 *
 * The expansion is the definition. Slow attention runs the expansion; tests compare fast kernels
 * with the expansion. */
#include "graph/build.h"
#include "graph/op_rules.h"

#include <math.h>

static const int PACKED = 3; /* q, k and v side by side */

/* The head size D of packed q, k, v with H query and KV key heads; 0: not divisible. */
static int64_t head_size(const union attr *attr, int64_t columns)
{
    int64_t H = attr->attention.heads, KV = attention_kv_heads(attr);
    if (H < 1 || KV < 1 || H % KV || columns % (H + 2 * KV)) return 0;
    return columns / (H + 2 * KV);
}

/* qkv (B,T,(H+2*KV)*D), step (1) -> y (B,T,H*D), log-sum-exp (B,H,T) */
enum status shape_attention(struct node *n, const struct type *in, const struct type *,
                            struct type *out)
{
    int64_t H = n->attr.attention.heads, D = head_size(&n->attr, type_columns(&in[0]));
    char t[TYPE_TEXT];
    if (in[0].rank != 3 || !D)
        return fail(ST_USAGE, "%s is not packed q, k, v of %lld query heads and %d key-value heads",
                    type_text(t, &in[0]), (long long)H, attention_kv_heads(&n->attr));
    int64_t B = in[0].dim[0], T = in[0].dim[1];
    out[0] = type_3d(in[0].dtype, B, T, H * D);
    out[1] = type_3d(dtype_of_statistics(in[0].dtype), B, H, T);
    n->n_out = 2;
    return ST_OK;
}

void grad_attention(struct graph *g, const struct node *n, const value *dout, value *din)
{
    value in[] = {dout[0], n->in[0], n->out[0], n->out[1], n->in[1]};
    din[0] = graph_add(g, OP_ATTENTION_GRAD, &n->attr, 5, in, NULL);
}

struct heads {
    value q, k, v;
    double scale;
};

static struct heads split(struct graph *g, const struct node *n, value qkv)
{
    const union attr *a = &n->attr;
    value first = g_split_heads(g, qkv, a->attention.heads, a->attention.kv_heads, PACKED);
    const struct type *t = graph_type(g, first);
    double scale = 1 / attention_divisor(a, t ? t->dim[3] : 1);
    return (struct heads){first, graph_out(first, 1), graph_out(first, 2), scale};
}

static value scale(struct graph *g, const struct node *n, const struct heads *h, value s)
{
    return n->attr.attention.unscaled ? s : g_scale(g, s, h->scale);
}

static value scores(struct graph *g, const struct node *n, const struct heads *h) /* (B,H,T,T) */
{
    value s = scale(g, n, h, g_matmul(g, h->q, h->k, false, true));
    return n->attr.attention.causal ? g_causal_mask(g, s, -INFINITY) : s;
}

void expand_attention(struct graph *g, const struct node *n, const value *in, value *out)
{
    struct dropout drop = n->attr.attention.drop;
    struct heads h = split(g, n, in[0]);
    struct graph_scope here = graph_enter(g, "scores", -1);
    value s = scores(g, n, &h);
    graph_leave(g, here);
    here = graph_enter(g, "softmax", -1);
    value p = g_softmax(g, s);
    if (drop.threshold) p = g_dropout(g, p, in[1], drop);
    graph_leave(g, here);
    here = graph_enter(g, "weighted_sum", -1);
    value y = g_matmul(g, p, h.v, false, false); /* (B,H,T,D) */
    out[0] = g_merge_heads(g, 0, 1, &y);
    graph_leave(g, here);
    /* The log-sum-exp, which dead-code elimination drops if no node reads it. */
    value max = g_max_row(g, s);
    value sum = g_sum_row(g, g_exp(g, g_sub(g, s, max)));
    const struct type *t = graph_type(g, max);
    if (t) out[1] = g_reshape(g, g_add(g, max, g_log(g, sum)), type_of(t->dtype, 3, t->dim));
}

/* dy, qkv, y, log-sum-exp, step -> dqkv */
enum status shape_attention_grad(struct node *n, const struct type *in, const struct type *,
                                 struct type *out)
{
    if (!type_same(&in[0], &in[2]) || in[3].rank != 3)
        return fail(ST_USAGE, "the adjoint and the output differ in shape");
    out[0] = in[1];
    n->n_out = 1;
    return ST_OK;
}

/* FlashAttention-2 (Dao, arXiv 2307.08691, algorithm 2), with whole matrices instead of tiles:
 * p is recomputed from the log-sum-exp, delta = rowsum(dy y), ds = p (dp - delta). */
void expand_attention_grad(struct graph *g, const struct node *n, const value *in, value *out)
{
    int H = n->attr.attention.heads;
    struct dropout drop = n->attr.attention.drop;
    struct heads h = split(g, n, in[1]);
    value dy = g_split_heads(g, in[0], H, 0, 1), y = g_split_heads(g, in[2], H, 0, 1);
    struct type row = *graph_type(g, in[3]);
    row.dim[row.rank++] = 1;
    value p = g_exp(g, g_sub(g, scores(g, n, &h), g_reshape(g, in[3], row)));
    value dp = g_matmul(g, dy, h.v, false, true), dropped = p;
    if (drop.threshold) {
        dropped = g_dropout(g, p, in[4], drop);
        dp = g_dropout(g, dp, in[4], drop);
    }
    value delta = g_sum_row(g, g_mul(g, dy, y));
    value ds = scale(g, n, &h, g_mul(g, p, g_sub(g, dp, delta)));
    value d[] = {g_matmul(g, ds, h.k, false, false), g_matmul(g, ds, h.q, true, false),
                 g_matmul(g, dropped, dy, true, false)};
    out[0] = g_merge_heads(g, n->attr.attention.kv_heads, PACKED, d);
}

/* The number of query-key pairs; half of the T x T matrix if causal. */
static double pairs(const struct node *n, const struct type *qkv)
{
    double B = (double)qkv->dim[0], T = (double)qkv->dim[1];
    return B * (n->attr.attention.causal ? T * (T + 1) / 2 : T * T);
}

/* Two matmuls with 2 D FLOPs per pair and query head each, and the softmax; k and v count once. */
struct cost cost_attention(const struct node *n, const struct type *in, const struct type *out)
{
    struct cost c = cost_move(n, in, out);
    double C = (double)out[0].dim[2], H = (double)n->attr.attention.heads;
    c.flops = pairs(n, &in[0]) * (4 * C + 5 * H);
    return c;
}

/* Five matmuls: the recomputed scores, dp, dv, dq, dk. */
struct cost cost_attention_grad(const struct node *n, const struct type *in, const struct type *out)
{
    struct cost c = cost_move(n, in, out);
    double C = (double)in[0].dim[2], H = (double)n->attr.attention.heads;
    c.flops = pairs(n, &in[1]) * (10 * C + 7 * H);
    return c;
}

/* cache (2,B,Tmax,KV*D), qkv (B,1,(H+2*KV)*D), position (1) -> cache, y (B,1,H*D) */
enum status shape_attention_cached(struct node *n, const struct type *in, const struct type *,
                                   struct type *out)
{
    int64_t D = head_size(&n->attr, type_columns(&in[1]));
    if (in[0].rank != 4 || in[0].dim[0] != 2 || in[1].rank != 3 || in[1].dim[1] != 1 || !D ||
        in[0].dim[1] != in[1].dim[0] || in[0].dim[3] != D * attention_kv_heads(&n->attr))
        return fail(ST_USAGE, "the cache does not match the keys and values");
    if (n->attr.attention.unscaled || !n->attr.attention.causal)
        return fail(ST_USAGE, "attention with a cache is causal and scaled");
    out[0] = in[0];
    out[1] = type_3d(in[1].dtype, in[1].dim[0], 1, D * n->attr.attention.heads);
    n->n_out = 2;
    return ST_OK;
}

struct cost cost_attention_cached(const struct node *n, const struct type *in, const struct type *)
{
    double elements = (double)type_elements(&in[0]);
    double shared = (double)n->attr.attention.heads / attention_kv_heads(&n->attr);
    return (struct cost){2 * elements * shared, (double)type_bytes(&in[0])};
}

/* scores (B,H,T,T), step -> softmax(mask(scale scores)) [, dropped] */
enum status shape_score_softmax(struct node *n, const struct type *in, const struct type *given,
                                struct type *out)
{
    TRY(shape_square(n, in, given, out));
    out[1] = in[0];
    n->n_out = n->attr.score.drop.threshold ? 2 : 1;
    return ST_OK;
}

void expand_score_softmax(struct graph *g, const struct node *n, const value *in, value *out)
{
    value s = g_scale(g, in[0], n->attr.score.scale);
    if (n->attr.score.causal) s = g_causal_mask(g, s, -INFINITY);
    out[0] = g_softmax(g, s);
    if (n->n_out == 2) out[1] = g_dropout(g, out[0], in[1], n->attr.score.drop);
}

/* Masked elements are neither read nor computed, but the kernel writes zeros for them. */
struct cost cost_score_softmax(const struct node *n, const struct type *in, const struct type *out)
{
    struct cost c = cost_move(n, in, out);
    double T = (double)type_columns(&in[0]), open = n->attr.score.causal ? (T + 1) / (2 * T) : 1;
    double each = n->attr.score.drop.threshold ? 7 : 6; /* softmax, scale, dropout */
    c.flops = each * open * (double)type_elements(&in[0]);
    for (int i = 0; i < n->n_in; i++)
        if (type_same(&in[i], &in[0])) c.bytes -= (1 - open) * (double)type_bytes(&in[i]);
    return c;
}

/* gradient of the dropped p, p, step -> gradient of the scores */
void expand_score_softmax_grad(struct graph *g, const struct node *n, const value *in, value *out)
{
    value dp = in[0];
    if (n->attr.score.drop.threshold) dp = g_dropout(g, dp, in[2], n->attr.score.drop);
    value ds = g_softmax_grad(g, dp, in[1]);
    if (n->attr.score.causal) ds = g_causal_mask(g, ds, 0);
    out[0] = g_scale(g, ds, n->attr.score.scale);
}

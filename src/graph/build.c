#include "graph/build.h"

/* clang-format off */
/* Operators with one input, with two inputs, and with one input and a constant. */
#define ONE(name, op) \
    value name(struct graph *g, value x) { return graph_add(g, op, NULL, 1, &x, NULL); }
#define TWO(name, op) \
    value name(struct graph *g, value a, value b) \
    { return graph_add(g, op, NULL, 2, (value[]){a, b}, NULL); }
#define CONSTANT(name, op) \
    value name(struct graph *g, value x, double c) \
    { return graph_add(g, op, &(union attr){.constant.value = c}, 1, &x, NULL); }
ONE(g_detach, OP_DETACH)
ONE(g_exp, OP_EXP)
ONE(g_log, OP_LOG)
ONE(g_sqrt, OP_SQRT)
ONE(g_rsqrt, OP_RSQRT)
ONE(g_tanh, OP_TANH)
ONE(g_sigmoid, OP_SIGMOID)
ONE(g_erf, OP_ERF)
ONE(g_relu, OP_RELU)
ONE(g_sum_row, OP_SUM_ROW)
ONE(g_max_row, OP_MAX_ROW)
ONE(g_elu, OP_ELU)
ONE(g_silu, OP_SILU)
ONE(g_softmax, OP_SOFTMAX)
ONE(g_sum_squares, OP_SUM_SQUARES)
TWO(g_add, OP_ADD)
TWO(g_sub, OP_SUB)
TWO(g_mul, OP_MUL)
TWO(g_div, OP_DIV)
TWO(g_where_positive, OP_WHERE_POSITIVE)
TWO(g_where_not_positive, OP_WHERE_NOT_POSITIVE)
TWO(g_embed, OP_EMBED)
TWO(g_pick, OP_PICK)
TWO(g_silu_grad, OP_SILU_GRAD)
TWO(g_softmax_grad, OP_SOFTMAX_GRAD)
TWO(g_store, OP_STORE)
TWO(g_accumulate, OP_ACCUMULATE)
CONSTANT(g_scale, OP_SCALE)
CONSTANT(g_offset, OP_OFFSET)
CONSTANT(g_at_most, OP_AT_MOST)
CONSTANT(g_causal_mask, OP_CAUSAL_MASK)
/* clang-format on */

value g_leaf(struct graph *g, enum storage storage, const char *name, struct type type,
             int64_t offset)
{
    union attr attr = {.leaf = {storage, offset}};
    struct graph_scope before = graph_enter(g, name, -1);
    value v = graph_add(g, OP_LEAF, &attr, 0, NULL, &type);
    graph_leave(g, before);
    return v;
}

value g_leaf_named(struct graph *g, enum storage storage, const char *name, struct type type,
                   int64_t offset)
{
    const char *scope = g->scope;
    g->scope = "";
    value v = g_leaf(g, storage, name, type, offset);
    g->scope = scope;
    return v;
}

value g_input(struct graph *g, const char *name, struct type type)
{
    return g_leaf(g, STORAGE_INPUT, name, type, 0);
}

value g_fill(struct graph *g, struct type type, double x)
{
    union attr attr = {.constant.value = x};
    return graph_add(g, OP_FILL, &attr, 0, NULL, &type);
}

value g_reshape(struct graph *g, value x, struct type shape)
{
    return graph_add(g, OP_RESHAPE, NULL, 1, &x, &shape);
}

value g_cast(struct graph *g, value x, enum dtype dtype)
{
    struct type t = *graph_type(g, x);
    if (t.dtype == dtype) return x;
    if (!x.i) return x;
    const struct node *n = graph_producer(g, x);
    if (n->op == OP_CAST && graph_type(g, n->in[0])->dtype == dtype &&
        dtype_size(dtype) < dtype_size(t.dtype))
        return n->in[0]; /* x is n->in[0] cast to a wider type, which lost nothing */
    t.dtype = dtype;
    return graph_add(g, OP_CAST, NULL, 1, &x, &t);
}

value g_sum_leading(struct graph *g, value x, struct type t)
{
    if (type_same_shape(&t, graph_type(g, x))) return x;
    return graph_add(g, OP_SUM_LEADING, NULL, 1, &x, &t);
}

value g_matmul(struct graph *g, value a, value b, bool ta, bool tb)
{
    union attr attr = {.matmul = {.ta = ta, .tb = tb}};
    return graph_add(g, OP_MATMUL, &attr, 2, (value[]){a, b}, NULL);
}

value g_linear(struct graph *g, value x, value w, value bias, bool tb)
{
    if (!bias.i) return g_matmul(g, x, w, false, tb);
    union attr attr = {.linear.tb = tb};
    return graph_add(g, OP_LINEAR, &attr, 3, (value[]){x, w, bias}, NULL);
}

value g_split_heads(struct graph *g, value x, int heads, int kv_heads, int parts)
{
    union attr attr = {.heads = {heads, parts, kv_heads}};
    return graph_add(g, OP_SPLIT_HEADS, &attr, 1, &x, NULL);
}

value g_merge_heads(struct graph *g, int kv_heads, int parts, const value *x)
{
    union attr attr = {.heads = {.parts = parts, .kv_heads = kv_heads}};
    return graph_add(g, OP_MERGE_HEADS, &attr, parts, x, NULL);
}

value g_split(struct graph *g, value x, int n, const int64_t *columns)
{
    union attr attr = {0};
    for (int i = 0; i < n; i++) attr.split.columns[i] = columns[i];
    return graph_add(g, OP_SPLIT, &attr, 1, &x, NULL);
}

value g_concat(struct graph *g, int n, const value *x)
{
    return graph_add(g, OP_CONCAT, NULL, n, x, NULL);
}

value g_embed_grad(struct graph *g, value ids, value dy, struct type table)
{
    return graph_add(g, OP_EMBED_GRAD, NULL, 2, (value[]){ids, dy}, &table);
}

value g_pick_grad(struct graph *g, value ids, value dy, struct type x)
{
    return graph_add(g, OP_PICK_GRAD, NULL, 2, (value[]){ids, dy}, &x);
}

value g_column_mask(struct graph *g, value x, int64_t columns, double masked)
{
    union attr attr = {.column_mask = {masked, columns}};
    return graph_add(g, OP_COLUMN_MASK, &attr, 1, &x, NULL);
}

value g_dropout_mask(struct graph *g, value step, struct dropout drop, struct type t)
{
    union attr attr = {.drop = drop};
    return graph_add(g, OP_DROPOUT_MASK, &attr, 1, &step, &t);
}

value g_dropout(struct graph *g, value x, value step, struct dropout drop)
{
    union attr attr = {.drop = drop};
    return graph_add(g, OP_DROPOUT, &attr, 2, (value[]){x, step}, NULL);
}

value g_gelu(struct graph *g, value x, bool tanh)
{
    union attr attr = {.gelu.tanh = tanh};
    return graph_add(g, OP_GELU, &attr, 1, &x, NULL);
}

value g_gelu_grad(struct graph *g, value dy, value x, bool tanh)
{
    union attr attr = {.gelu.tanh = tanh};
    return graph_add(g, OP_GELU_GRAD, &attr, 2, (value[]){dy, x}, NULL);
}

value g_layernorm(struct graph *g, value x, value w, value bias, double eps)
{
    union attr attr = {.norm = {.eps = eps, .bias = bias.i != 0}};
    return graph_add(g, OP_LAYERNORM, &attr, bias.i ? 3 : 2, (value[]){x, w, bias}, NULL);
}

value g_rmsnorm(struct graph *g, value x, value w, double eps)
{
    union attr attr = {.norm.eps = eps};
    return graph_add(g, OP_RMSNORM, &attr, 2, (value[]){x, w}, NULL);
}

value g_swiglu(struct graph *g, value gate, value up)
{
    return graph_add(g, OP_SWIGLU, NULL, up.i ? 2 : 1, (value[]){gate, up}, NULL);
}

value g_rope_table(struct graph *g, value positions, int64_t D, double theta)
{
    union attr attr = {.rope.theta = theta};
    struct type t = type_2d(DT_F32, type_elements(graph_type(g, positions)), D);
    return graph_add(g, OP_ROPE_TABLE, &attr, 1, &positions, &t);
}

value g_rope(struct graph *g, value x, value table, int heads)
{
    union attr attr = {.rope.heads = heads};
    return graph_add(g, OP_ROPE, &attr, 2, (value[]){x, table}, NULL);
}

value g_cross_entropy(struct graph *g, value logits, value targets, int64_t vocab)
{
    union attr attr = {.loss.vocab = vocab};
    return graph_add(g, OP_CROSS_ENTROPY, &attr, 2, (value[]){logits, targets}, NULL);
}

value g_attention(struct graph *g, value qkv, value step, int heads, int kv_heads, bool causal,
                  struct dropout drop)
{
    union attr attr = {.attention = {heads, causal, drop, .kv_heads = kv_heads}};
    return graph_add(g, OP_ATTENTION, &attr, 2, (value[]){qkv, step}, NULL);
}

value g_attention_cached(struct graph *g, value cache, value qkv, value position, int heads,
                         int kv_heads)
{
    union attr attr = {.attention = {.heads = heads, .causal = true, .kv_heads = kv_heads}};
    value first =
        graph_add(g, OP_ATTENTION_CACHED, &attr, 3, (value[]){cache, qkv, position}, NULL);
    return graph_out(first, 1);
}

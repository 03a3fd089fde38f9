#include "graph/build.h"

static value one(struct graph *g, enum op op, value x)
{
    return graph_add(g, op, NULL, 1, &x, NULL);
}

static value two(struct graph *g, enum op op, value a, value b)
{
    return graph_add(g, op, NULL, 2, (value[]){a, b}, NULL);
}

static value with_constant(struct graph *g, enum op op, value x, double c)
{
    union attr attr = {.constant.value = c};
    return graph_add(g, op, &attr, 1, &x, NULL);
}

value g_leaf(struct graph *g, enum storage storage, const char *name, struct type type,
             int64_t offset)
{
    union attr attr = {.leaf = {storage, offset}};
    struct graph_scope before = graph_enter(g, name, -1);
    value v = graph_add(g, OP_LEAF, &attr, 0, NULL, &type);
    graph_leave(g, before);
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

value g_detach(struct graph *g, value x)
{
    return one(g, OP_DETACH, x);
}

value g_cast(struct graph *g, value x, enum dtype dtype)
{
    struct type t = *graph_type(g, x);
    if (t.dtype == dtype) return x;
    t.dtype = dtype;
    return graph_add(g, OP_CAST, NULL, 1, &x, &t);
}

value g_add(struct graph *g, value a, value b)
{
    return two(g, OP_ADD, a, b);
}

value g_sub(struct graph *g, value a, value b)
{
    return two(g, OP_SUB, a, b);
}

value g_mul(struct graph *g, value a, value b)
{
    return two(g, OP_MUL, a, b);
}

value g_div(struct graph *g, value a, value b)
{
    return two(g, OP_DIV, a, b);
}

value g_scale(struct graph *g, value x, double c)
{
    return with_constant(g, OP_SCALE, x, c);
}

value g_offset(struct graph *g, value x, double c)
{
    return with_constant(g, OP_OFFSET, x, c);
}

value g_at_most(struct graph *g, value x, double c)
{
    return with_constant(g, OP_AT_MOST, x, c);
}

value g_exp(struct graph *g, value x)
{
    return one(g, OP_EXP, x);
}

value g_log(struct graph *g, value x)
{
    return one(g, OP_LOG, x);
}

value g_sqrt(struct graph *g, value x)
{
    return one(g, OP_SQRT, x);
}

value g_rsqrt(struct graph *g, value x)
{
    return one(g, OP_RSQRT, x);
}

value g_tanh(struct graph *g, value x)
{
    return one(g, OP_TANH, x);
}

value g_erf(struct graph *g, value x)
{
    return one(g, OP_ERF, x);
}

value g_relu(struct graph *g, value x)
{
    return one(g, OP_RELU, x);
}

value g_sum_row(struct graph *g, value x)
{
    return one(g, OP_SUM_ROW, x);
}

value g_max_row(struct graph *g, value x)
{
    return one(g, OP_MAX_ROW, x);
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

value g_embed(struct graph *g, value table, value ids)
{
    return two(g, OP_EMBED, table, ids);
}

value g_embed_grad(struct graph *g, value ids, value dy, struct type table)
{
    return graph_add(g, OP_EMBED_GRAD, NULL, 2, (value[]){ids, dy}, &table);
}

value g_pick(struct graph *g, value x, value ids)
{
    return two(g, OP_PICK, x, ids);
}

value g_pick_grad(struct graph *g, value ids, value dy, struct type x)
{
    return graph_add(g, OP_PICK_GRAD, NULL, 2, (value[]){ids, dy}, &x);
}

value g_causal_mask(struct graph *g, value x, double masked)
{
    return with_constant(g, OP_CAUSAL_MASK, x, masked);
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

value g_elu(struct graph *g, value x)
{
    return one(g, OP_ELU, x);
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

value g_silu(struct graph *g, value x)
{
    return one(g, OP_SILU, x);
}

value g_silu_grad(struct graph *g, value dy, value x)
{
    return two(g, OP_SILU_GRAD, dy, x);
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

value g_softmax(struct graph *g, value x)
{
    return one(g, OP_SOFTMAX, x);
}

value g_softmax_grad(struct graph *g, value dy, value y)
{
    return two(g, OP_SOFTMAX_GRAD, dy, y);
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

value g_sum_squares(struct graph *g, value x)
{
    return one(g, OP_SUM_SQUARES, x);
}

value g_store(struct graph *g, value leaf, value x)
{
    return two(g, OP_STORE, leaf, x);
}

value g_accumulate(struct graph *g, value leaf, value x)
{
    return two(g, OP_ACCUMULATE, leaf, x);
}

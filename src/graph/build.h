/* build.h - the functions that append nodes to a graph, one for each operator; models are written
 * with them.
 *
 * C = columns (last dimension), N = rows (all other dimensions), B = batch, T = sequence length,
 * H = heads, D = head size, V = vocabulary. Each call appends one node to the graph and returns
 * its first output; graph_out(v, i) is output i. */
#ifndef GRAPH_BUILD_H
#define GRAPH_BUILD_H

#include "graph/graph.h"

/* A leaf of a storage range, `offset` elements from its start; `name` is appended to the scope. */
value g_leaf(struct graph *g, enum storage storage, const char *name, struct type type,
             int64_t offset);
/* Like g_leaf, but `name` is the full name and the current scope is ignored. */
value g_leaf_named(struct graph *g, enum storage storage, const char *name, struct type type,
                   int64_t offset);
value g_input(struct graph *g, const char *name, struct type type);
value g_fill(struct graph *g, struct type type, double x);

value g_reshape(struct graph *g, value x, struct type shape);
value g_detach(struct graph *g, value x); /* x without a gradient */
value g_cast(struct graph *g, value x, enum dtype dtype);

value g_add(struct graph *g, value a, value b);
value g_sub(struct graph *g, value a, value b);
value g_mul(struct graph *g, value a, value b);
value g_div(struct graph *g, value a, value b);
value g_scale(struct graph *g, value x, double c);
value g_offset(struct graph *g, value x, double c);
value g_at_most(struct graph *g, value x, double c); /* min(x, c) */
value g_exp(struct graph *g, value x);
value g_log(struct graph *g, value x);
value g_sqrt(struct graph *g, value x);
value g_rsqrt(struct graph *g, value x);
value g_tanh(struct graph *g, value x);
value g_sigmoid(struct graph *g, value x); /* 1 / (1 + e^-x) */
value g_erf(struct graph *g, value x);

value g_relu(struct graph *g, value x);
value g_where_positive(struct graph *g, value a, value b);     /* a where b > 0, else 0 */
value g_where_not_positive(struct graph *g, value a, value b); /* a where b is not > 0, else 0 */

value g_sum_row(struct graph *g, value x); /* (...,C) -> (...,1) */
value g_max_row(struct graph *g, value x); /* (...,C) -> (...,1) */
/* Sums x over its leading dimensions; the result has the type t, whose dimensions are the last
 * dimensions of x. */
value g_sum_leading(struct graph *g, value x, struct type t);

/* (...,M,K) x (...,K,N) -> (...,M,N); ta and tb transpose the last two dimensions. A second
 * operand of rank 2 is used for all leading dimensions of the first (then ta must be false). */
value g_matmul(struct graph *g, value a, value b, bool ta, bool tb);
/* x (...,K) times w (K,N), or (N,K) with tb, plus bias (N) unless bias is `no value`. */
value g_linear(struct graph *g, value x, value w, value bias, bool tb);

/* (B,T,(H+(P-1)*KV)*D) -> P tensors (B,H,T,D). In x, each part after the first has KV = kv_heads
 * heads (kv_heads = 0: H heads); the result repeats each of these heads H/KV times. g_merge_heads,
 * the inverse, sums the repeated heads. */
value g_split_heads(struct graph *g, value x, int heads, int kv_heads, int parts);
value g_merge_heads(struct graph *g, int kv_heads, int parts, const value *x);
/* (...,C) -> n parts (...,columns[i]). */
value g_split(struct graph *g, value x, int n, const int64_t *columns);
value g_concat(struct graph *g, int n, const value *x); /* (...,C1), ... -> (...,C1+...) */
value g_embed(struct graph *g, value table, value ids); /* (V,C), ids (...) -> (...,C) */
value g_embed_grad(struct graph *g, value ids, value dy, struct type table);
value g_pick(struct graph *g, value x, value ids); /* (...,V), (...) -> (...,1): x[row, ids[row]] */
value g_pick_grad(struct graph *g, value ids, value dy, struct type x);

/* (...,T,T): elements whose key index is larger than their query index become `masked`.
 * g_column_mask: elements whose column is at least `columns` become `masked`. */
value g_causal_mask(struct graph *g, value x, double masked);
value g_column_mask(struct graph *g, value x, int64_t columns, double masked);
value g_dropout_mask(struct graph *g, value step, struct dropout drop, struct type t);
value g_dropout(struct graph *g, value x, value step, struct dropout drop);

value g_gelu(struct graph *g, value x, bool tanh);
value g_elu(struct graph *g, value x);
value g_gelu_grad(struct graph *g, value dy, value x, bool tanh);
/* -> y, mean (N), rstd (N) */
value g_layernorm(struct graph *g, value x, value w, value bias, double eps);
value g_rmsnorm(struct graph *g, value x, value w, double eps); /* -> y, 1 / rms (N) */
value g_silu(struct graph *g, value x);
value g_silu_grad(struct graph *g, value dy, value x);
/* silu(gate) * up; if `up` is `no value`, each row of `gate` has the gate and then up. */
value g_swiglu(struct graph *g, value gate, value up);
/* g_rope_table: positions (T) -> cosines and sines (T,D). g_rope: x (B,T,C) with its first `heads`
 * heads rotated. */
value g_rope_table(struct graph *g, value positions, int64_t D, double theta);
value g_rope(struct graph *g, value x, value table, int heads);
value g_softmax(struct graph *g, value x);
value g_softmax_grad(struct graph *g, value dy, value y);
/* logits, targets (...) -> mean loss (1), log-sum-exp (...). A row of logits has at least `vocab`
 * columns; later columns are padding. */
value g_cross_entropy(struct graph *g, value logits, value targets, int64_t vocab);
/* Packed q, k, v (B,T,(H+2*KV)*D) -> y (B,T,H*D), log-sum-exp (B,H,T); kv_heads 0: KV is H. */
value g_attention(struct graph *g, value qkv, value step, int heads, int kv_heads, bool causal,
                  struct dropout drop);
/* cache (2,B,Tmax,KV*D), written at `position` (1), qkv (B,1,(H+2*KV)*D) -> y (B,1,H*D). */
value g_attention_cached(struct graph *g, value cache, value qkv, value position, int heads,
                         int kv_heads);

value g_sum_squares(struct graph *g, value x); /* -> (1) */
value g_store(struct graph *g, value leaf, value x);
value g_accumulate(struct graph *g, value leaf, value x);

#endif

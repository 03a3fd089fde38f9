/* op_rules.h - declares each rule that op_list.h names; private to graph/. */
#ifndef GRAPH_OP_RULES_H
#define GRAPH_OP_RULES_H

#include "graph/op.h"

#define SHAPE(name)                                                                           \
    enum status shape_##name(struct node *n, const struct type *in, const struct type *given, \
                             struct type *out)
#define GRAD(name) \
    void grad_##name(struct graph *g, const struct node *n, const value *dout, value *din)
#define EXPAND(name) \
    void expand_##name(struct graph *g, const struct node *n, const value *in, value *out)
#define COST(name) \
    struct cost cost_##name(const struct node *n, const struct type *in, const struct type *out)

/* op_shape.c: rules shared by many operators */
SHAPE(leaf);
SHAPE(given);
SHAPE(same);
SHAPE(square);
SHAPE(scalar);
COST(free);
COST(move);
COST(pointwise);
COST(rows);
/* op_pointwise.c */
SHAPE(binary);
GRAD(add);
GRAD(sub);
GRAD(mul);
GRAD(div);
GRAD(scale);
GRAD(pass);
GRAD(stop);
GRAD(exp);
GRAD(log);
GRAD(sqrt);
GRAD(rsqrt);
GRAD(tanh);
GRAD(erf);
GRAD(causal_mask);
GRAD(column_mask);
GRAD(cast);
GRAD(gelu);
EXPAND(gelu);
EXPAND(gelu_grad);
SHAPE(gelu_both);
EXPAND(gelu_both);
COST(gelu);
SHAPE(slope);
GRAD(relu);
GRAD(elu);
EXPAND(elu);
EXPAND(elu_grad);
COST(elu);
GRAD(dropout);
EXPAND(dropout);
/* op_gated.c */
GRAD(silu);
EXPAND(silu);
EXPAND(silu_grad);
COST(silu);
SHAPE(swiglu);
SHAPE(swiglu_grad);
GRAD(swiglu);
EXPAND(swiglu);
EXPAND(swiglu_grad);
COST(swiglu);
COST(swiglu_grad);
/* op_rope.c */
SHAPE(rope_table);
SHAPE(rope);
GRAD(rope);
EXPAND(rope);
COST(rope_table);
COST(rope);
/* op_move.c */
SHAPE(split);
SHAPE(concat);
GRAD(split);
GRAD(concat);
SHAPE(reshape);
SHAPE(per_row);
SHAPE(trailing);
SHAPE(split_heads);
SHAPE(merge_heads);
SHAPE(embed);
SHAPE(pick);
SHAPE(embed_sum);
GRAD(reshape);
GRAD(sum_row);
GRAD(sum_leading);
GRAD(split_heads);
GRAD(merge_heads);
GRAD(embed);
GRAD(pick);
EXPAND(embed_sum);
COST(merge_heads);
COST(embed);
COST(embed_grad);
SHAPE(embed_grad_sum);
EXPAND(embed_grad_sum);
COST(embed_grad_sum);
SHAPE(embed_grad_add);
EXPAND(embed_grad_add);
COST(embed_grad_add);
/* op_matmul.c */
SHAPE(matmul);
SHAPE(linear);
SHAPE(pack);
GRAD(matmul);
GRAD(linear);
EXPAND(linear);
COST(matmul);
COST(linear);
SHAPE(linear_gelu);
EXPAND(linear_gelu);
COST(linear_gelu);
SHAPE(matmul_gelu_grad);
EXPAND(matmul_gelu_grad);
SHAPE(matmul_sum);
EXPAND(matmul_sum);
COST(matmul_sum);
/* op_float8.c */
SHAPE(quantise);
SHAPE(matmul_scaled);
SHAPE(quantise_gelu_grad);
SHAPE(quantise_add_layernorm);
EXPAND(quantise_gelu);
EXPAND(quantise_gelu_grad);
EXPAND(quantise_add_layernorm);
COST(quantise);
COST(quantise_gelu);
COST(quantise_norm);
COST(matmul_scaled);
/* op_norm.c */
SHAPE(layernorm);
SHAPE(layernorm_grad);
SHAPE(layernorm_grad_drop);
SHAPE(add_layernorm);
SHAPE(rmsnorm);
SHAPE(rmsnorm_grad);
SHAPE(add_rmsnorm);
GRAD(layernorm);
GRAD(rmsnorm);
GRAD(softmax);
EXPAND(layernorm);
EXPAND(layernorm_grad);
EXPAND(layernorm_grad_add);
EXPAND(layernorm_grad_drop);
EXPAND(add_layernorm);
EXPAND(rmsnorm);
EXPAND(rmsnorm_grad);
EXPAND(rmsnorm_grad_add);
EXPAND(add_rmsnorm);
EXPAND(softmax);
EXPAND(softmax_grad);
COST(norm);
COST(norm_grad);
COST(softmax);
/* op_attention.c */
SHAPE(attention);
SHAPE(attention_grad);
SHAPE(attention_cached);
SHAPE(score_softmax);
GRAD(attention);
EXPAND(attention);
EXPAND(attention_grad);
EXPAND(score_softmax);
EXPAND(score_softmax_grad);
COST(attention);
COST(score_softmax);
COST(attention_grad);
COST(attention_cached);
/* op_loss.c */
SHAPE(cross_entropy);
SHAPE(cross_entropy_both);
GRAD(cross_entropy);
EXPAND(cross_entropy);
EXPAND(cross_entropy_grad);
EXPAND(cross_entropy_both);
/* op_chain.c */
SHAPE(chain);
EXPAND(chain);
COST(chain);
/* op_state.c */
SHAPE(state);
SHAPE(adamw);
SHAPE(adamw_copy);
SHAPE(sgdm);
SHAPE(sgdm_copy);
EXPAND(adamw);
EXPAND(adamw_copy);
EXPAND(sgdm);
EXPAND(sgdm_copy);
GRAD(sum_squares);
EXPAND(sum_squares);
COST(store);
COST(adamw);
COST(sgdm);
COST(sum_squares);

/* The dtype of a result that may be bf16 or f32 for any input: that of `given` unless NULL. */
enum dtype result_dtype(enum dtype in, const struct type *given);

#undef SHAPE
#undef GRAD
#undef EXPAND
#undef COST

#endif

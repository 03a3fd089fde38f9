/* op_list.h - THE list of operators. Included once for the enum and once for the table (op.h, op.c).
 *
 * OP(NAME, level, inputs (least, most), shape rule, gradient rule, expansion, cost rule, flags)
 *
 *   level      PRIMITIVE: one arithmetic step; every backend has these. LAYER: one operation of a
 *              layer, as an eager framework runs it. FUSED: across operations, as a compiler would.
 *   gradient   NULL = not differentiable: asking for one is an error, never a zero.
 *   expansion  what the operator means in smaller ones; NULL = it is primitive.
 *   flags      VIEW      the output is the input's bytes under another type
 *              INPLACE   output 0 may take the place of input 0
 *              INPLACE_1 output 0 may take the place of input 1
 *              WRITES    output 0 is input 0, written in place: state; never dead code
 *              WRITES_3  the same for outputs and inputs 0, 1 and 2; WRITES_4: 3, too
 *              GRAD_ALL  the gradient rule takes the adjoints of all outputs, not only of output 0
 *
 * Shapes, meaning and gradients stand over the rules in op_*.c; docs/OPS.md is this table joined with
 * the kernels of each backend. */
/* clang-format off */
/* leaves and views */
OP(LEAF,             PRIMITIVE, 0, 0, shape_leaf,             NULL,               NULL,                    cost_free,     0)
OP(FILL,             PRIMITIVE, 0, 0, shape_leaf,             NULL,               NULL,                    cost_move,     0)
OP(RESHAPE,          PRIMITIVE, 1, 1, shape_reshape,          grad_reshape,       NULL,                    cost_free,     VIEW)
OP(DETACH,           PRIMITIVE, 1, 1, shape_same,             grad_stop,          NULL,                    cost_free,     VIEW)
/* pointwise; the second operand of two may be one per row, one per column, or one in all */
OP(ADD,              PRIMITIVE, 2, 2, shape_binary,           grad_add,           NULL,                    cost_pointwise, INPLACE | INPLACE_1)
OP(SUB,              PRIMITIVE, 2, 2, shape_binary,           grad_sub,           NULL,                    cost_pointwise, INPLACE)
OP(MUL,              PRIMITIVE, 2, 2, shape_binary,           grad_mul,           NULL,                    cost_pointwise, INPLACE | INPLACE_1)
OP(DIV,              PRIMITIVE, 2, 2, shape_binary,           grad_div,           NULL,                    cost_pointwise, INPLACE)
OP(SCALE,            PRIMITIVE, 1, 1, shape_same,             grad_scale,         NULL,                    cost_pointwise, INPLACE)
OP(OFFSET,           PRIMITIVE, 1, 1, shape_same,             grad_pass,          NULL,                    cost_pointwise, INPLACE)
OP(AT_MOST,          PRIMITIVE, 1, 1, shape_same,             NULL,               NULL,                    cost_pointwise, INPLACE)
OP(EXP,              PRIMITIVE, 1, 1, shape_same,             grad_exp,           NULL,                    cost_pointwise, INPLACE)
OP(LOG,              PRIMITIVE, 1, 1, shape_same,             grad_log,           NULL,                    cost_pointwise, INPLACE)
OP(SQRT,             PRIMITIVE, 1, 1, shape_same,             grad_sqrt,          NULL,                    cost_pointwise, INPLACE)
OP(RSQRT,            PRIMITIVE, 1, 1, shape_same,             grad_rsqrt,         NULL,                    cost_pointwise, INPLACE)
OP(TANH,             PRIMITIVE, 1, 1, shape_same,             grad_tanh,          NULL,                    cost_pointwise, INPLACE)
OP(ERF,              PRIMITIVE, 1, 1, shape_same,             grad_erf,           NULL,                    cost_pointwise, INPLACE)
OP(RELU,             PRIMITIVE, 1, 1, shape_same,             grad_relu,          NULL,                    cost_pointwise, INPLACE)
OP(RELU_GRAD,        PRIMITIVE, 2, 2, shape_slope,            NULL,               NULL,                    cost_pointwise, INPLACE | INPLACE_1)
OP(CAUSAL_MASK,      PRIMITIVE, 1, 1, shape_square,           grad_causal_mask,   NULL,                    cost_move,     INPLACE)
OP(COLUMN_MASK,      PRIMITIVE, 1, 1, shape_same,             grad_column_mask,   NULL,                    cost_move,     INPLACE)
OP(DROPOUT_MASK,     PRIMITIVE, 1, 1, shape_given,            NULL,               NULL,                    cost_pointwise, 0)
OP(CAST,             PRIMITIVE, 1, 1, shape_given,            grad_cast,          NULL,                    cost_move,     0)
/* over rows and columns */
OP(SUM_ROW,          PRIMITIVE, 1, 1, shape_per_row,          grad_sum_row,       NULL,                    cost_pointwise, 0)
OP(MAX_ROW,          PRIMITIVE, 1, 1, shape_per_row,          NULL,               NULL,                    cost_pointwise, 0)
OP(SUM_LEADING,      PRIMITIVE, 1, 1, shape_trailing,         grad_sum_leading,   NULL,                    cost_pointwise, 0)
/* products */
OP(MATMUL,           PRIMITIVE, 2, 2, shape_matmul,           grad_matmul,        NULL,                    cost_matmul,   0)
OP(PACK,             PRIMITIVE, 1, 1, shape_pack,             NULL,               NULL,                    cost_move,     0)
OP(MATMUL_SCALED,    PRIMITIVE, 4, 5, shape_matmul_scaled,    NULL,               NULL,                    cost_matmul_scaled, 0)
/* moving */
OP(SPLIT,            PRIMITIVE, 1, 1, shape_split,            grad_split,         NULL,                    cost_move,     GRAD_ALL)
OP(CONCAT,           PRIMITIVE, 2, 4, shape_concat,           grad_concat,        NULL,                    cost_move,     0)
OP(SPLIT_HEADS,      PRIMITIVE, 1, 1, shape_split_heads,      grad_split_heads,   NULL,                    cost_move,     GRAD_ALL)
OP(MERGE_HEADS,      PRIMITIVE, 1, 3, shape_merge_heads,      grad_merge_heads,   NULL,                    cost_merge_heads, 0)
OP(EMBED,            PRIMITIVE, 2, 2, shape_embed,            grad_embed,         NULL,                    cost_embed,    0)
OP(EMBED_GRAD,       PRIMITIVE, 2, 2, shape_given,            NULL,               NULL,                    cost_embed_grad, 0)
OP(PICK,             PRIMITIVE, 2, 2, shape_pick,             grad_pick,          NULL,                    cost_rows,     0)
OP(PICK_GRAD,        PRIMITIVE, 2, 2, shape_given,            NULL,               NULL,                    cost_move,     0)
OP(ROPE_TABLE,       PRIMITIVE, 1, 1, shape_rope_table,       NULL,               NULL,                    cost_rope_table, 0)
/* state */
OP(STORE,            PRIMITIVE, 2, 2, shape_state,            NULL,               NULL,                    cost_store,    WRITES)
OP(ACCUMULATE,       PRIMITIVE, 2, 2, shape_state,            NULL,               NULL,                    cost_pointwise, WRITES)
OP(QUANTISE,         PRIMITIVE, 3, 3, shape_quantise,         NULL,               NULL,                    cost_quantise, WRITES)
/* one operation of a layer */
OP(LINEAR,           LAYER,     3, 3, shape_linear,           grad_linear,        expand_linear,           cost_linear,   0)
OP(GELU,             LAYER,     1, 1, shape_same,             grad_gelu,          expand_gelu,             cost_gelu,     INPLACE)
OP(GELU_GRAD,        LAYER,     2, 2, shape_same,             NULL,               expand_gelu_grad,        cost_gelu,     INPLACE | INPLACE_1)
OP(ELU,              LAYER,     1, 1, shape_same,             grad_elu,           expand_elu,              cost_elu,      INPLACE)
OP(ELU_GRAD,         LAYER,     2, 2, shape_slope,            NULL,               expand_elu_grad,         cost_elu,      INPLACE | INPLACE_1)
OP(SILU,             LAYER,     1, 1, shape_same,             grad_silu,          expand_silu,             cost_silu,     INPLACE)
OP(SILU_GRAD,        LAYER,     2, 2, shape_slope,            NULL,               expand_silu_grad,        cost_silu,     INPLACE | INPLACE_1)
OP(ROPE,             LAYER,     2, 2, shape_rope,             grad_rope,          expand_rope,             cost_rope,     INPLACE)
OP(LAYERNORM,        LAYER,     2, 3, shape_layernorm,        grad_layernorm,     expand_layernorm,        cost_norm,     0)
OP(LAYERNORM_GRAD,   LAYER,     5, 5, shape_layernorm_grad,   NULL,               expand_layernorm_grad,   cost_norm_grad, INPLACE)
OP(RMSNORM,          LAYER,     2, 2, shape_rmsnorm,          grad_rmsnorm,       expand_rmsnorm,          cost_norm,     0)
OP(RMSNORM_GRAD,     LAYER,     4, 4, shape_rmsnorm_grad,     NULL,               expand_rmsnorm_grad,     cost_norm_grad, INPLACE)
OP(SOFTMAX,          LAYER,     1, 1, shape_same,             grad_softmax,       expand_softmax,          cost_softmax,  INPLACE)
OP(SOFTMAX_GRAD,     LAYER,     2, 2, shape_same,             NULL,               expand_softmax_grad,     cost_softmax,  INPLACE)
OP(DROPOUT,          LAYER,     2, 2, shape_same,             grad_dropout,       expand_dropout,          cost_pointwise, INPLACE)
OP(CROSS_ENTROPY,    LAYER,     2, 2, shape_cross_entropy,    grad_cross_entropy, expand_cross_entropy,    cost_softmax,  0)
OP(CROSS_ENTROPY_GRAD, LAYER,   4, 4, shape_same,             NULL,               expand_cross_entropy_grad, cost_softmax, INPLACE)
OP(SUM_SQUARES,      LAYER,     1, 1, shape_scalar,           grad_sum_squares,   expand_sum_squares,      cost_sum_squares, 0)
OP(ADAMW,            LAYER,     8, 8, shape_adamw,            NULL,               expand_adamw,            cost_adamw,    WRITES_3)
/* flash attention: the T x T matrices never exist */
OP(ATTENTION,        LAYER,     2, 2, shape_attention,        grad_attention,     expand_attention,        cost_attention, 0)
OP(ATTENTION_GRAD,   LAYER,     5, 5, shape_attention_grad,   NULL,               expand_attention_grad,   cost_attention_grad, 0)
OP(ATTENTION_CACHED, PRIMITIVE, 3, 3, shape_attention_cached, NULL,               NULL,                    cost_attention_cached, WRITES)
/* across operations, by the pass `fuse` */
OP(EMBED_SUM,        FUSED,     5, 5, shape_embed_sum,        NULL,               expand_embed_sum,        cost_embed,    0)
OP(EMBED_GRAD_SUM,   FUSED,     2, 2, shape_embed_grad_sum,   NULL,               expand_embed_grad_sum,   cost_embed_grad_sum, 0)
OP(GELU_BOTH,        FUSED,     1, 1, shape_gelu_both,        NULL,               expand_gelu_both,        cost_gelu,     INPLACE)
OP(LINEAR_GELU,      FUSED,     2, 3, shape_linear_gelu,      NULL,               expand_linear_gelu,      cost_linear_gelu, 0)
OP(MATMUL_GELU_GRAD, FUSED,     3, 3, shape_matmul_gelu_grad, NULL,               expand_matmul_gelu_grad, cost_linear_gelu, 0)
OP(MATMUL_SUM,       FUSED,     2, 2, shape_matmul_sum,       NULL,               expand_matmul_sum,       cost_matmul_sum, 0)
OP(ADD_LAYERNORM,    FUSED,     4, 5, shape_add_layernorm,    NULL,               expand_add_layernorm,    cost_norm,     INPLACE)
OP(EMBED_GRAD_ADD,   FUSED,   3, 3, shape_embed_grad_add,   NULL,               expand_embed_grad_add,   cost_embed_grad_add, INPLACE)
OP(LAYERNORM_GRAD_ADD, FUSED,   6, 6, shape_layernorm_grad,   NULL,               expand_layernorm_grad_add, cost_norm_grad, INPLACE)
OP(LAYERNORM_GRAD_DROP, FUSED,  7, 7, shape_layernorm_grad_drop, NULL,            expand_layernorm_grad_drop, cost_norm_grad, INPLACE)
OP(ADD_RMSNORM,      FUSED,     3, 3, shape_add_rmsnorm,      NULL,               expand_add_rmsnorm,      cost_norm,     INPLACE)
OP(RMSNORM_GRAD_ADD, FUSED,     5, 5, shape_rmsnorm_grad,     NULL,               expand_rmsnorm_grad_add, cost_norm_grad, INPLACE)
OP(SWIGLU,           FUSED,     1, 2, shape_swiglu,           grad_swiglu,        expand_swiglu,           cost_swiglu,   0)
OP(SWIGLU_GRAD,      FUSED,     2, 3, shape_swiglu_grad,      NULL,               expand_swiglu_grad,      cost_swiglu_grad, INPLACE_1)
OP(SCORE_SOFTMAX,    FUSED,     2, 2, shape_score_softmax,    NULL,               expand_score_softmax,    cost_score_softmax, INPLACE)
OP(SCORE_SOFTMAX_GRAD, FUSED,   3, 3, shape_same,             NULL,               expand_score_softmax_grad, cost_score_softmax, INPLACE)
OP(CROSS_ENTROPY_BOTH, FUSED,   3, 3, shape_cross_entropy_both, NULL,             expand_cross_entropy_both, cost_softmax, INPLACE)
OP(QUANTISE_GELU,    FUSED,     3, 3, shape_quantise,         NULL,               expand_quantise_gelu,    cost_quantise_gelu, WRITES)
OP(QUANTISE_GELU_GRAD, FUSED,   4, 4, shape_quantise_gelu_grad, NULL,             expand_quantise_gelu_grad, cost_quantise_gelu, WRITES)
OP(QUANTISE_ADD_LAYERNORM, FUSED, 5, 6, shape_quantise_add_layernorm, NULL,      expand_quantise_add_layernorm, cost_quantise_norm, WRITES)
OP(ADAMW_COPY,       FUSED,     9, 9, shape_adamw_copy,       NULL,               expand_adamw_copy,       cost_adamw,    WRITES_4)
/* what is left of pointwise neighbours, by the pass `chain` */
OP(CHAIN,            FUSED,     1, 9, shape_chain,            NULL,               expand_chain,            cost_chain,    INPLACE)
/* clang-format on */

/* op_list.h - THE list of operators, from which the enum (op.h), the declarations of the rules
 * (op_rules.h) and the table (op.c) are generated.
 *
 * OP(NAME, level, family, inputs (least, most), attributes, flags,
 *    precision, inputs that stay f32, shape rule, gradient rule, expansion, cost rule)
 *
 *   level       PRIMITIVE: has no definition in smaller operators; every backend implements it,
 *               except PACK, which only oneDNN has. LAYER: one operation of a layer, as in an eager
 *               framework. FUSED: several operations, as a compiler would fuse them.
 *   family      the row of a profile that counts the operator's time (enum family); BY_PLACE: the
 *               family of the layer that contains the node
 *   attributes  the schema in attr.c; `none`: no attributes
 *   flags       VIEW      the output is the input's bytes with another type
 *               INPLACE   output 0 may overwrite input 0
 *               INPLACE_1 output 0 may overwrite input 1
 *               WRITES(n) outputs 0 ... n - 1 are inputs 0 ... n - 1, state that the operator
 *                         updates in place; the node is never dead code
 *               GRAD_ALL  the gradient rule reads the adjoints of all outputs, not only of output 0
 *               NUMERICS  the operator's kernels depend on struct numerics
 *   precision   the type that the operator computes in under mixed precision (enum policy).
 *               IN(i): input i is always f32: parameters, statistics, scalars
 *   gradient    no_gradient: to request a gradient is an error (no zero gradient is substituted)
 *   expansion   the definition in terms of smaller operators; no_expansion: there is none
 *
 * Shapes, meaning and gradients are documented at the rules in op_*.c; docs/OPS.md has kernels. */
/* clang-format off */
/* leaves and views */
OP(LEAF,                   PRIMITIVE, BY_PLACE,   0, 0, leaf,          0,
   F32,      0,                      shape_given,                 no_gradient,        no_expansion,                  cost_free)
OP(FILL,                   PRIMITIVE, COPIES,     0, 0, constant,      0,
   F32,      0,                      shape_given,                 no_gradient,        no_expansion,                  cost_move)
OP(RESHAPE,                PRIMITIVE, BY_PLACE,   1, 1, none,          VIEW,
   AS_INPUT, 0,                      shape_reshape,               grad_reshape,       no_expansion,                  cost_free)
OP(DETACH,                 PRIMITIVE, BY_PLACE,   1, 1, none,          VIEW,
   AS_INPUT, 0,                      shape_same,                  grad_stop,          no_expansion,                  cost_free)
/* pointwise; a second operand may have one element per row, one per column, or one in total */
OP(ADD,                    PRIMITIVE, BY_PLACE,   2, 2, none,          INPLACE | INPLACE_1,
   WIDER,    0,                      shape_binary,                grad_add,           no_expansion,                  cost_pointwise)
OP(SUB,                    PRIMITIVE, BY_PLACE,   2, 2, none,          INPLACE,
   WIDER,    0,                      shape_binary,                grad_sub,           no_expansion,                  cost_pointwise)
OP(MUL,                    PRIMITIVE, BY_PLACE,   2, 2, none,          INPLACE | INPLACE_1,
   WIDER,    0,                      shape_binary,                grad_mul,           no_expansion,                  cost_pointwise)
OP(DIV,                    PRIMITIVE, BY_PLACE,   2, 2, none,          INPLACE,
   F32,      0,                      shape_binary,                grad_div,           no_expansion,                  cost_pointwise)
OP(SCALE,                  PRIMITIVE, BY_PLACE,   1, 1, constant,      INPLACE,
   AS_INPUT, 0,                      shape_same,                  grad_scale,         no_expansion,                  cost_pointwise)
OP(OFFSET,                 PRIMITIVE, BY_PLACE,   1, 1, constant,      INPLACE,
   AS_INPUT, 0,                      shape_same,                  grad_pass,          no_expansion,                  cost_pointwise)
OP(AT_MOST,                PRIMITIVE, BY_PLACE,   1, 1, constant,      INPLACE,
   AS_INPUT, 0,                      shape_same,                  no_gradient,        no_expansion,                  cost_pointwise)
OP(EXP,                    PRIMITIVE, BY_PLACE,   1, 1, none,          INPLACE,
   F32,      0,                      shape_same,                  grad_exp,           no_expansion,                  cost_pointwise)
OP(LOG,                    PRIMITIVE, BY_PLACE,   1, 1, none,          INPLACE,
   F32,      0,                      shape_same,                  grad_log,           no_expansion,                  cost_pointwise)
OP(SQRT,                   PRIMITIVE, BY_PLACE,   1, 1, none,          INPLACE,
   F32,      0,                      shape_same,                  grad_sqrt,          no_expansion,                  cost_pointwise)
OP(RSQRT,                  PRIMITIVE, BY_PLACE,   1, 1, none,          INPLACE,
   F32,      0,                      shape_same,                  grad_rsqrt,         no_expansion,                  cost_pointwise)
OP(TANH,                   PRIMITIVE, BY_PLACE,   1, 1, none,          INPLACE,
   F32,      0,                      shape_same,                  grad_tanh,          no_expansion,                  cost_pointwise)
OP(SIGMOID,                PRIMITIVE, BY_PLACE,   1, 1, none,          INPLACE,
   F32,      0,                      shape_same,                  grad_sigmoid,       no_expansion,                  cost_pointwise)
OP(ERF,                    PRIMITIVE, BY_PLACE,   1, 1, none,          INPLACE,
   F32,      0,                      shape_same,                  grad_erf,           no_expansion,                  cost_pointwise)
OP(RELU,                   PRIMITIVE, BY_PLACE,   1, 1, none,          INPLACE,
   AS_INPUT, 0,                      shape_same,                  grad_slope,         no_expansion,                  cost_pointwise)
OP(WHERE_POSITIVE,         PRIMITIVE, BY_PLACE,   2, 2, none,          INPLACE | INPLACE_1,
   AS_INPUT, 0,                      shape_slope,                 grad_where,         no_expansion,                  cost_pointwise)
OP(WHERE_NOT_POSITIVE,     PRIMITIVE, BY_PLACE,   2, 2, none,          INPLACE | INPLACE_1,
   AS_INPUT, 0,                      shape_slope,                 grad_where,         no_expansion,                  cost_pointwise)
OP(CAUSAL_MASK,            PRIMITIVE, BY_PLACE,   1, 1, constant,      INPLACE,
   AS_INPUT, 0,                      shape_square,                grad_causal_mask,   no_expansion,                  cost_move)
OP(COLUMN_MASK,            PRIMITIVE, BY_PLACE,   1, 1, column_mask,   INPLACE,
   AS_INPUT, 0,                      shape_same,                  grad_column_mask,   no_expansion,                  cost_move)
OP(DROPOUT_MASK,           PRIMITIVE, POINTWISE,  1, 1, dropout,       0,
   F32,      0,                      shape_given,                 no_gradient,        no_expansion,                  cost_pointwise)
OP(CAST,                   PRIMITIVE, COPIES,     1, 1, none,          0,
   AS_INPUT, 0,                      shape_given,                 grad_cast,          no_expansion,                  cost_move)
/* reductions over rows and columns */
OP(SUM_ROW,                PRIMITIVE, BY_PLACE,   1, 1, none,          0,
   F32,      0,                      shape_per_row,               grad_repeat,        no_expansion,                  cost_pointwise)
OP(MAX_ROW,                PRIMITIVE, BY_PLACE,   1, 1, none,          0,
   F32,      0,                      shape_per_row,               no_gradient,        no_expansion,                  cost_pointwise)
OP(SUM_LEADING,            PRIMITIVE, BY_PLACE,   1, 1, none,          0,
   ROWS,     0,                      shape_trailing,              grad_repeat,        no_expansion,                  cost_pointwise)
/* matmuls */
OP(MATMUL,                 PRIMITIVE, MATMUL,    2, 2, matmul,        NUMERICS,
   BF16,     0,                      shape_matmul,                grad_matmul,        no_expansion,                  cost_matmul)
OP(PACK,                   PRIMITIVE, COPIES,     1, 1, pack,          0,
   AS_INPUT, 0,                      shape_pack,                  no_gradient,        no_expansion,                  cost_move)
OP(MATMUL_SCALED,          PRIMITIVE, MATMUL,    4, 5, matmul_scaled, NUMERICS,
   F32,      0,                      shape_matmul_scaled,         no_gradient,        no_expansion,                  cost_matmul_scaled)
/* moving and gathering */
OP(SPLIT,                  PRIMITIVE, COPIES,     1, 1, split,         GRAD_ALL,
   AS_INPUT, 0,                      shape_split,                 grad_split,         no_expansion,                  cost_move)
OP(CONCAT,                 PRIMITIVE, COPIES,     2, 4, none,          0,
   AS_INPUT, 0,                      shape_concat,                grad_concat,        no_expansion,                  cost_move)
OP(SPLIT_HEADS,            PRIMITIVE, COPIES,     1, 1, heads,         GRAD_ALL,
   AS_INPUT, 0,                      shape_split_heads,           grad_split_heads,   no_expansion,                  cost_move)
OP(MERGE_HEADS,            PRIMITIVE, COPIES,     1, 3, heads,         0,
   AS_INPUT, 0,                      shape_merge_heads,           grad_merge_heads,   no_expansion,                  cost_merge_heads)
OP(EMBED,                  PRIMITIVE, EMBEDDINGS, 2, 2, none,          0,
   BF16,     IN(0),                  shape_embed,                 grad_embed,         no_expansion,                  cost_embed)
OP(EMBED_GRAD,             PRIMITIVE, EMBEDDINGS, 2, 2, none,          0,
   AS_INPUT, 0,                      shape_given,                 no_gradient,        no_expansion,                  cost_embed_grad)
OP(PICK,                   PRIMITIVE, LOSS,       2, 2, none,          0,
   F32,      0,                      shape_pick,                  grad_pick,          no_expansion,                  cost_rows)
OP(PICK_GRAD,              PRIMITIVE, LOSS,       2, 2, none,          0,
   F32,      0,                      shape_given,                 no_gradient,        no_expansion,                  cost_move)
OP(ROPE_TABLE,             PRIMITIVE, BY_PLACE,   1, 1, rope_table,    0,
   F32,      0,                      shape_rope_table,            no_gradient,        no_expansion,                  cost_rope_table)
/* state */
OP(STORE,                  PRIMITIVE, COPIES,     2, 2, none,          WRITES(1),
   AS_INPUT, 0,                      shape_state,                 no_gradient,        no_expansion,                  cost_store)
OP(ACCUMULATE,             PRIMITIVE, BY_PLACE,   2, 2, none,          WRITES(1),
   AS_INPUT, 0,                      shape_state,                 no_gradient,        no_expansion,                  cost_pointwise)
OP(QUANTIZE,               PRIMITIVE, COPIES,     3, 3, quantize,      WRITES(1),
   F32,      0,                      shape_quantize,              no_gradient,        no_expansion,                  cost_quantize)
/* communication between ranks; a collective runs concurrently until AWAIT of the same range */
OP(ALL_REDUCE,             PRIMITIVE, COMMUNICATION, 1, 1, group,      WRITES(1),
   AS_INPUT, 0,                      shape_range,                 no_gradient,        no_expansion,                  cost_all_reduce)
OP(REDUCE_SCATTER,         PRIMITIVE, COMMUNICATION, 1, 1, group,      WRITES(1),
   AS_INPUT, 0,                      shape_range,                 no_gradient,        no_expansion,                  cost_shards)
OP(ALL_GATHER,             PRIMITIVE, COMMUNICATION, 1, 1, group,      WRITES(1),
   AS_INPUT, 0,                      shape_range,                 no_gradient,        no_expansion,                  cost_shards)
OP(BROADCAST,              PRIMITIVE, COMMUNICATION, 1, 1, group,      WRITES(1),
   AS_INPUT, 0,                      shape_range,                 no_gradient,        no_expansion,                  cost_broadcast)
OP(AWAIT,                  PRIMITIVE, COMMUNICATION, 1, 1, group,      WRITES(1),
   AS_INPUT, 0,                      shape_range,                 no_gradient,        no_expansion,                  cost_free)
/* layer operations */
OP(LINEAR,                 LAYER,     MATMUL,    3, 3, linear,        NUMERICS,
   BF16,     IN(2),                  shape_linear,                grad_linear,        expand_linear,                 cost_linear)
OP(GELU,                   LAYER,     BY_PLACE,   1, 1, gelu,          INPLACE,
   BF16,     0,                      shape_same,                  grad_gelu,          expand_gelu,                   cost_gelu)
OP(GELU_GRAD,              LAYER,     BY_PLACE,   2, 2, gelu,          INPLACE | INPLACE_1,
   BF16,     0,                      shape_same,                  no_gradient,        expand_gelu_grad,              cost_gelu)
OP(ELU,                    LAYER,     BY_PLACE,   1, 1, none,          INPLACE,
   AS_INPUT, 0,                      shape_same,                  grad_slope,         expand_elu,                    cost_five)
OP(ELU_GRAD,               LAYER,     BY_PLACE,   2, 2, none,          INPLACE | INPLACE_1,
   AS_INPUT, 0,                      shape_slope,                 no_gradient,        expand_elu_grad,               cost_five)
OP(SILU,                   LAYER,     BY_PLACE,   1, 1, none,          INPLACE,
   BF16,     0,                      shape_same,                  grad_silu,          expand_silu,                   cost_five)
OP(SILU_GRAD,              LAYER,     BY_PLACE,   2, 2, none,          INPLACE | INPLACE_1,
   BF16,     0,                      shape_slope,                 no_gradient,        expand_silu_grad,              cost_five)
OP(ROPE,                   LAYER,     BY_PLACE,   2, 2, rope,          INPLACE,
   ROWS,     IN(1),                  shape_rope,                  grad_rope,          expand_rope,                   cost_rope)
OP(LAYERNORM,              LAYER,     NORMS,      2, 3, norm,          0,
   ROWS,     IN(1) | IN(2),          shape_layernorm,             grad_layernorm,     expand_layernorm,              cost_norm)
OP(LAYERNORM_GRAD,         LAYER,     NORMS,      5, 5, norm,          INPLACE,
   ROWS,     IN(2) | IN(3) | IN(4),  shape_layernorm_grad,        no_gradient,        expand_layernorm_grad,         cost_norm_grad)
OP(RMSNORM,                LAYER,     NORMS,      2, 2, norm,          0,
   ROWS,     IN(1),                  shape_rmsnorm,               grad_rmsnorm,       expand_rmsnorm,                cost_norm)
OP(RMSNORM_GRAD,           LAYER,     NORMS,      4, 4, norm,          INPLACE,
   ROWS,     IN(2) | IN(3),          shape_rmsnorm_grad,          no_gradient,        expand_rmsnorm_grad,           cost_norm_grad)
OP(SOFTMAX,                LAYER,     SOFTMAX,    1, 1, none,          INPLACE,
   ROWS,     0,                      shape_same,                  grad_softmax,       expand_softmax,                cost_five)
OP(SOFTMAX_GRAD,           LAYER,     SOFTMAX,    2, 2, none,          INPLACE,
   ROWS,     0,                      shape_same,                  no_gradient,        expand_softmax_grad,           cost_five)
OP(DROPOUT,                LAYER,     POINTWISE,  2, 2, dropout,       INPLACE,
   AS_INPUT, 0,                      shape_same,                  grad_dropout,       expand_dropout,                cost_pointwise)
OP(CROSS_ENTROPY,          LAYER,     LOSS,       2, 2, loss,          0,
   ROWS,     0,                      shape_cross_entropy,         grad_cross_entropy, expand_cross_entropy,          cost_five)
OP(CROSS_ENTROPY_GRAD,     LAYER,     LOSS,       4, 4, loss,          INPLACE,
   ROWS,     IN(2) | IN(3),          shape_same,                  no_gradient,        expand_cross_entropy_grad,     cost_five)
OP(SUM_SQUARES,            LAYER,     BY_PLACE,   1, 1, none,          0,
   F32,      0,                      shape_scalar,                grad_sum_squares,   expand_sum_squares,            cost_sum_squares)
OP(ADAMW,                  LAYER,     OPTIMIZER,  8, 8, adamw,         WRITES(3),
   F32,      0,                      shape_update,                no_gradient,        expand_adamw,                  cost_adamw)
OP(SGDM,                   LAYER,     OPTIMIZER,  5, 5, sgd,           WRITES(2),
   F32,      0,                      shape_update,                no_gradient,        expand_sgdm,                   cost_sgdm)
/* flash attention: the T x T matrices are never stored */
OP(ATTENTION,              LAYER,     ATTENTION,  2, 2, attention,     NUMERICS,
   BF16,     0,                      shape_attention,             grad_attention,     expand_attention,              cost_attention)
OP(ATTENTION_GRAD,         LAYER,     ATTENTION,  5, 5, attention,     NUMERICS,
   BF16,     IN(3),                  shape_attention_grad,        no_gradient,        expand_attention_grad,         cost_attention_grad)
OP(ATTENTION_CACHED,       PRIMITIVE, ATTENTION,  3, 3, attention,     WRITES(1),
   F32,      0,                      shape_attention_cached,      no_gradient,        no_expansion,                  cost_attention_cached)
/* fused by the pass `fuse`, except SWIGLU, which models build, and its gradient */
OP(EMBED_SUM,              FUSED,     EMBEDDINGS, 5, 5, dropout,       0,
   F32,      0,                      shape_embed_sum,             no_gradient,        expand_embed_sum,              cost_embed)
OP(EMBED_GRAD_SUM,         FUSED,     EMBEDDINGS, 2, 2, table,         0,
   F32,      0,                      shape_embed_grad_sum,        no_gradient,        expand_embed_grad_sum,         cost_embed_grad_sum)
OP(GELU_BOTH,              FUSED,     BY_PLACE,   1, 1, gelu,          INPLACE,
   F32,      0,                      shape_gelu_both,             no_gradient,        expand_gelu_both,              cost_gelu)
OP(LINEAR_GELU,            FUSED,     MATMUL,    2, 3, linear_gelu,   NUMERICS,
   F32,      0,                      shape_linear_gelu,           no_gradient,        expand_linear_gelu,            cost_linear_gelu)
OP(MATMUL_GELU_GRAD,       FUSED,     MATMUL,    3, 3, matmul_gelu,   NUMERICS,
   F32,      0,                      shape_matmul_gelu_grad,      no_gradient,        expand_matmul_gelu_grad,       cost_linear_gelu)
OP(MATMUL_SUM,             FUSED,     MATMUL,    2, 2, matmul,        NUMERICS,
   F32,      0,                      shape_matmul_sum,            no_gradient,        expand_matmul_sum,             cost_matmul_sum)
OP(ADD_LAYERNORM,          FUSED,     NORMS,      4, 5, norm_dropout,  INPLACE,
   F32,      0,                      shape_add_layernorm,         no_gradient,        expand_add_layernorm,          cost_norm)
OP(EMBED_GRAD_ADD,         FUSED,     EMBEDDINGS, 3, 3, none,          INPLACE,
   F32,      0,                      shape_embed_grad_add,        no_gradient,        expand_embed_grad_add,         cost_embed_grad_add)
OP(LAYERNORM_GRAD_ADD,     FUSED,     NORMS,      6, 6, norm,          INPLACE,
   F32,      0,                      shape_layernorm_grad,        no_gradient,        expand_layernorm_grad_add,     cost_norm_grad)
OP(LAYERNORM_GRAD_DROP,    FUSED,     NORMS,      7, 7, norm_dropout,  INPLACE,
   F32,      0,                      shape_layernorm_grad_drop,   no_gradient,        expand_layernorm_grad_drop,    cost_norm_grad)
OP(ADD_RMSNORM,            FUSED,     NORMS,      3, 3, norm,          INPLACE,
   F32,      0,                      shape_add_rmsnorm,           no_gradient,        expand_add_rmsnorm,            cost_norm)
OP(RMSNORM_GRAD_ADD,       FUSED,     NORMS,      5, 5, norm,          INPLACE,
   F32,      0,                      shape_rmsnorm_grad,          no_gradient,        expand_rmsnorm_grad_add,       cost_norm_grad)
OP(SWIGLU,                 FUSED,     BY_PLACE,   1, 2, none,          0,
   BF16,     0,                      shape_swiglu,                grad_swiglu,        expand_swiglu,                 cost_swiglu)
OP(SWIGLU_GRAD,            FUSED,     BY_PLACE,   2, 3, none,          INPLACE_1,
   BF16,     0,                      shape_swiglu_grad,           no_gradient,        expand_swiglu_grad,            cost_swiglu_grad)
OP(SCORE_SOFTMAX,          FUSED,     SOFTMAX,    2, 2, score,         INPLACE,
   F32,      0,                      shape_score_softmax,         no_gradient,        expand_score_softmax,          cost_score_softmax)
OP(SCORE_SOFTMAX_GRAD,     FUSED,     SOFTMAX,    3, 3, score,         INPLACE,
   F32,      0,                      shape_same,                  no_gradient,        expand_score_softmax_grad,     cost_score_softmax)
OP(CROSS_ENTROPY_BOTH,     FUSED,     LOSS,       3, 3, loss,          INPLACE,
   F32,      0,                      shape_cross_entropy_both,    no_gradient,        expand_cross_entropy_both,     cost_five)
OP(QUANTIZE_GELU,          FUSED,     POINTWISE,  3, 3, quantize_gelu, WRITES(1),
   F32,      0,                      shape_quantize,              no_gradient,        expand_quantize_gelu,          cost_quantize_gelu)
OP(QUANTIZE_GELU_GRAD,     FUSED,     POINTWISE,  4, 4, quantize_gelu, WRITES(1),
   F32,      0,                      shape_quantize_gelu_grad,    no_gradient,        expand_quantize_gelu_grad,     cost_quantize_gelu)
OP(QUANTIZE_ADD_LAYERNORM, FUSED,     NORMS,      5, 6, quantize_norm, WRITES(1),
   F32,      0,                      shape_quantize_add_layernorm, no_gradient,        expand_quantize_add_layernorm, cost_quantize_norm)
OP(ADAMW_COPY,             FUSED,     OPTIMIZER,  9, 9, adamw,         WRITES(4),
   F32,      0,                      shape_update_copy,           no_gradient,        expand_update_copy,            cost_adamw)
OP(SGDM_COPY,              FUSED,     OPTIMIZER,  6, 6, sgd,           WRITES(3),
   F32,      0,                      shape_update_copy,           no_gradient,        expand_update_copy,            cost_sgdm)
/* adjacent pointwise operators, fused by the pass `chain` */
OP(CHAIN,                  FUSED,     BY_PLACE,   1, 9, chain,         INPLACE,
   F32,      0,                      shape_chain,                 no_gradient,        expand_chain,                  cost_chain)
/* clang-format on */

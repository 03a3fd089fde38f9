/* op_list.h - THE list of operators. Included for the enum (op.h), for the declarations of rules
 * (op_rules.h) and for the table (op.c).
 *
 * OP(NAME, level, family, inputs (least, most), attributes, flags,
 *    precision, inputs that stay f32, shape rule, gradient rule, expansion, cost rule)
 *
 * The rules are the functions shape_..., grad_..., expand_... and cost_... of op_*.c.
 *
 *   level       PRIMITIVE: one arithmetic step; every backend implements these. LAYER: one
 *               operation of a layer, as in an eager framework. FUSED: across operations, as by a
 *               compiler.
 *   family      how a profile counts it (enum family); BY_PLACE: as the layer around it
 *   attributes  the schema in attr.c; `none`: no attributes
 *   flags       VIEW      the output is the input's bytes with another type
 *               INPLACE   output 0 may overwrite input 0
 *               INPLACE_1 output 0 may overwrite input 1
 *               WRITES    output 0 is input 0, which is state written in place; never dead code
 *               WRITES_2  the same for outputs and inputs 0 and 1
 *               WRITES_3, WRITES_4  the same for 0 to 2, for 0 to 3
 *               GRAD_ALL  the gradient rule reads the adjoints of all outputs, not only of output 0
 *               NUMERICS  its kernels depend on struct numerics
 *   precision   the type it computes in under mixed precision (enum policy, pass/precision.c).
 *               IN(i): input i is always f32: parameters, statistics, scalars
 *   gradient    none: not differentiable; requesting a gradient is an error, it is never zero.
 *   expansion   the definition in terms of smaller operators; none: it is primitive.
 *
 * Shapes, meaning and gradients are documented at the rules in op_*.c; docs/OPS.md adds kernels. */
/* clang-format off */
/* leaves and views */
OP(LEAF,                   PRIMITIVE, BY_PLACE,   0, 0, leaf,          0,
   F32,      0,                     leaf,                   none,          none,                   free)
OP(FILL,                   PRIMITIVE, COPIES,     0, 0, constant,      0,
   F32,      0,                     leaf,                   none,          none,                   move)
OP(RESHAPE,                PRIMITIVE, BY_PLACE,   1, 1, none,          VIEW,
   AS_INPUT, 0,                     reshape,                reshape,       none,                   free)
OP(DETACH,                 PRIMITIVE, BY_PLACE,   1, 1, none,          VIEW,
   AS_INPUT, 0,                     same,                   stop,          none,                   free)
/* pointwise; a second operand may have one element per row, one per column, or one in total */
OP(ADD,                    PRIMITIVE, BY_PLACE,   2, 2, none,          INPLACE | INPLACE_1,
   WIDER,    0,                     binary,                 add,           none,                   pointwise)
OP(SUB,                    PRIMITIVE, BY_PLACE,   2, 2, none,          INPLACE,
   WIDER,    0,                     binary,                 sub,           none,                   pointwise)
OP(MUL,                    PRIMITIVE, BY_PLACE,   2, 2, none,          INPLACE | INPLACE_1,
   WIDER,    0,                     binary,                 mul,           none,                   pointwise)
OP(DIV,                    PRIMITIVE, BY_PLACE,   2, 2, none,          INPLACE,
   F32,      0,                     binary,                 div,           none,                   pointwise)
OP(SCALE,                  PRIMITIVE, BY_PLACE,   1, 1, constant,      INPLACE,
   AS_INPUT, 0,                     same,                   scale,         none,                   pointwise)
OP(OFFSET,                 PRIMITIVE, BY_PLACE,   1, 1, constant,      INPLACE,
   AS_INPUT, 0,                     same,                   pass,          none,                   pointwise)
OP(AT_MOST,                PRIMITIVE, BY_PLACE,   1, 1, constant,      INPLACE,
   AS_INPUT, 0,                     same,                   none,          none,                   pointwise)
OP(EXP,                    PRIMITIVE, BY_PLACE,   1, 1, none,          INPLACE,
   F32,      0,                     same,                   exp,           none,                   pointwise)
OP(LOG,                    PRIMITIVE, BY_PLACE,   1, 1, none,          INPLACE,
   F32,      0,                     same,                   log,           none,                   pointwise)
OP(SQRT,                   PRIMITIVE, BY_PLACE,   1, 1, none,          INPLACE,
   F32,      0,                     same,                   sqrt,          none,                   pointwise)
OP(RSQRT,                  PRIMITIVE, BY_PLACE,   1, 1, none,          INPLACE,
   F32,      0,                     same,                   rsqrt,         none,                   pointwise)
OP(TANH,                   PRIMITIVE, BY_PLACE,   1, 1, none,          INPLACE,
   F32,      0,                     same,                   tanh,          none,                   pointwise)
OP(ERF,                    PRIMITIVE, BY_PLACE,   1, 1, none,          INPLACE,
   F32,      0,                     same,                   erf,           none,                   pointwise)
OP(RELU,                   PRIMITIVE, BY_PLACE,   1, 1, none,          INPLACE,
   AS_INPUT, 0,                     same,                   relu,          none,                   pointwise)
OP(RELU_GRAD,              PRIMITIVE, BY_PLACE,   2, 2, none,          INPLACE | INPLACE_1,
   AS_INPUT, 0,                     slope,                  none,          none,                   pointwise)
OP(CAUSAL_MASK,            PRIMITIVE, BY_PLACE,   1, 1, constant,      INPLACE,
   AS_INPUT, 0,                     square,                 causal_mask,   none,                   move)
OP(COLUMN_MASK,            PRIMITIVE, BY_PLACE,   1, 1, column_mask,   INPLACE,
   AS_INPUT, 0,                     same,                   column_mask,   none,                   move)
OP(DROPOUT_MASK,           PRIMITIVE, POINTWISE,  1, 1, dropout,       0,
   F32,      0,                     given,                  none,          none,                   pointwise)
OP(CAST,                   PRIMITIVE, COPIES,     1, 1, none,          0,
   AS_INPUT, 0,                     given,                  cast,          none,                   move)
/* reductions over rows and columns */
OP(SUM_ROW,                PRIMITIVE, BY_PLACE,   1, 1, none,          0,
   F32,      0,                     per_row,                sum_row,       none,                   pointwise)
OP(MAX_ROW,                PRIMITIVE, BY_PLACE,   1, 1, none,          0,
   F32,      0,                     per_row,                none,          none,                   pointwise)
OP(SUM_LEADING,            PRIMITIVE, BY_PLACE,   1, 1, none,          0,
   ROWS,     0,                     trailing,               sum_leading,   none,                   pointwise)
/* matmuls */
OP(MATMUL,                 PRIMITIVE, MATMUL,     2, 2, matmul,        NUMERICS,
   BF16,     0,                     matmul,                 matmul,        none,                   matmul)
OP(PACK,                   PRIMITIVE, COPIES,     1, 1, pack,          0,
   AS_INPUT, 0,                     pack,                   none,          none,                   move)
OP(MATMUL_SCALED,          PRIMITIVE, MATMUL,     4, 5, matmul_scaled, NUMERICS,
   F32,      0,                     matmul_scaled,          none,          none,                   matmul_scaled)
/* moving and gathering */
OP(SPLIT,                  PRIMITIVE, COPIES,     1, 1, split,         GRAD_ALL,
   AS_INPUT, 0,                     split,                  split,         none,                   move)
OP(CONCAT,                 PRIMITIVE, COPIES,     2, 4, none,          0,
   AS_INPUT, 0,                     concat,                 concat,        none,                   move)
OP(SPLIT_HEADS,            PRIMITIVE, COPIES,     1, 1, heads,         GRAD_ALL,
   AS_INPUT, 0,                     split_heads,            split_heads,   none,                   move)
OP(MERGE_HEADS,            PRIMITIVE, COPIES,     1, 3, heads,         0,
   AS_INPUT, 0,                     merge_heads,            merge_heads,   none,                   merge_heads)
OP(EMBED,                  PRIMITIVE, EMBEDDINGS, 2, 2, none,          0,
   BF16,     IN(0),                 embed,                  embed,         none,                   embed)
OP(EMBED_GRAD,             PRIMITIVE, EMBEDDINGS, 2, 2, none,          0,
   AS_INPUT, 0,                     given,                  none,          none,                   embed_grad)
OP(PICK,                   PRIMITIVE, LOSS,       2, 2, none,          0,
   F32,      0,                     pick,                   pick,          none,                   rows)
OP(PICK_GRAD,              PRIMITIVE, LOSS,       2, 2, none,          0,
   F32,      0,                     given,                  none,          none,                   move)
OP(ROPE_TABLE,             PRIMITIVE, BY_PLACE,   1, 1, rope_table,    0,
   F32,      0,                     rope_table,             none,          none,                   rope_table)
/* state */
OP(STORE,                  PRIMITIVE, COPIES,     2, 2, none,          WRITES,
   AS_INPUT, 0,                     state,                  none,          none,                   store)
OP(ACCUMULATE,             PRIMITIVE, BY_PLACE,   2, 2, none,          WRITES,
   AS_INPUT, 0,                     state,                  none,          none,                   pointwise)
OP(QUANTISE,               PRIMITIVE, COPIES,     3, 3, quantise,      WRITES,
   F32,      0,                     quantise,               none,          none,                   quantise)
/* layer operations */
OP(LINEAR,                 LAYER,     MATMUL,     3, 3, linear,        NUMERICS,
   BF16,     IN(2),                 linear,                 linear,        linear,                 linear)
OP(GELU,                   LAYER,     BY_PLACE,   1, 1, gelu,          INPLACE,
   BF16,     0,                     same,                   gelu,          gelu,                   gelu)
OP(GELU_GRAD,              LAYER,     BY_PLACE,   2, 2, gelu,          INPLACE | INPLACE_1,
   BF16,     0,                     same,                   none,          gelu_grad,              gelu)
OP(ELU,                    LAYER,     BY_PLACE,   1, 1, none,          INPLACE,
   AS_INPUT, 0,                     same,                   elu,           elu,                    elu)
OP(ELU_GRAD,               LAYER,     BY_PLACE,   2, 2, none,          INPLACE | INPLACE_1,
   AS_INPUT, 0,                     slope,                  none,          elu_grad,               elu)
OP(SILU,                   LAYER,     BY_PLACE,   1, 1, none,          INPLACE,
   BF16,     0,                     same,                   silu,          silu,                   silu)
OP(SILU_GRAD,              LAYER,     BY_PLACE,   2, 2, none,          INPLACE | INPLACE_1,
   BF16,     0,                     slope,                  none,          silu_grad,              silu)
OP(ROPE,                   LAYER,     BY_PLACE,   2, 2, rope,          INPLACE,
   ROWS,     IN(1),                 rope,                   rope,          rope,                   rope)
OP(LAYERNORM,              LAYER,     NORMS,      2, 3, norm,          0,
   ROWS,     IN(1) | IN(2),         layernorm,              layernorm,     layernorm,              norm)
OP(LAYERNORM_GRAD,         LAYER,     NORMS,      5, 5, norm,          INPLACE,
   ROWS,     IN(2) | IN(3) | IN(4), layernorm_grad,         none,          layernorm_grad,         norm_grad)
OP(RMSNORM,                LAYER,     NORMS,      2, 2, norm,          0,
   ROWS,     IN(1),                 rmsnorm,                rmsnorm,       rmsnorm,                norm)
OP(RMSNORM_GRAD,           LAYER,     NORMS,      4, 4, norm,          INPLACE,
   ROWS,     IN(2) | IN(3),         rmsnorm_grad,           none,          rmsnorm_grad,           norm_grad)
OP(SOFTMAX,                LAYER,     SOFTMAX,    1, 1, none,          INPLACE,
   ROWS,     0,                     same,                   softmax,       softmax,                softmax)
OP(SOFTMAX_GRAD,           LAYER,     SOFTMAX,    2, 2, none,          INPLACE,
   ROWS,     0,                     same,                   none,          softmax_grad,           softmax)
OP(DROPOUT,                LAYER,     POINTWISE,  2, 2, dropout,       INPLACE,
   AS_INPUT, 0,                     same,                   dropout,       dropout,                pointwise)
OP(CROSS_ENTROPY,          LAYER,     LOSS,       2, 2, loss,          0,
   ROWS,     0,                     cross_entropy,          cross_entropy, cross_entropy,          softmax)
OP(CROSS_ENTROPY_GRAD,     LAYER,     LOSS,       4, 4, loss,          INPLACE,
   ROWS,     IN(2) | IN(3),         same,                   none,          cross_entropy_grad,     softmax)
OP(SUM_SQUARES,            LAYER,     BY_PLACE,   1, 1, none,          0,
   F32,      0,                     scalar,                 sum_squares,   sum_squares,            sum_squares)
OP(ADAMW,                  LAYER,     OPTIMIZER,  8, 8, adamw,         WRITES_3,
   F32,      0,                     adamw,                  none,          adamw,                  adamw)
OP(SGDM,                   LAYER,     OPTIMIZER,  5, 5, sgd,           WRITES_2,
   F32,      0,                     sgdm,                   none,          sgdm,                   sgdm)
/* flash attention: the T x T matrices are never stored */
OP(ATTENTION,              LAYER,     ATTENTION,  2, 2, attention,     NUMERICS,
   BF16,     0,                     attention,              attention,     attention,              attention)
OP(ATTENTION_GRAD,         LAYER,     ATTENTION,  5, 5, attention,     NUMERICS,
   BF16,     IN(3),                 attention_grad,         none,          attention_grad,         attention_grad)
OP(ATTENTION_CACHED,       PRIMITIVE, ATTENTION,  3, 3, attention,     WRITES,
   F32,      0,                     attention_cached,       none,          none,                   attention_cached)
/* fused across operations by the pass `fuse` */
OP(EMBED_SUM,              FUSED,     EMBEDDINGS, 5, 5, dropout,       0,
   F32,      0,                     embed_sum,              none,          embed_sum,              embed)
OP(EMBED_GRAD_SUM,         FUSED,     EMBEDDINGS, 2, 2, table,         0,
   F32,      0,                     embed_grad_sum,         none,          embed_grad_sum,         embed_grad_sum)
OP(GELU_BOTH,              FUSED,     BY_PLACE,   1, 1, gelu,          INPLACE,
   F32,      0,                     gelu_both,              none,          gelu_both,              gelu)
OP(LINEAR_GELU,            FUSED,     MATMUL,     2, 3, linear_gelu,   NUMERICS,
   F32,      0,                     linear_gelu,            none,          linear_gelu,            linear_gelu)
OP(MATMUL_GELU_GRAD,       FUSED,     MATMUL,     3, 3, matmul_gelu,   NUMERICS,
   F32,      0,                     matmul_gelu_grad,       none,          matmul_gelu_grad,       linear_gelu)
OP(MATMUL_SUM,             FUSED,     MATMUL,     2, 2, matmul,        NUMERICS,
   F32,      0,                     matmul_sum,             none,          matmul_sum,             matmul_sum)
OP(ADD_LAYERNORM,          FUSED,     NORMS,      4, 5, norm_dropout,  INPLACE,
   F32,      0,                     add_layernorm,          none,          add_layernorm,          norm)
OP(EMBED_GRAD_ADD,         FUSED,     EMBEDDINGS, 3, 3, none,          INPLACE,
   F32,      0,                     embed_grad_add,         none,          embed_grad_add,         embed_grad_add)
OP(LAYERNORM_GRAD_ADD,     FUSED,     NORMS,      6, 6, norm,          INPLACE,
   F32,      0,                     layernorm_grad,         none,          layernorm_grad_add,     norm_grad)
OP(LAYERNORM_GRAD_DROP,    FUSED,     NORMS,      7, 7, norm_dropout,  INPLACE,
   F32,      0,                     layernorm_grad_drop,    none,          layernorm_grad_drop,    norm_grad)
OP(ADD_RMSNORM,            FUSED,     NORMS,      3, 3, norm,          INPLACE,
   F32,      0,                     add_rmsnorm,            none,          add_rmsnorm,            norm)
OP(RMSNORM_GRAD_ADD,       FUSED,     NORMS,      5, 5, norm,          INPLACE,
   F32,      0,                     rmsnorm_grad,           none,          rmsnorm_grad_add,       norm_grad)
OP(SWIGLU,                 FUSED,     BY_PLACE,   1, 2, none,          0,
   BF16,     0,                     swiglu,                 swiglu,        swiglu,                 swiglu)
OP(SWIGLU_GRAD,            FUSED,     BY_PLACE,   2, 3, none,          INPLACE_1,
   BF16,     0,                     swiglu_grad,            none,          swiglu_grad,            swiglu_grad)
OP(SCORE_SOFTMAX,          FUSED,     SOFTMAX,    2, 2, score,         INPLACE,
   F32,      0,                     score_softmax,          none,          score_softmax,          score_softmax)
OP(SCORE_SOFTMAX_GRAD,     FUSED,     SOFTMAX,    3, 3, score,         INPLACE,
   F32,      0,                     same,                   none,          score_softmax_grad,     score_softmax)
OP(CROSS_ENTROPY_BOTH,     FUSED,     LOSS,       3, 3, loss,          INPLACE,
   F32,      0,                     cross_entropy_both,     none,          cross_entropy_both,     softmax)
OP(QUANTISE_GELU,          FUSED,     POINTWISE,  3, 3, quantise_gelu, WRITES,
   F32,      0,                     quantise,               none,          quantise_gelu,          quantise_gelu)
OP(QUANTISE_GELU_GRAD,     FUSED,     POINTWISE,  4, 4, quantise_gelu, WRITES,
   F32,      0,                     quantise_gelu_grad,     none,          quantise_gelu_grad,     quantise_gelu)
OP(QUANTISE_ADD_LAYERNORM, FUSED,     NORMS,      5, 6, quantise_norm, WRITES,
   F32,      0,                     quantise_add_layernorm, none,          quantise_add_layernorm, quantise_norm)
OP(ADAMW_COPY,             FUSED,     OPTIMIZER,  9, 9, adamw,         WRITES_4,
   F32,      0,                     adamw_copy,             none,          adamw_copy,             adamw)
OP(SGDM_COPY,              FUSED,     OPTIMIZER,  6, 6, sgd,           WRITES_3,
   F32,      0,                     sgdm_copy,              none,          sgdm_copy,              sgdm)
/* adjacent pointwise operators, fused by the pass `chain` */
OP(CHAIN,                  FUSED,     BY_PLACE,   1, 9, chain,         INPLACE,
   F32,      0,                     chain,                  none,          chain,                  chain)
/* clang-format on */

/* cases_rows.h - cases of rows that are selected by ids and of few columns; a part of cases.c, with
 * its macros. cases.c has these cases at the end, because the contents of a case depend on its
 * index and older cases must not change. */
#ifndef CHECK_CASES_ROWS_H
#define CHECK_CASES_ROWS_H

/* clang-format off */
/* Logits of a model that predicts the target well: losses of 1e-5 to 1e-2. */
#define LEARNED(name, vocab_, target, rows, columns) \
    .what = name, .attr = {.loss = {vocab_}}, .no_differences = "they are larger than the loss", \
    .in = {{F(rows, columns), FILL_LARGE_COLUMN, .x = target}, {I(rows), .fill = FILL_CONSTANT, .x = target}
#define ROWS_CASES \
    {OP_EMBED_SUM, "all kept", .attr = {.drop = NO_DROPOUT}, .given = TYPE(9,5,48), \
     .in = {{F(65,48), .stays_f32 = true}, IDS(65, 9,5), {F(64,48), .stays_f32 = true}, IDS(64, 5), STEP}}, \
    {OP_EMBED_GRAD_SUM, "small", .attr = {.table = {11}}, .in = {IDS(7, 5), {F(2,5,9)}}, .given = TYPE(11,9), .given_stays_f32 = true}, \
    {OP_EMBED_GRAD_SUM, "vectors", .attr = {.table = {67}}, .in = {IDS(65, 61), {F(19,61,72)}}, .given = TYPE(67,72), .given_stays_f32 = true}, \
    {OP_EMBED_GRAD_SUM, "few rows", .attr = {.table = {5}}, .in = {IDS(3, 131), {F(2,131,64)}}, .given = TYPE(5,64), .given_stays_f32 = true}, \
    {OP_EMBED_GRAD_SUM, "long rows", .attr = {.table = {9}}, .in = {IDS(9, 5), {F(3,5,2112)}}, .given = TYPE(9,2112), .given_stays_f32 = true}, \
    {OP_EMBED_GRAD_SUM, "long sequences", .attr = {.table = {5003}}, .in = {IDS(5003, 4500), {F(2,4500,8)}}, .given = TYPE(5003,8), .given_stays_f32 = true}, \
    {OP_CROSS_ENTROPY_BOTH, "65 of 128", .attr = {.loss = {65}}, .in = {{F(513,128), FILL_WIDE}, IDS(65, 513), SCALAR(0.75)}}, \
    {OP_CROSS_ENTROPY_BOTH, "71 of 72", .attr = {.loss = {71}}, .in = {{F(2,5,72)}, IDS(71, 2,5), SCALAR(0.75)}}, \
    {OP_CROSS_ENTROPY_BOTH, "8 of 8", .attr = {.loss = {8}}, .in = {{F(300,8)}, IDS(8, 300), SCALAR(0.75)}}, \
    {OP_CROSS_ENTROPY, LEARNED("learned", 65, 3, 131, 65)}}, \
    {OP_CROSS_ENTROPY, LEARNED("learned, padded", 2051, 2050, 5, 2053)}}, \
    {OP_CROSS_ENTROPY_BOTH, LEARNED("learned", 65, 64, 131, 65), SCALAR(0.75)}}, \
    {OP_CROSS_ENTROPY_BOTH, LEARNED("learned, padded", 65, 7, 131, 128), SCALAR(0.75)}}, \
    {OP_CROSS_ENTROPY_BOTH, LEARNED("learned, 2051 columns", 2051, 0, 5, 2053), SCALAR(0.75)}}, \
    {OP_CROSS_ENTROPY_BOTH, LEARNED("learned, 5000 columns", 4999, 1234, 3, 5000), SCALAR(0.75)}},
/* Gradients that ranks summed in bf16. */
#define REDUCED_CASES \
    {OP_ADAMW, "bf16 gradient", .attr = {.adamw = {0.9, 0.95, 1e-8, 0.1, 1003}}, \
     .in = {{F(2051), .stays_f32 = true}, {F(2051), .stays_f32 = true}, {F(2051), FILL_POSITIVE, .stays_f32 = true}, {F(2051)}, ADAMW_SCALARS}}, \
    {OP_SGDM, "bf16 gradient", .attr = {.sgd = {0.9, 0.1, 1003}}, .in = {{F(2051), .stays_f32 = true}, {F(2051), .stays_f32 = true}, {F(2051)}, SGD_SCALARS}}, \
    {OP_ADAMW_COPY, "bf16 gradient", .attr = {.adamw = {0.9, 0.95, 1e-8, 0.1, 1003}}, \
     .in = {{F(2051), .stays_f32 = true}, {F(2051), .stays_f32 = true}, {F(2051), FILL_POSITIVE, .stays_f32 = true}, COPY(2051), {F(2051)}, ADAMW_SCALARS}}, \
    {OP_SGDM_COPY, "bf16 gradient", .attr = {.sgd = {0.9, 0.1, 1003}}, .in = {{F(2051), .stays_f32 = true}, {F(2051), .stays_f32 = true}, COPY(2051), {F(2051)}, SGD_SCALARS}},

/* clang-format on */

#endif

/* cases_matmul.h - cases of matmuls; a part of cases.c, with its macros. */
#ifndef CHECK_CASES_MATMUL_H
#define CHECK_CASES_MATMUL_H

/* clang-format off */
/* Cases with a GELU epilogue whose result has several tiles of the kernels for compute capability
 * 9.0, or only a part of one tile. */
#define CASES_WITH_GELU \
    {OP_LINEAR_GELU, "several tiles, odd rows", .attr = {.linear = {.tanh = true, .keep = true}}, .loss_outputs = 2, .no_differences = SLOW, \
     .in = {{F(1,251,200)}, {F(200,376)}, {F(376), .stays_f32 = true}}}, \
    {OP_LINEAR_GELU, "several tiles, erf", .attr = {.linear = {.keep = true}}, .loss_outputs = 2, .no_differences = SLOW, \
     .in = {{F(251,584)}, {F(584,376)}, {F(376), .stays_f32 = true}}}, \
    {OP_LINEAR_GELU, "several tiles, no bias, w transposed", .attr = {.linear = {.tb = true}}, .in = {{F(387,328)}, {F(520,328)}}, .no_differences = SLOW}, \
    {OP_LINEAR_GELU, "rows of 8", .attr = {.linear = {.tanh = true, .keep = true}}, .loss_outputs = 2, \
     .in = {{F(7,8)}, {F(8,24)}, {F(24), .stays_f32 = true}}}, \
    {OP_MATMUL_GELU_GRAD, "several tiles, odd rows, w transposed", .attr = {.matmul = {.tb = true, .tanh = true}}, OF_ROUNDED_MATMUL, .no_differences = SLOW, \
     .in = {{F(1,251,200)}, {F(376,200)}, {F(1,251,376)}}}, \
    {OP_MATMUL_GELU_GRAD, "several tiles, erf", .attr = {.matmul = {false}}, OF_ROUNDED_MATMUL, .no_differences = SLOW, \
     .in = {{F(251,584)}, {F(584,376)}, {F(251,376)}}}, \
    {OP_MATMUL_GELU_GRAD, "many tiles of a short sum", .attr = {.matmul = {.tb = true}}, OF_ROUNDED_MATMUL, .in = {{F(1000,8)}, {F(128,8)}, {F(1000,128)}}, \
     .no_differences = SLOW}, \
    {OP_MATMUL_GELU_GRAD, "rows of 8", .attr = {.matmul = {.tb = true}}, OF_ROUNDED_MATMUL, .in = {{F(7,8)}, {F(24,8)}, {F(7,24)}}},
/* clang-format on */

/* clang-format off */
/* Cases without an epilogue: several tiles of which the last is partial, K of several pipeline
 * stages of which the last is partial, all transposes, and stream-K blocks whose share ends within
 * a tile, also with few SMs. */
#define CASES_OF_TILES \
    {OP_MATMUL, "several tiles, odd rows", .in = {{F(1,251,200)}, {F(200,408)}}, .no_differences = SLOW}, \
    {OP_MATMUL, "several tiles, odd rows, b transposed", .attr = {.matmul = {.tb = true}}, .in = {{F(387,328)}, {F(520,328)}}, .no_differences = SLOW}, \
    {OP_MATMUL, "many tiles of a short sum", .in = {{F(8600,24)}, {F(24,184)}}, .no_differences = SLOW}, \
    {OP_MATMUL, "many tiles of a short sum, b transposed", .attr = {.matmul = {.tb = true}}, .in = {{F(8600,8)}, {F(184,8)}}, .no_differences = SLOW}, \
    {OP_MATMUL, "several tiles, a transposed", .attr = {.matmul = {.ta = true}}, .in = {{F(33,131)}, {F(33,67)}}, .no_differences = SLOW}, \
    {OP_MATMUL, "several tiles, in floats", .attr = {.matmul = {.tb = true}}, .in = {{F(131,136)}, {F(264,136)}}, .given = TYPE(131,264), .given_stays_f32 = true, \
     .no_differences = SLOW}, \
    {OP_MATMUL, "gradient of a weight, shares of several tiles", .attr = {.matmul = {.ta = true}}, .in = {{F(587,520)}, {F(587,776)}}, \
     .given = TYPE(520,776), .given_stays_f32 = true, .no_differences = SLOW}, \
    {OP_MATMUL, "gradient of a weight, shares of a tile", .attr = {.matmul = {.ta = true}}, .in = {{F(1031,72)}, {F(1031,136)}}, \
     .given = TYPE(72,136), .given_stays_f32 = true, .no_differences = SLOW}, \
    {OP_MATMUL, "shares of several tiles, a transposed", .attr = {.matmul = {.ta = true}}, .in = {{F(587,776)}, {F(587,520)}}, .no_differences = SLOW}, \
    {OP_MATMUL, "gradient of a weight, rows of 8", .attr = {.matmul = {.ta = true}}, .in = {{F(3,8)}, {F(3,16)}}, .given = TYPE(8,16), .given_stays_f32 = true},
/* clang-format on */

#endif

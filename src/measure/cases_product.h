/* cases_product.h - cases of products; a part of cases.c, whose words they are made of. */
#ifndef MEASURE_CASES_PRODUCT_H
#define MEASURE_CASES_PRODUCT_H

/* clang-format off */
#define CASES_OF_EIGHT_BITS \
    {OP_MATMUL_SCALED, "small", .in = {EIGHT(E4M3, 3,7), EIGHT(E4M3, 5,7), SCALAR(0.25), SCALAR(2)}, .given = TYPE(3,5)}, \
    {OP_MATMUL_SCALED, "rank 3 and a bias", OF_EIGHT, .attr = {.matmul = {.fast = true}}, \
     .in = {EIGHT(E4M3, 48,64), EIGHT(E4M3, 32,64), SCALAR(0.25), SCALAR(0.125), {F(32)}}, .given = TYPE(3,16,32)}, \
    {OP_MATMUL_SCALED, "gradient of the input", OF_EIGHT, \
     .in = {EIGHT(E5M2, 144,96), EIGHT(E4M3, 64,96), SCALAR(0.25), SCALAR(0.125)}, .given = TYPE(144,64)}, \
    {OP_MATMUL_SCALED, "gradient of a weight", OF_EIGHT, \
     .in = {EIGHT(E4M3, 96,272), EIGHT(E5M2, 160,272), SCALAR(0.25), SCALAR(0.125)}, .given = TYPE(96,160), .given_wide = true}, \
    {OP_MATMUL_SCALED, "gradient of a weight in e4m3", OF_EIGHT, \
     .in = {EIGHT(E4M3, 96,272), EIGHT(E4M3, 160,272), SCALAR(0.25), SCALAR(0.125)}, .given = TYPE(96,160), .given_wide = true},

/* With GELU at the end: several tiles of the kernels for one compute capability, and less than one. */
#define CASES_WITH_GELU \
    {OP_LINEAR_GELU, "several tiles, odd rows", .attr = {.linear = {.tanh = true, .keep = true}}, .loss_outputs = 2, .no_differences = SLOW, \
     .in = {{F(1,251,200)}, {F(200,376)}, {F(376), .wide = true}}}, \
    {OP_LINEAR_GELU, "several tiles, erf", .attr = {.linear = {.keep = true}}, .loss_outputs = 2, .no_differences = SLOW, \
     .in = {{F(251,584)}, {F(584,376)}, {F(376), .wide = true}}}, \
    {OP_LINEAR_GELU, "several tiles, no bias, w transposed", .attr = {.linear = {.tb = true}}, .in = {{F(387,328)}, {F(520,328)}}, .no_differences = SLOW}, \
    {OP_LINEAR_GELU, "rows of 8", .attr = {.linear = {.tanh = true, .keep = true}}, .loss_outputs = 2, \
     .in = {{F(7,8)}, {F(8,24)}, {F(24), .wide = true}}}, \
    {OP_MATMUL_GELU_GRAD, "several tiles, odd rows, w transposed", .attr = {.matmul = {.tb = true, .tanh = true}}, OF_ROUNDED_PRODUCT, .no_differences = SLOW, \
     .in = {{F(1,251,200)}, {F(376,200)}, {F(1,251,376)}}}, \
    {OP_MATMUL_GELU_GRAD, "several tiles, erf", .attr = {.matmul = {false}}, OF_ROUNDED_PRODUCT, .no_differences = SLOW, \
     .in = {{F(251,584)}, {F(584,376)}, {F(251,376)}}}, \
    {OP_MATMUL_GELU_GRAD, "rows of 8", .attr = {.matmul = {.tb = true}}, OF_ROUNDED_PRODUCT, .in = {{F(7,8)}, {F(24,8)}, {F(7,24)}}},
/* clang-format on */

#endif

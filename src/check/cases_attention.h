/* cases_attention.h - more attention cases; a part of cases.c, with its macros. */
#ifndef CHECK_CASES_ATTENTION_H
#define CHECK_CASES_ATTENTION_H

/* Heads of 136 to 256 columns use kernels that round p; their tolerances allow for this. */
/* clang-format off */
#define ATTENTION_HEADS \
    {OP_ATTENTION, "heads of 80", .attr = {.attention = {2, true, DROP_SCORES}}, OF_ROUNDED_PV, .in = {{F(2,197,480)}, STEP}, .no_differences = SLOW}, \
    {OP_ATTENTION, "heads of 40, groups of two, not causal", .attr = {.attention = {2, false, NO_DROPOUT, .kv_heads = 1}}, OF_ROUNDED_PV, .in = {{F(1,131,160)}, STEP}, .no_differences = SLOW}, \
    {OP_ATTENTION_GRAD, "heads of 80", .attr = {.attention = {2, true, DROP_SCORES}}, OF_ROUNDED_DS, \
     .in = {{F(2,197,160)}, {F(2,197,480)}, ATTENTION_OUT(0, 2,197,160), ATTENTION_OUT(1, 2,2,197), STEP}}, \
    {OP_ATTENTION_GRAD, "heads of 72, short", .attr = {.attention = {2, true, DROP_SCORES, .kv_heads = 1}}, OF_ROUNDED_DS, \
     .in = {{F(1,35,144)}, {F(1,35,288)}, ATTENTION_OUT(0, 1,35,144), ATTENTION_OUT(1, 1,2,35), STEP}, .no_differences = SLOW}, \
    {OP_ATTENTION_GRAD, "heads of 40, groups of two, not causal", .attr = {.attention = {2, false, NO_DROPOUT, .kv_heads = 1}}, OF_ROUNDED_DS, \
     .in = {{F(1,131,80)}, {F(1,131,160)}, ATTENTION_OUT(0, 1,131,80), ATTENTION_OUT(1, 1,2,131), STEP}}, \
    {OP_ATTENTION, "short, all rows", .attr = {.attention = {2, true, NO_DROPOUT}}, OF_ROUNDED_P, .in = {{F(2,256,384)}, STEP}, .no_differences = SLOW}, \
    {OP_ATTENTION_GRAD, "short, all rows", .attr = {.attention = {2, true, NO_DROPOUT}}, OF_ROUNDED_DS, \
     .in = {{F(2,256,128)}, {F(2,256,384)}, ATTENTION_OUT(0, 2,256,128), ATTENTION_OUT(1, 2,2,256), STEP}}, \
    {OP_ATTENTION_GRAD, "heads of 112, groups of three", .attr = {.attention = {3, true, NO_DROPOUT, .kv_heads = 1}}, OF_ROUNDED_DS, \
     .in = {{F(1,150,336)}, {F(1,150,560)}, ATTENTION_OUT(0, 1,150,336), ATTENTION_OUT(1, 1,3,150), STEP}, .no_differences = SLOW}, \
    {OP_ATTENTION, "heads of 256", .attr = {.attention = {1, true, DROP_SCORES}}, OF_ROUNDED_PV, .in = {{F(1,131,768)}, STEP}, .no_differences = SLOW}, \
    {OP_ATTENTION, "heads of 256, not causal", .attr = {.attention = {1, false, NO_DROPOUT}}, OF_ROUNDED_PV, .in = {{F(1,131,768)}, STEP}, .no_differences = SLOW}, \
    {OP_ATTENTION, "heads of 192, groups of two", .attr = {.attention = {2, true, NO_DROPOUT, .kv_heads = 1}}, OF_ROUNDED_PV, .in = {{F(1,150,768)}, STEP}, .no_differences = SLOW}, \
    {OP_ATTENTION_GRAD, "heads of 256", .attr = {.attention = {1, true, DROP_SCORES}}, OF_ROUNDED_DS, \
     .in = {{F(1,131,256)}, {F(1,131,768)}, ATTENTION_OUT(0, 1,131,256), ATTENTION_OUT(1, 1,1,131), STEP}, .no_differences = SLOW}, \
    {OP_ATTENTION_GRAD, "heads of 256, not causal", .attr = {.attention = {1, false, NO_DROPOUT}}, OF_ROUNDED_DS, \
     .in = {{F(1,131,256)}, {F(1,131,768)}, ATTENTION_OUT(0, 1,131,256), ATTENTION_OUT(1, 1,1,131), STEP}, .no_differences = SLOW}, \
    {OP_ATTENTION_GRAD, "heads of 192, groups of two", .attr = {.attention = {2, true, NO_DROPOUT, .kv_heads = 1}}, OF_ROUNDED_DS, \
     .in = {{F(1,150,384)}, {F(1,150,768)}, ATTENTION_OUT(0, 1,150,384), ATTENTION_OUT(1, 1,2,150), STEP}, .no_differences = SLOW},

/* These cases test kernels that process the last keys first: in some rows, later blocks of keys
 * have larger scores. */
#define SPIKED(...) {F(__VA_ARGS__), .fill = FILL_SPIKED, .x = 40}
#define ONE_KEY     .no_differences = "one key of a row has all of the weight"
#define ATTENTION_LARGE_KEYS \
    {OP_ATTENTION, "some large keys", .attr = {.attention = {2, true, NO_DROPOUT}}, OF_ROUNDED_PV, .in = {SPIKED(2,331,384), STEP}, ONE_KEY}, \
    {OP_ATTENTION, "some large keys, not causal, groups of two", .attr = {.attention = {2, false, NO_DROPOUT, .kv_heads = 1}}, OF_ROUNDED_PV, \
     .in = {SPIKED(2,270,512), STEP}, ONE_KEY}, \
    {OP_ATTENTION, "some large keys, dropout", .attr = {.attention = {2, true, DROP_SCORES}}, OF_ROUNDED_PV, .in = {SPIKED(2,331,240), STEP}, ONE_KEY}, \
    {OP_ATTENTION, "some large keys, heads of 32", .attr = {.attention = {2, true, NO_DROPOUT}}, OF_ROUNDED_PV, .in = {SPIKED(2,331,192), STEP}, ONE_KEY},

/* Whole tiles of scores are minus infinity, including the last tile of a row. */
#define INFINITE_SCORES(heads, ...) {F(__VA_ARGS__), .fill = FILL_INFINITE_SCORES, .x = heads}
#define ATTENTION_INFINITE_SCORES \
    {OP_ATTENTION, "last keys minus infinity", .attr = {.attention = {2, true, NO_DROPOUT}}, OF_ROUNDED_PV, .in = {INFINITE_SCORES(64, 1,270,384), STEP}, ONE_KEY}, \
    {OP_ATTENTION, "last keys minus infinity, not causal, heads of 32, dropout", .attr = {.attention = {2, false, DROP_SCORES}}, OF_ROUNDED_PV, \
     .in = {INFINITE_SCORES(32, 1,230,192), STEP}, ONE_KEY}, \
    {OP_ATTENTION, "all but few keys minus infinity, not causal, heads of 64", .attr = {.attention = {1, false, NO_DROPOUT}}, OF_ROUNDED_PV, \
     .in = {INFINITE_SCORES(-64, 2,250,192), STEP}, ONE_KEY}, \
    {OP_ATTENTION, "all but few keys minus infinity, not causal, heads of 64, tf32", .attr = {.attention = {1, false, NO_DROPOUT}}, .numerics = {.tf32 = true}, OF_TF32_P, \
     .in = {INFINITE_SCORES(-64, 1,450,192), STEP}, ONE_KEY}, \
    {OP_ATTENTION, "all but few keys minus infinity, not causal, unscaled", .attr = {.attention = {1, false, NO_DROPOUT, .unscaled = true}}, OF_ROUNDED_PV, \
     .in = {INFINITE_SCORES(-64, 2,250,192), STEP}, ONE_KEY}, \
    {OP_ATTENTION, "all but few keys minus infinity, not causal, unscaled, tf32", .attr = {.attention = {1, false, NO_DROPOUT, .unscaled = true}}, .numerics = {.tf32 = true}, OF_TF32_P, \
     .in = {INFINITE_SCORES(-64, 1,450,192), STEP}, ONE_KEY}, \
    {OP_ATTENTION, "last keys minus infinity, heads of 8", .attr = {.attention = {1, true, NO_DROPOUT}}, OF_ROUNDED_PV, .in = {INFINITE_SCORES(8, 1,210,24), STEP}, ONE_KEY}, \
    {OP_ATTENTION, "last keys minus infinity, tf32", .attr = {.attention = {1, true, NO_DROPOUT}}, .numerics = {.tf32 = true}, OF_TF32_P, .in = {INFINITE_SCORES(64, 1,270,192), STEP}, ONE_KEY},

/* Cases whose scores are not divided by sqrt(D), with and without a mask. In wide heads q and k are
 * small, so that the scores vary by about 1, as divided scores do. */
#define NARROW(by, ...) {F(__VA_ARGS__), .fill = FILL_NARROW, .x = by}
#define ATTENTION_UNSCALED \
    {OP_ATTENTION, "unscaled", .attr = {.attention = {2, true, NO_DROPOUT, .unscaled = true}}, OF_ROUNDED_PV, .in = {{F(2,7,18)}, STEP}}, \
    {OP_ATTENTION, "unscaled, not causal", .attr = {.attention = {2, false, NO_DROPOUT, .unscaled = true}}, OF_ROUNDED_PV, .in = {{F(2,7,18)}, STEP}}, \
    {OP_ATTENTION, "unscaled, short", .attr = {.attention = {1, true, DROP_SCORES, .unscaled = true}}, OF_ROUNDED_PV, .in = {NARROW(0.36, 2,251,192), STEP}, .no_differences = SLOW}, \
    {OP_ATTENTION, "unscaled, longer, not causal", .attr = {.attention = {1, false, NO_DROPOUT, .unscaled = true}}, OF_ROUNDED_PV, .in = {NARROW(0.36, 1,270,192), STEP}, .no_differences = SLOW}, \
    {OP_ATTENTION, "unscaled, tf32", .attr = {.attention = {1, true, NO_DROPOUT, .unscaled = true}}, .numerics = {.tf32 = true}, OF_TF32_P, .in = {NARROW(0.36, 1,131,192), STEP}, .no_differences = SLOW}, \
    {OP_ATTENTION, "unscaled, heads of 256, not causal", .attr = {.attention = {1, false, NO_DROPOUT, .unscaled = true}}, OF_ROUNDED_PV, .in = {NARROW(0.25, 1,67,768), STEP}, .no_differences = SLOW}, \
    {OP_ATTENTION_GRAD, "unscaled", .attr = {.attention = {2, true, NO_DROPOUT, .unscaled = true}}, OF_ROUNDED_DS, \
     .in = {{F(2,7,6)}, {F(2,7,18)}, ATTENTION_OUT(0, 2,7,6), ATTENTION_OUT(1, 2,2,7), STEP}}, \
    {OP_ATTENTION_GRAD, "unscaled, not causal", .attr = {.attention = {2, false, NO_DROPOUT, .unscaled = true}}, OF_ROUNDED_DS, \
     .in = {{F(2,7,6)}, {F(2,7,18)}, ATTENTION_OUT(0, 2,7,6), ATTENTION_OUT(1, 2,2,7), STEP}}, \
    {OP_ATTENTION_GRAD, "unscaled, short", .attr = {.attention = {1, true, DROP_SCORES, .unscaled = true}}, OF_ROUNDED_DS, \
     .in = {{F(2,251,64)}, NARROW(0.36, 2,251,192), ATTENTION_OUT(0, 2,251,64), ATTENTION_OUT(1, 2,1,251), STEP}}, \
    {OP_ATTENTION_GRAD, "unscaled, longer, not causal", .attr = {.attention = {1, false, NO_DROPOUT, .unscaled = true}}, OF_ROUNDED_DS, \
     .in = {{F(1,250,64)}, NARROW(0.36, 1,250,192), ATTENTION_OUT(0, 1,250,64), ATTENTION_OUT(1, 1,1,250), STEP}}, \
    {OP_ATTENTION_GRAD, "unscaled, tf32", .attr = {.attention = {1, true, NO_DROPOUT, .unscaled = true}}, .numerics = {.tf32 = true}, OF_TF32_DS, \
     .in = {{F(1,131,64)}, NARROW(0.36, 1,131,192), ATTENTION_OUT(0, 1,131,64), ATTENTION_OUT(1, 1,1,131), STEP}}, \
    {OP_ATTENTION_GRAD, "unscaled, heads of 256, not causal", .attr = {.attention = {1, false, NO_DROPOUT, .unscaled = true}}, OF_ROUNDED_DS, \
     .in = {{F(1,67,256)}, NARROW(0.25, 1,67,768), ATTENTION_OUT(0, 1,67,256), ATTENTION_OUT(1, 1,1,67), STEP}, .no_differences = SLOW},
/* clang-format on */

#endif

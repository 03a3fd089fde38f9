/* cases_float8.h - cases of 8-bit matmuls and of QUANTIZE; a part of cases.c, with its macros. */
#ifndef CHECK_CASES_FLOAT8_H
#define CHECK_CASES_FLOAT8_H

/* clang-format off */
#define AMAX   {F(AMAX_STEPS), FILL_POSITIVE, .stays_f32 = true}
#define TO_E4M3 .attr = {.quantize = {DT_E4M3, 3}}
#define TO_E5M2 .attr = {.quantize = {DT_E5M2, 21}}
/* A number close to the border between two codes may get the neighboring code. This happens to one
 * in a few hundred numbers; such a number then differs by a sixteenth or an eighth. */
#define OF_CODES .tolerance = {[DT_F32] = 2e-3, [DT_BF16] = 1e-2}, .reason = "numbers at the border of two codes may get either"
#define OF_NORM(...) .attr = {.quantize = {DT_E4M3, 3, false, 1e-5, __VA_ARGS__}}
/* In bf16 the sum and the norm are rounded first, so more numbers get the neighboring code. */
#define OF_NORMS .tolerance = {[DT_F32] = 2e-3, [DT_BF16] = 2e-2}, .reason = "codes of rounded norms: numbers at the border of two fall to either"
/* Codes of e5m2 are twice as far apart as codes of e4m3. Half as many numbers get the neighboring
 * code, each with twice the change, so the norm of the error is sqrt(2) times as large. */
#define OF_NORMS_E5M2 .tolerance = {[DT_F32] = 2.83e-3, [DT_BF16] = 2.83e-2}, .reason = "codes of rounded norms: numbers at the border of two fall to either"
#define EIGHT(dtype, rows, columns) {.type = {DT_##dtype, 2, {rows, columns}}}
/* Tensor cores accumulate 8-bit products with 13 bits after the binary point; the attribute `fast`
 * allows sums with so few bits. */
#define OF_EIGHT .tolerance = {[DT_F32] = 1e-3, [DT_BF16] = 4e-3}, .reason = "tensor cores accumulate 8-bit products with fewer bits than f32"

#define FLOAT8_CASES \
    {OP_QUANTIZE, "to e4m3", TO_E4M3, .in = {AMAX, {F(3,7)}, STEP}}, \
    {OP_QUANTIZE, "to e5m2", TO_E5M2, .in = {AMAX, {F(2,5,17)}, STEP}}, \
    {OP_QUANTIZE, "to e4m3, rank 3", TO_E4M3, .in = {AMAX, {F(2,24,48)}, STEP}}, \
    {OP_QUANTIZE, "to e4m3, cut off", TO_E4M3, .in = {AMAX, {F(16,16), FILL_WIDE}, STEP}}, \
    {OP_QUANTIZE, "to e5m2, a masked third", TO_E5M2, .in = {AMAX, {F(32,48), FILL_MASKED}, STEP}}, \
    {OP_QUANTIZE, "to e4m3, nothing known", TO_E4M3, .in = {SCALARS(AMAX_STEPS, 0), {F(48,32)}, STEP}}, \
    {OP_QUANTIZE, "to e5m2, nothing known", TO_E5M2, .in = {SCALARS(AMAX_STEPS, 0), {F(48,32)}, STEP}}, \
    {OP_QUANTIZE, "to e4m3, magnitudes that are not finite", TO_E4M3, .in = {SCALARS(AMAX_STEPS, INFINITY), {F(48,32)}, STEP}}, \
    {OP_QUANTIZE, "to e4m3, large", TO_E4M3, .in = {AMAX, {F(272,400)}, STEP}}, \
    {OP_QUANTIZE, "to e5m2, large", TO_E5M2, .in = {AMAX, {F(400,272)}, STEP}}, \
    {OP_QUANTIZE, "to e4m3, many tiles", TO_E4M3, .in = {AMAX, {F(3072,1552)}, STEP}}, \
    {OP_QUANTIZE_GELU, "erf", .attr = {.quantize = {DT_E4M3, 3}}, OF_CODES, .in = {AMAX, {F(3,16,48)}, STEP}}, \
    {OP_QUANTIZE_GELU, "tanh, large", .attr = {.quantize = {DT_E4M3, 3, true}}, OF_CODES, .in = {AMAX, {F(400,272)}, STEP}}, \
    {OP_QUANTIZE_GELU_GRAD, "erf", .attr = {.quantize = {DT_E5M2, 21}}, OF_CODES, .in = {AMAX, {F(3,16,48)}, STEP, {F(3,16,48)}}}, \
    {OP_QUANTIZE_GELU_GRAD, "tanh, large", .attr = {.quantize = {DT_E5M2, 21, true}}, OF_CODES, .in = {AMAX, {F(400,272)}, STEP, {F(400,272)}}}, \
    {OP_QUANTIZE_GELU_GRAD, "to e4m3", .attr = {.quantize = {DT_E4M3, 20}}, OF_CODES, .in = {AMAX, {F(64,144)}, STEP, {F(64,144)}}}, \
    {OP_QUANTIZE_ADD_LAYERNORM, "with bias", OF_NORM(DROP), OF_NORMS, \
     .in = {AMAX, {F(2,5,17)}, STEP, {F(2,5,17)}, {F(17), .stays_f32 = true}, {F(17), .stays_f32 = true}}}, \
    {OP_QUANTIZE_ADD_LAYERNORM, "without bias", OF_NORM(NO_DROPOUT), OF_NORMS, \
     .in = {AMAX, {F(112,128)}, STEP, {F(112,128)}, {F(128), .stays_f32 = true}}}, \
    {OP_QUANTIZE_ADD_LAYERNORM, "rows of 384", OF_NORM(DROP), OF_NORMS, \
     .in = {AMAX, {F(3,16,384)}, STEP, {F(3,16,384)}, {F(384), .stays_f32 = true}}}, \
    {OP_QUANTIZE_ADD_LAYERNORM, "rows of 768", OF_NORM(NO_DROPOUT), OF_NORMS, \
     .in = {AMAX, {F(112,768)}, STEP, {F(112,768)}, {F(768), .stays_f32 = true}, {F(768), .stays_f32 = true}}, .no_differences = SLOW}, \
    {OP_QUANTIZE_ADD_LAYERNORM, "rows of 768, dropout", OF_NORM(DROP), OF_NORMS, \
     .in = {AMAX, {F(48,768)}, STEP, {F(48,768)}, {F(768), .stays_f32 = true}}, .no_differences = SLOW}, \
    {OP_QUANTIZE_ADD_LAYERNORM, "rows of 1024, nothing known", OF_NORM(DROP), OF_NORMS, \
     .in = {SCALARS(AMAX_STEPS, 0), {F(32,1024)}, STEP, {F(32,1024)}, {F(1024), .stays_f32 = true}, {F(1024), .stays_f32 = true}}, .no_differences = SLOW}, \
    {OP_QUANTIZE_ADD_LAYERNORM, "rows of 384, to e5m2", .attr = {.quantize = {DT_E5M2, 21, false, 1e-5, DROP}}, OF_NORMS_E5M2, \
     .in = {AMAX, {F(3,16,384)}, STEP, {F(3,16,384)}, {F(384), .stays_f32 = true}}}, \
    {OP_QUANTIZE_ADD_LAYERNORM, "rows of 768, to e5m2", .attr = {.quantize = {DT_E5M2, 21, false, 1e-5, NO_DROPOUT}}, OF_NORMS_E5M2, \
     .in = {AMAX, {F(112,768)}, STEP, {F(112,768)}, {F(768), .stays_f32 = true}, {F(768), .stays_f32 = true}}, .no_differences = SLOW}, \
    {OP_QUANTIZE_ADD_LAYERNORM, "many rows", OF_NORM(DROP), OF_NORMS, \
     .in = {AMAX, {F(8464,128)}, STEP, {F(8464,128)}, {F(128), .stays_f32 = true}}, .no_differences = SLOW}, \
    {OP_MATMUL_SCALED, "small", .in = {EIGHT(E4M3, 3,7), EIGHT(E4M3, 5,7), SCALAR(0.25), SCALAR(2)}, .given = TYPE(3,5)}, \
    {OP_MATMUL_SCALED, "rank 3 and a bias", OF_EIGHT, .attr = {.matmul = {.fast = true}}, \
     .in = {EIGHT(E4M3, 48,64), EIGHT(E4M3, 32,64), SCALAR(0.25), SCALAR(0.125), {F(32)}}, .given = TYPE(3,16,32)}, \
    {OP_MATMUL_SCALED, "gradient of the input", OF_EIGHT, \
     .in = {EIGHT(E5M2, 144,96), EIGHT(E4M3, 64,96), SCALAR(0.25), SCALAR(0.125)}, .given = TYPE(144,64)}, \
    {OP_MATMUL_SCALED, "gradient of a weight", OF_EIGHT, \
     .in = {EIGHT(E4M3, 96,272), EIGHT(E5M2, 160,272), SCALAR(0.25), SCALAR(0.125)}, .given = TYPE(96,160), .given_stays_f32 = true}, \
    {OP_MATMUL_SCALED, "gradient of a weight in e4m3", OF_EIGHT, \
     .in = {EIGHT(E4M3, 96,272), EIGHT(E4M3, 160,272), SCALAR(0.25), SCALAR(0.125)}, .given = TYPE(96,160), .given_stays_f32 = true},
/* clang-format on */

#endif

/* tables.h - the tables of kernels in vector types, one set for each instruction set. */
#ifndef BACKEND_CPU_VECTOR_TABLES_H
#define BACKEND_CPU_VECTOR_TABLES_H

#include "backend/kernel.h"

/* vector_tables lists the other tables of its instruction set and ends with NULL. Each of these
 * tables ends with a row whose `run` is NULL. */
#define ACT_TABLES(act_isa)                                \
    extern const struct kernel pointwise_rows_##act_isa[]; \
    extern const struct kernel gelu_rows_##act_isa[];      \
    extern const struct kernel reduce_rows_##act_isa[];    \
    extern const struct kernel norm_rows_##act_isa[];      \
    extern const struct kernel rms_rows_##act_isa[];       \
    extern const struct kernel gated_rows_##act_isa[];     \
    extern const struct kernel rope_rows_##act_isa[];      \
    extern const struct kernel softmax_rows_##act_isa[];   \
    extern const struct kernel loss_rows_##act_isa[];      \
    extern const struct kernel move_rows_##act_isa[];      \
    extern const struct kernel embed_rows_##act_isa[];     \
    extern const struct kernel blocked_rows_##act_isa[];
#define VECTOR_TABLES(isa)                                       \
    extern const struct kernel *const vector_tables_##isa[];     \
    extern const struct kernel attention_rows_f32_##isa[];       \
    extern const struct kernel attention_rows_bf16_##isa[];      \
    extern const struct kernel attention_grad_rows_f32_##isa[];  \
    extern const struct kernel attention_grad_rows_bf16_##isa[]; \
    extern const struct kernel attention_cached_rows_##isa[];    \
    extern const struct kernel cast_rows_##isa[];                \
    extern const struct kernel chain_rows_##isa[];               \
    extern const struct kernel optimizer_rows_##isa[];           \
    ACT_TABLES(f32_##isa)                                        \
    ACT_TABLES(bf16_##isa)

#if defined(__x86_64__)
extern const struct kernel *const vector_tables_avx512_bf16[];
extern const struct kernel chain_rows_avx512_bf16[];
ACT_TABLES(bf16_avx512_bf16)
VECTOR_TABLES(avx512)
VECTOR_TABLES(avx2)
VECTOR_TABLES(sse2)
#elif defined(__aarch64__)
VECTOR_TABLES(neon)
#endif
VECTOR_TABLES(plain)

#endif

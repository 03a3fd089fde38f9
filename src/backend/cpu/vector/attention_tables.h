/* attention_tables.h - the tables of flash attention in vector types, one set for each
 * instruction set. */
#ifndef BACKEND_CPU_VECTOR_ATTENTION_TABLES_H
#define BACKEND_CPU_VECTOR_ATTENTION_TABLES_H

#include "backend/kernel.h"

/* Each table ends with run == NULL. */
#define ATTENTION_TABLES(isa)                                    \
    extern const struct kernel attention_rows_f32_##isa[];       \
    extern const struct kernel attention_rows_bf16_##isa[];      \
    extern const struct kernel attention_grad_rows_f32_##isa[];  \
    extern const struct kernel attention_grad_rows_bf16_##isa[]; \
    extern const struct kernel attention_cached_rows_##isa[];

#if defined(__x86_64__)
ATTENTION_TABLES(avx512)
ATTENTION_TABLES(avx2)
ATTENTION_TABLES(sse2)
#endif
ATTENTION_TABLES(plain)

#endif

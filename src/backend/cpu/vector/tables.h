/* tables.h - the tables of kernels in vector types, one of each for each instruction set. */
#ifndef BACKEND_CPU_VECTOR_TABLES_H
#define BACKEND_CPU_VECTOR_TABLES_H

#include "backend/kernel.h"

/* vector_tables lists the others and ends with NULL. Each table ends with run == NULL. */
#define VECTOR_TABLES(isa)                                   \
    extern const struct kernel *const vector_tables_##isa[]; \
    extern const struct kernel pointwise_rows_##isa[];       \
    extern const struct kernel gelu_rows_##isa[];            \
    extern const struct kernel reduce_rows_##isa[];          \
    extern const struct kernel norm_rows_##isa[];            \
    extern const struct kernel softmax_rows_##isa[];         \
    extern const struct kernel loss_rows_##isa[];            \
    extern const struct kernel move_rows_##isa[];            \
    extern const struct kernel embed_rows_##isa[];           \
    extern const struct kernel optimizer_rows_##isa[];       \
    extern const struct kernel blocked_rows_##isa[];

#if defined(__x86_64__)
VECTOR_TABLES(avx512)
VECTOR_TABLES(avx2)
VECTOR_TABLES(sse2)
#endif
VECTOR_TABLES(plain)

#endif

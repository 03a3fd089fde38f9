/* tables.h - tables of kernels with bf16 matmul instructions, for each instruction set. */
#ifndef BACKEND_CPU_BF16_TABLES_H
#define BACKEND_CPU_BF16_TABLES_H

#include "backend/kernel.h"

/* bf16_tables lists the other two tables and ends with NULL. Each of these two ends with a row
 * whose `run` is NULL. */
#define BF16_TABLES(isa)                                   \
    extern const struct kernel *const bf16_tables_##isa[]; \
    extern const struct kernel attention_rows_##isa[];     \
    extern const struct kernel attention_grad_rows_##isa[];

#if defined(__x86_64__)
BF16_TABLES(amx)
BF16_TABLES(avx512_bf16)
#endif

#endif

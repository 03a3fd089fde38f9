/* block.h - pointwise operators on blocks of consecutive elements. The kernel of a fused pointwise
 * chain (chain.c) calls the block functions of its operators for one block after another; the
 * kernels of most single operators call a block function once, for a whole range of elements. */
#ifndef BACKEND_CPU_VECTOR_BLOCK_H
#define BACKEND_CPU_VECTOR_BLOCK_H

#include "backend/cpu/vector/vector.h"
#include "graph/op.h"

/* n elements of each operand; y may be a or b. */
struct block {
    const union attr *attr;
    const void *a, *b; /* b of dropout is the step */
    void *y;
    int64_t n, first; /* `first` is the index of the first element in its tensor */
};
typedef void (*block_fn)(const struct block *b);

/* Block functions, indexed by operator; NULL if the table has no function for an operator. */
#define BLOCK_TABLES(act_isa)                           \
    extern const block_fn pointwise_blocks_##act_isa[]; \
    extern const block_fn gelu_blocks_##act_isa[];
#define BLOCKS(isa)                                       \
    BLOCK_TABLES(f32_##isa)                               \
    BLOCK_TABLES(bf16_##isa)                              \
    void cast_to_bf16_block_##isa(const struct block *b); \
    void cast_to_f32_block_##isa(const struct block *b);

#if defined(__x86_64__)
BLOCK_TABLES(bf16_avx512_bf16)
BLOCKS(avx512)
BLOCKS(avx2)
BLOCKS(sse2)
#elif defined(__aarch64__)
BLOCKS(neon)
#endif
BLOCKS(plain)

#endif

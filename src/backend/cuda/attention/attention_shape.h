/* attention_shape.h - shapes, types and common arguments of all attention kernels, host side. */
#ifndef BACKEND_CUDA_ATTENTION_ATTENTION_SHAPE_H
#define BACKEND_CUDA_ATTENTION_ATTENTION_SHAPE_H

#include "backend/cuda/runtime/launch.h"

/* Inputs of the forward pass; its outputs are y and the log-sum-exp. */
enum { FORWARD_QKV, FORWARD_STEP };
/* Inputs of the backward pass; its output is dqkv. */
enum { DY, QKV, Y, LSE, STEP };

struct attention_shape {
    int64_t B, T, H, KV, D;
    /* The head size that kernels for compute capability 9.0 are compiled for. Columns beyond D are
     * read as zeros and not written. 0: unsupported. */
    int64_t width;
    enum dtype dtype;
    double divisor; /* of the scores */
};

/* Returns the shape of a call whose input number `qkv` is (B,T,(H+2KV)D). */
struct attention_shape attention_shape_of(const struct kernel_call *c, int qkv);
/* The number of query heads whose keys and values together fill at most half of L2: whole groups of
 * heads, at least one group. */
int64_t attention_heads_at_once(const struct kernel_call *c, const struct attention_shape *s);
/* A bf16 tensor (B,T,heads,D) for a tensor map. A box has `rows` rows of one head, and as many
 * columns as the swizzle spans. */
struct cuda_tensor attention_tensor(const struct attention_shape *s, int64_t heads, int rows);

/* Shared memory, in bytes, of a block of attention_f32_wide.cuh that owns `rows` rows of `own`
 * tensors (1 in forward, 2 in backward), with a buffer of scores for each. */
int64_t attention_wide_bytes(const struct attention_shape *s, int rows, int own);
/* The number of rows of such a block, 128, 64 or 32: the most that shared memory and registers
 * hold, or fewer if there would be fewer blocks than SMs; 0 if no block fits. `heads`: heads of one
 * sequence. */
int attention_wide_rows(const struct kernel_call *c, const struct attention_shape *s, int64_t heads,
                        int own);

/* Defines GROUP, CAUSAL and DROPOUT. */
void attention_define(struct cuda_launch *k, const struct kernel_call *c,
                      const struct attention_shape *s);
/* Adds the arguments T and H. */
void arg_lengths(struct cuda_launch *k, const struct attention_shape *s);

#endif

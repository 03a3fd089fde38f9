/* attention_shape.h - what the host sides of all attention kernels share: shapes, types, and common arguments. */
#ifndef BACKEND_CUDA_ATTENTION_ATTENTION_SHAPE_H
#define BACKEND_CUDA_ATTENTION_ATTENTION_SHAPE_H

#include "backend/cuda/runtime/launch.h"

/* Inputs of the forward; its outputs are y and the log-sum-exp. */
enum { FORWARD_QKV, FORWARD_STEP };
/* Inputs of the backward; its output is dqkv. */
enum { DY, QKV, Y, LSE, STEP };

struct attention_shape {
    int64_t B, T, H, KV, D;
    /* The head size that texts for compute capability 9.0 are compiled for: columns behind the D of a head are read as zeros
     * and not written. 0: there is none. */
    int64_t width;
    enum dtype dtype;
};

/* Of the input `qkv` (B,T,(H+2KV)D). */
struct attention_shape attention_shape_of(const struct kernel_call *c, int qkv);
/* Whether tensors are of that type, log-sum-exps float, steps int. */
bool attention_is_of(const struct kernel_call *c, enum dtype dtype);
bool attention_grad_is_of(const struct kernel_call *c, enum dtype dtype);
/* As many heads as leave half of the L2 free while their keys and values are in it: whole groups. */
int64_t attention_heads_at_once(const struct kernel_call *c, const struct attention_shape *s);
/* Rows of all heads of a bf16 tensor (B,T,heads,D), in boxes of `rows` rows of one head, as wide as a swizzle spans. */
struct cuda_tensor attention_tensor(const struct attention_shape *s, int64_t heads, int rows);

/* -DGROUP, -DCAUSAL and -DDROPOUT */
void attention_define(struct cuda_launch *k, const struct kernel_call *c,
                      const struct attention_shape *s);
/* Arguments T and H. */
void arg_lengths(struct cuda_launch *k, const struct attention_shape *s);

#endif

/* norm.h - launches for the tables in norm.c and rmsnorm.c. */
#ifndef BACKEND_CUDA_NORM_NORM_H
#define BACKEND_CUDA_NORM_NORM_H

#include "backend/cuda/runtime/launch.h"

/* Layer norms of bf16 rows that consist of whole 16-byte accesses. */
bool fits_norm_bf16(const struct kernel_call *c);
bool fits_norm_grad_bf16(const struct kernel_call *c);
bool fits_quantize_add_layernorm(const struct kernel_call *c);
void layernorm_bf16(const struct kernel_call *c, struct cuda_launches *l);
void add_layernorm_bf16(const struct kernel_call *c, struct cuda_launches *l);
void quantize_add_layernorm(const struct kernel_call *c, struct cuda_launches *l);
/* Adds the inputs of a layer norm's gradient: [more,] dy, x, w, mean, rstd [, step]. */
void layernorm_grad_inputs(struct cuda_launch *k, const struct kernel_call *c);
void layernorm_grad_bf16(const struct kernel_call *c, struct cuda_launches *l);

/* Layer norms and RMS norms of rows of any length. */
void norm_long(const struct kernel_call *c, struct cuda_launches *l);
void add_norm_long(const struct kernel_call *c, struct cuda_launches *l);
void norm_grad_long(const struct kernel_call *c, struct cuda_launches *l);

#endif

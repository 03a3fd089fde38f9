/* norm_bf16.h - layer norms of bf16 rows of whole accesses: launches for the table in norm.c. */
#ifndef BACKEND_CUDA_NORM_NORM_BF16_H
#define BACKEND_CUDA_NORM_NORM_BF16_H

#include "backend/cuda/runtime/launch.h"

bool fits_layernorm_bf16(const struct kernel_call *c);
bool fits_add_layernorm_bf16(const struct kernel_call *c);
bool fits_layernorm_grad_bf16(const struct kernel_call *c); /* also with `more` added */
bool fits_layernorm_grad_drop_bf16(const struct kernel_call *c);
bool fits_quantise_add_layernorm(const struct kernel_call *c);
void layernorm_bf16(const struct kernel_call *c, struct cuda_launches *l);
void add_layernorm_bf16(const struct kernel_call *c, struct cuda_launches *l);
void quantise_add_layernorm(const struct kernel_call *c, struct cuda_launches *l);
/* Adds the inputs of a layer norm's gradient: [more,] dy, x, w, mean, rstd [, step]. */
void layernorm_grad_inputs(struct cuda_launch *k, const struct kernel_call *c);
void layernorm_grad_bf16(const struct kernel_call *c, struct cuda_launches *l);

#endif

/* chain_text.h - generates the kernel of a fused pointwise chain (graph/chain.h). */
#ifndef BACKEND_CUDA_POINTWISE_CHAIN_TEXT_H
#define BACKEND_CUDA_POINTWISE_CHAIN_TEXT_H

#include "backend/kernel.h"

struct str;

/* Elements per vector: CHAIN_F32_VECTOR if no type is bf16, otherwise CHAIN_BF16_VECTOR. */
enum { CHAIN_BF16_VECTOR = 8, CHAIN_F32_VECTOR = 4 };

/* Writes the source of kernel `chain`. Parameters: each input's address and, if it is broadcast by
 * rows or columns, its period; seed, site and threshold of each dropout; each output's address; the
 * number of elements, unless it is 1. */
void chain_write(const struct kernel_call *c, struct str *s);
int chain_vector(const struct kernel_call *c);
/* The number of elements that each thread of the kernel computes. */
int chain_per_thread(const struct kernel_call *c);
/* True if input i has a period parameter. */
bool chain_has_period(const struct kernel_call *c, int i);

#endif

/* types.h - which types a row takes. */
#ifndef BACKEND_CUDA_RUNTIME_TYPES_H
#define BACKEND_CUDA_RUNTIME_TYPES_H

#include "backend/kernel.h"

/* The types are those of a letter for each: a is f32 or bf16, the same for all, f is f32, b bf16, i int32, 8 one of 8 bits.
 * Letters that are left over are inputs and outputs that an operator may do without. */
bool types_are(const struct kernel_call *c, const char *in, const char *out);

#endif

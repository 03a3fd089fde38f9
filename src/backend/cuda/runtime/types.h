/* types.h - matches the types of a call. */
#ifndef BACKEND_CUDA_RUNTIME_TYPES_H
#define BACKEND_CUDA_RUNTIME_TYPES_H

#include "backend/kernel.h"

/* True if the types match, one letter each: a is f32 or bf16, the same for all; f is f32, b bf16, i
 * int32, 8 an 8-bit type. Surplus letters are optional inputs and outputs. */
bool types_are(const struct kernel_call *c, const char *in, const char *out);

#endif

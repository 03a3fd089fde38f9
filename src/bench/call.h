/* call.h - describes a kernel's call: shape, type, and the peaks it is compared with. */
#ifndef BENCH_CALL_H
#define BENCH_CALL_H

#include "backend/kernel.h"
#include "base/arena.h"
#include "machine/machine.h"

/* "768 x 384 x 128 tb": M x N x K of a matmul; else the type of the largest tensor. */
const char *call_shape(enum op op, const struct kernel_call *c, struct arena *a);
/* The type of its first float input, else of its output. */
enum dtype call_dtype(const struct kernel_call *c);
/* The peak that its arithmetic is compared with. */
enum machine_precision call_precision(const struct kernel_call *c);

#endif

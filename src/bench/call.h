/* call.h - describes a kernel call: its shape, its type, and the peak with which it is compared. */
#ifndef BENCH_CALL_H
#define BENCH_CALL_H

#include "backend/kernel.h"
#include "base/arena.h"
#include "machine/machine.h"

/* M x N x K of a matmul, "768 x 384 x 128 tb"; for other operators the type of the largest
 * tensor. */
const char *call_shape(enum op op, const struct kernel_call *c, struct arena *a);
/* The type of the first float input; of the output if no input is float. */
enum dtype call_dtype(const struct kernel_call *c);
/* The precision of the matmul peak with which the call's FLOPs are compared. */
enum machine_precision call_precision(const struct kernel_call *c);

#endif

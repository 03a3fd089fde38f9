/* call.h - what a kernel's call is called, and which ceilings it is held against. */
#ifndef BENCH_CALL_H
#define BENCH_CALL_H

#include "backend/kernel.h"
#include "base/arena.h"
#include "machine/machine.h"

/* "768 x 384 x 128 tb": M x N x K of a product; else the type of the largest tensor. */
const char *call_shape(enum op op, const struct kernel_call *c, struct arena *a);
/* Of its first float input, or of its output. */
enum dtype call_dtype(const struct kernel_call *c);
/* Whose peak its arithmetic is held against. */
enum machine_precision call_precision(const struct kernel_call *c);
/* Bytes per second that a copy of so many moves; on a GPU, whose caches a step's tensors leave, a large one. 0: unknown. */
double call_copy_rate(const struct machine *m, double bytes);

#endif

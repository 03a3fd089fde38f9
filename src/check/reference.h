/* reference.h - what the oracle says: the CPU's reference kernels, run on host memory. */
#ifndef CHECK_REFERENCE_H
#define CHECK_REFERENCE_H

#include "graph/op.h"

struct arena;
struct kernel_call;

/* Runs the call by the reference; its scratch is taken from the arena. */
enum status reference_run(enum op op, struct kernel_call *call, struct arena *scratch);
/* `n` numbers from one type to another; the two ranges do not overlap. */
enum status reference_convert(void *to, enum dtype to_dtype, const void *from,
                              enum dtype from_dtype, int64_t n);
/* Rounds each to the nearest number of that type, in place. */
enum status reference_round(double *x, int64_t n, enum dtype dtype, struct arena *scratch);

#endif

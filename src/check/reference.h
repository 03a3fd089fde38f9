/* reference.h - runs the CPU's reference kernels on host memory. */
#ifndef CHECK_REFERENCE_H
#define CHECK_REFERENCE_H

#include "graph/op.h"

struct arena;
struct kernel_call;

/* Runs the call with the reference kernel; scratch is allocated in the arena. */
enum status reference_run(enum op op, struct kernel_call *call, struct arena *scratch);
/* Converts `n` numbers from one type to another; the two ranges must not overlap. */
enum status reference_convert(void *to, enum dtype to_dtype, const void *from,
                              enum dtype from_dtype, int64_t n);
/* Rounds each number to the nearest number of type `dtype`, in place. */
enum status reference_round(double *x, int64_t n, enum dtype dtype, struct arena *scratch);

#endif

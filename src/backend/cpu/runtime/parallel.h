/* parallel.h - divides the work of one kernel call among the threads. */
#ifndef BACKEND_CPU_RUNTIME_PARALLEL_H
#define BACKEND_CPU_RUNTIME_PARALLEL_H

#include <stdint.h>

struct kernel_call;

/* Computes the items first ... last-1 of a call. */
typedef void (*range_fn)(const struct kernel_call *c, int64_t first, int64_t last);

/* Splits 0 ... n-1 at multiples of `grain` into one range for each thread and calls `fn` for each
 * range. An item costs about as much as reading `weight` numbers; the calling thread computes a
 * small call alone. The result must not depend on where the items are split. */
void parallel_ranges(const struct kernel_call *c, int64_t n, int64_t grain, int64_t weight,
                     range_fn fn);

/* A reduction is divided into a number of parts that does not depend on the number of threads, so
 * the order of its additions does not either: as many parts of `part_items` items as n needs, at
 * most 64. Part k of `parts` begins at item part_begin(n, parts, k). */
int64_t part_count(int64_t n, int64_t part_items);
int64_t part_begin(int64_t n, int64_t parts, int64_t k);

#endif

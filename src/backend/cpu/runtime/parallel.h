/* parallel.h - shares the work of one kernel call among the threads. */
#ifndef BACKEND_CPU_RUNTIME_PARALLEL_H
#define BACKEND_CPU_RUNTIME_PARALLEL_H

#include <stdint.h>

struct kernel_call;

/* Does the items first ... last-1 of a call. */
typedef void (*range_fn)(const struct kernel_call *c, int64_t first, int64_t last);

/* Cuts 0 ... n-1 at multiples of `grain` into one range for each thread and runs them. An item costs
 * about as much as touching `weight` numbers; a small call stays on the calling thread. What comes
 * out must not depend on where the cuts are. */
void parallel_ranges(const struct kernel_call *c, int64_t n, int64_t grain, int64_t weight,
                     range_fn fn);

/* Reductions take a fixed number of parts, whatever the number of threads, so that the order of
 * additions is fixed too: part k of `parts` begins at item part_begin(n, parts, k). */
int64_t part_count(int64_t n, int64_t least_items);
int64_t part_begin(int64_t n, int64_t parts, int64_t k);

#endif

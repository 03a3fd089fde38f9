#include "backend/cpu/runtime/parallel.h"

#include "base/threads.h"

#include <omp.h>

/* Waking the threads takes about as long as reading MIN_WORK numbers. */
enum { MIN_WORK = 16384, MAX_PARTS = 64 };

void parallel_ranges(const struct kernel_call *c, int64_t n, int64_t grain, int64_t weight,
                     range_fn fn)
{
    int64_t grains = ceil_div(n, grain);
    /* Uses all threads or one, as libgomp terminates threads that a smaller team leaves out. */
    if (grains <= 1 || n * weight < MIN_WORK || omp_get_max_threads() == 1) {
        int64_t begun = threads_begin();
        if (n > 0) fn(c, 0, n);
        threads_end(begun);
        threads_joined();
        return;
    }
#pragma omp parallel
    {
        int64_t t = omp_get_thread_num(), of = omp_get_num_threads(), begun = threads_begin();
        int64_t first = part_begin(grains, of, t) * grain;
        int64_t last = min_i64(part_begin(grains, of, t + 1) * grain, n);
        if (first < last) fn(c, first, last);
        threads_end(begun);
    }
    threads_joined();
}

int64_t part_count(int64_t n, int64_t part_items)
{
    int64_t parts = ceil_div(n, part_items);
    return parts < 1 ? 1 : min_i64(parts, MAX_PARTS);
}

int64_t part_begin(int64_t n, int64_t parts, int64_t k)
{
    return n * k / parts;
}

#include "lab/ceiling.h"

#include "base/arena.h"
#include "base/threads.h"

#include <string.h>

enum status ceiling_copy(const struct device *d, void *context, void *to, const void *from,
                         int64_t bytes)
{
    if (d->backend->texts) return d->backend->memory.copy(context, to, from, bytes);
    int64_t threads = threads_count(), share = ceil_div(bytes, threads);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int64_t k = 0; k < threads; k++) {
        int64_t at = min_i64(k * share, bytes), n = min_i64(share, bytes - at);
        memcpy((char *)to + at, (const char *)from + at, (size_t)n);
    }
    return ST_OK;
}

const char *ceiling_copy_name(const struct device *d, struct arena *a)
{
    int64_t threads = threads_count();
    if (d->backend->texts) return "the driver's copy";
    return arena_printf(a, "memcpy by %lld thread%s", (long long)threads, threads == 1 ? "" : "s");
}

/* Measures copy bandwidth for sizes from L1 to beyond all caches, with the C library's memcpy.
 * memcpy was at least as fast as loops over 64-byte vectors at every size. Beyond the caches, where
 * memcpy uses non-temporal stores, it was 1.6 times as fast (44 against 28 GB/s, 2 threads). */
#include "base/caches.h"
#include "base/clock.h"
#include "base/free_memory.h"
#include "base/str.h"
#include "machine/machine_parts.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { SMALLEST = 16 << 10, PAGE = 2 << 20 };
static const int64_t ENOUGH = INT64_C(4) << 30, LEAST = 64 << 20, QUICK = INT64_C(1) << 30;

/* Source and destination of each thread; a copy uses the first bytes of both. */
struct copying {
    char *from, *to;
    int64_t per_thread; /* bytes of source and of destination per thread */
};

/* The largest number of bytes, for all threads together: four times L3, but at most an eighth of
 * the free memory. */
static int64_t largest(const struct machine_work *w)
{
    int64_t want = 4 * caches_last(), most = free_memory_bytes() / 8;
    if (want < 4 * LEAST) want = 4 * LEAST;
    if (want > ENOUGH) want = ENOUGH;
    if (w->quick && want > QUICK) want = QUICK;
    if (most > 0 && want > most) want = most;
    return want < LEAST ? LEAST : want;
}

/* Each thread is the first to touch its share, so that the share is on the thread's NUMA node. */
static enum status open_copying(struct copying *c, int64_t share, int threads)
{
    int64_t per_thread = round_up(share / 2, PAGE);
    char size[32];
    *c = (struct copying){.per_thread = per_thread};
    /* Linux overcommits: an allocation that is too large succeeds, and the process is killed when
     * it touches the memory. So the size is checked first. */
    int64_t free_bytes = free_memory_bytes();
    if (free_bytes < 0 || 2 * per_thread * threads <= free_bytes) {
        c->from = aligned_alloc(PAGE, (size_t)(per_thread * threads));
        c->to = aligned_alloc(PAGE, (size_t)(per_thread * threads));
    }
    if (!c->from || !c->to)
        return fail(ST_MEMORY, "%s cannot be allocated for a copy; close other programs",
                    str_bytes(size, 2.0 * (double)per_thread * (double)threads));
#pragma omp parallel num_threads(threads)
    {
        int64_t at = omp_get_thread_num() * per_thread;
        memset(c->from + at, 1 + omp_get_thread_num(), (size_t)per_thread);
        memset(c->to + at, 0, (size_t)per_thread);
    }
    return ST_OK;
}

static void close_copying(struct copying *c)
{
    free(c->from);
    free(c->to);
}

/* Copies `bytes` `times` times on each thread. Returns the milliseconds from the start of the first
 * thread to the end of the last, because threads start at different times on a busy machine. */
static double copy(const struct copying *c, int threads, int64_t bytes, int64_t times)
{
    int64_t start = INT64_MAX, end = 0;
#pragma omp parallel num_threads(threads) reduction(min : start) reduction(max : end)
    {
        int64_t at = omp_get_thread_num() * c->per_thread;
#pragma omp barrier
        start = clock_ns();
        for (int64_t i = 0; i < times; i++) {
            memcpy(c->to + at, c->from + at, (size_t)bytes);
            __asm__ volatile("" ::: "memory"); /* else the compiler may drop repeated copies */
        }
        end = clock_ns();
    }
    return clock_ms(start, end);
}

/* Bytes per second, read plus written, of the fastest of several tries. */
static double rate(const struct copying *c, int threads, int64_t bytes, bool quick)
{
    double best = 0, try_ms = quick ? 2 : 8;
    int64_t times = 1 + (int64_t)(try_ms * 2e7) / (2 * bytes); /* assuming 20 GB/s */
    copy(c, threads, bytes, 1);
    for (int i = 0; i < (quick ? 3 : 7); i++) {
        double ms = copy(c, threads, bytes, times);
        double moved = 2.0 * (double)bytes * (double)(times * threads) / (ms * 1e-3);
        if (moved > best) best = moved;
    }
    return best;
}

enum status machine_measure_copies(struct machine_work *w)
{
    struct machine *m = w->machine;
    struct copying c;
    int64_t share = largest(w) / m->threads;
    int sizes = 0;
    enum status st = ST_OK;
    TRY_OUT(st, open_copying(&c, share, m->threads));
    for (int64_t bytes = SMALLEST; bytes <= share && sizes < MACHINE_COPIES; bytes *= 2) sizes++;
    for (int i = 0; i < sizes; i++) {
        int64_t bytes = i + 1 < sizes ? (int64_t)SMALLEST << i : 2 * c.per_thread;
        TRY_OUT(st, machine_work_done(w, 0, "copies"));
        double all = rate(&c, m->threads, bytes / 2, w->quick);
        double one = m->threads > 1 ? rate(&c, 1, bytes / 2, w->quick) : all;
        m->copy[m->copies++] = (struct machine_copy){bytes, all, one};
        TRY_OUT(st, machine_work_done(w, 0.5 / sizes, "copies"));
    }
    machine_make_ceilings(m);
out:
    close_copying(&c);
    return st;
}

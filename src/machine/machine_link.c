/* Measures all-reduces of several sizes between ranks that are threads of this machine. */
#include "backend/communicator.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/floor.h"
#include "base/free_memory.h"
#include "base/heap.h"
#include "base/interrupt.h"
#include "base/stats.h"
#include "base/str.h"
#include "engine/crew.h"
#include "machine/machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SMALLEST = 4 << 10, FACTOR = 4, SIZES = 8, TIMEOUT_S = 30 }; /* 4 KiB ... 64 MiB */
enum { LEAST = 3, MOST = 200 };                                     /* runs of a size */
static const double guess_bytes_per_ms = 2e6;
static const int64_t LARGEST = (int64_t)SMALLEST << 2 * (SIZES - 1);

struct rank {
    struct communicator *communicator;
    float *data;
};

/* Writes the buffer so that its pages are allocated before the timing. */
static enum status open_rank(void **ret, const void *, struct communicator *c)
{
    struct rank *r = HEAP_NEW(struct rank, 1);
    *ret = r;
    *r = (struct rank){.communicator = c, .data = heap_alloc(LARGEST)};
    memset(r->data, 0, (size_t)LARGEST);
    return ST_OK;
}

/* Runs `times` all-reduces of n floats. */
static enum status reduce(const struct rank *r, int64_t n, int64_t times)
{
    for (int64_t i = 0; i < times; i++) {
        TRY(communicator_start(r->communicator, COLLECTIVE_ALL_REDUCE, r->data, n));
        TRY(communicator_wait(r->communicator, r->data));
    }
    return ST_OK;
}

static enum status obey(void *rank, const struct crew_order *o)
{
    return reduce(rank, o->iter, o->first);
}

static void close_rank(void *rank)
{
    struct rank *r = rank;
    free(r->data);
    free(r);
}

static const struct crew_work work = {open_rank, obey, close_rank};

/* Measures the time of the fastest run, from the arrival of the last rank to the end. */
static enum status measure(const struct rank *r, int ranks, int64_t bytes, bool quick,
                           struct machine_link *ret)
{
    struct collective_record record[MOST];
    int64_t n = bytes / (int64_t)sizeof(float), shortest_ns = INT64_MAX;
    int64_t times = (int64_t)((quick ? 10 : 100) * guess_bytes_per_ms / (double)bytes);
    times = max_i64(min_i64(times, MOST), LEAST);
    TRY(crew_order(r->communicator, 0, n, times));
    communicator_record(r->communicator, record, times);
    TRY(reduce(r, n, times));
    communicator_record(r->communicator, NULL, 0);
    for (int i = 0; i < times; i++)
        shortest_ns = min_i64(shortest_ns, record[i].done_ns - record[i].met_ns);
    double sent = 2.0 * (ranks - 1) / ranks * (double)bytes;
    *ret = (struct machine_link){ranks, bytes, 1e9 * sent / (double)max_i64(shortest_ns, 1)};
    return ST_OK;
}

static enum status check_memory(int ranks)
{
    char needed[32], there[32];
    int64_t free_bytes = free_memory_bytes(), bytes = ranks * LARGEST;
    if (free_bytes < 0 || bytes <= free_bytes) return ST_OK;
    return fail(ST_MEMORY,
                "all-reduces of %d ranks need %s of memory, and %s are free; close other programs, "
                "or choose fewer --ranks",
                ranks, str_bytes(needed, (double)bytes), str_bytes(there, (double)free_bytes));
}

enum status machine_measure_links(struct machine *m, int ranks, bool quick,
                                  void (*each)(void *user, double done, const char *what),
                                  void *user)
{
    struct crew crew;
    void *own = NULL;
    BUG_IF(ranks < 2 || m->gpu, "%d ranks have no link", ranks);
    TRY(check_memory(ranks));
    enum status st = crew_open(&crew, ranks, TIMEOUT_S, &work, NULL);
    if (st == ST_OK) st = open_rank(&own, NULL, crew.communicator);
    m->links = 0;
    for (int64_t bytes = SMALLEST; bytes <= LARGEST && st == ST_OK; bytes *= FACTOR) {
        if (each) each(user, (double)m->links / SIZES, "all-reduces");
        st = measure(own, ranks, bytes, quick, &m->link[m->links++]);
        if (interrupt_noted()) st = fail(ST_INTERRUPTED, "interrupted");
    }
    crew_close(&crew);
    if (own) close_rank(own);
    return st;
}

double machine_link_rate(const struct machine *m, int ranks, double bytes)
{
    struct ceilings c = {.threads = 1};
    for (int i = 0; i < m->links && c.copies < CEILINGS_COPIES; i++) {
        if (m->link[i].ranks != ranks) continue;
        c.copy_bytes[c.copies] = (double)m->link[i].bytes;
        c.copy_rate[c.copies++] = m->link[i].sent;
    }
    return floor_copy_rate(&c, bytes);
}

/* Ranks that are threads of one process. For each collective all ranks meet; then each rank does
 * its part directly on the memories of all ranks. */
#include "backend/ranks/link.h"

#include "base/clock.h"
#include "base/heap.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct team {
    int ranks, open;
    int64_t timeout_s;
    pthread_mutex_t mutex;
    pthread_cond_t met;
    int64_t meetings; /* number of meetings at which all ranks have arrived */
    int64_t met_ns;   /* when the last rank arrived at the latest of these meetings */
    int arrived;      /* ranks that have arrived at the next meeting */
    int working;      /* ranks that may use the memory of others */
    enum status st;   /* of the first failure; ST_OK: there was none */
    struct failure why;
    struct member {
        struct team *team;
        int rank;
        bool here; /* it has arrived at the next meeting */
        struct collective_call call;
        float **data;   /* of every rank in this collective */
        void **of_rank; /* of every rank in this collective */
    } member[];
};

static void fail_team(struct team *t, enum status st)
{
    if (t->st == ST_OK) fail_keep(&t->why);
    if (t->st == ST_OK) t->st = st;
    pthread_cond_broadcast(&t->met);
}

static enum status fail_late(struct team *t)
{
    int first = 0;
    while (first < t->ranks && t->member[first].here) first++;
    enum status st = fail(ST_DEVICE, "rank %d did not answer for %lld s (rank_timeout)", first,
                          (long long)t->timeout_s);
    fail_team(t, st);
    return st;
}

static struct timespec after_timeout(const struct team *t)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += t->timeout_s;
    return end;
}

/* Waits until all ranks have arrived. From then on each rank may work on the memory of all ranks,
 * until it calls leave. Fails if a rank failed or does not arrive within timeout_s. A rank that
 * waits for a message of rank 0 (COLLECTIVE_TELL) has no timeout. */
static enum status meet(struct member *m)
{
    struct team *t = m->team;
    enum status st = ST_OK;
    pthread_mutex_lock(&t->mutex);
    struct timespec end = after_timeout(t);
    int64_t meeting = t->meetings;
    m->here = true;
    if (t->st == ST_OK && ++t->arrived == t->ranks) {
        for (int r = 0; r < t->ranks; r++) t->member[r].here = false;
        t->arrived = 0;
        t->working += t->ranks;
        t->meetings++;
        t->met_ns = clock_ns();
        pthread_cond_broadcast(&t->met);
    }
    bool patient = m->call.what == COLLECTIVE_BROADCAST_MESSAGE && m->rank > 0;
    while (t->meetings == meeting && t->st == ST_OK && st == ST_OK) {
        if (patient)
            pthread_cond_wait(&t->met, &t->mutex);
        else if (pthread_cond_timedwait(&t->met, &t->mutex, &end) == ETIMEDOUT &&
                 t->meetings == meeting && t->st == ST_OK)
            st = fail_late(t);
    }
    if (t->meetings == meeting && st == ST_OK) {
        fail_restore(&t->why);
        st = t->st;
    }
    pthread_mutex_unlock(&t->mutex);
    return st;
}

/* Says that this rank no longer works on the memory of others. */
static void leave(struct team *t)
{
    pthread_mutex_lock(&t->mutex);
    t->working--;
    pthread_cond_broadcast(&t->met);
    pthread_mutex_unlock(&t->mutex);
}

/* --- collectives ------------------------------------------------------------------------------ */

static enum status sum_on_host(void *, float *const *all, int ranks, int64_t first, int64_t end,
                               int to_first, int to_end)
{
    enum { BLOCK = 1024 };
    float total[BLOCK];
    for (int64_t at = first; at < end; at += BLOCK) {
        int64_t n = min_i64(BLOCK, end - at);
        memcpy(total, all[0] + at, (size_t)n * sizeof *total);
        for (int r = 1; r < ranks; r++) {
            const float *x = all[r] + at;
            for (int64_t i = 0; i < n; i++) total[i] += x[i];
        }
        for (int r = to_first; r < to_end; r++)
            memcpy(all[r] + at, total, (size_t)n * sizeof *total);
    }
    return ST_OK;
}

static enum status copy_on_host(void *, float *to, const float *from, int64_t n)
{
    memcpy(to, from, (size_t)n * sizeof *to);
    return ST_OK;
}

/* A function that computes on the host returns when its work is done, so no order is needed. */
static enum status follow_on_host(void *, void *)
{
    return ST_OK;
}

static enum status mark_on_host(void *)
{
    return ST_OK;
}

static const struct collective_memory host = {follow_on_host, sum_on_host, copy_on_host,
                                              mark_on_host, mark_on_host};

static const struct collective_memory *memory_of(const struct member *m)
{
    return m->call.memory ? m->call.memory : &host;
}

/* Copies elements first ... end - 1 from rank `from` to rank `to`, unless these are the same. */
static enum status copy(struct member *m, int to, int from, int64_t first, int64_t end)
{
    float **data = m->data;
    if (to == from || end <= first) return ST_OK;
    return memory_of(m)->copy(m->call.of_rank, data[to] + first, data[from] + first, end - first);
}

static enum status sum(struct member *m, int64_t first, int64_t end, int to_first, int to_end)
{
    return memory_of(m)->sum(m->call.of_rank, m->data, m->team->ranks, first, end, to_first,
                             to_end);
}

/* Does this rank's part of a collective, while all other ranks are in the same collective. */
static enum status work(struct member *m)
{
    struct team *t = m->team;
    struct collective_call *c = &m->call;
    struct group_shard own = group_shard(c->n, t->ranks, m->rank);
    switch (c->what) {
    case COLLECTIVE_ALL_REDUCE:
        return sum(m, own.first, own.end, 0, t->ranks);
    case COLLECTIVE_REDUCE_SCATTER:
        return sum(m, own.first, own.end, m->rank, m->rank + 1);
    case COLLECTIVE_ALL_GATHER:
        for (int r = 0; r < t->ranks; r++) TRY(copy(m, r, m->rank, own.first, own.end));
        break;
    case COLLECTIVE_BROADCAST:
        return copy(m, m->rank, 0, 0, c->n);
    case COLLECTIVE_BROADCAST_MESSAGE:
        if (m->rank > 0) memcpy(c->all, t->member[0].call.all, (size_t)c->n);
        break;
    case COLLECTIVE_GATHER:
        for (int r = 0; r < t->ranks; r++)
            memcpy((char *)c->all + r * c->n, t->member[r].call.mine, (size_t)c->n);
        break;
    }
    return ST_OK;
}

static enum status check_same(const struct member *m)
{
    const struct collective_call *c = &m->call, *first = &m->team->member[0].call;
    if (c->what == first->what && c->n == first->n && c->memory == first->memory) return ST_OK;
    return fail(ST_DEVICE, "rank %d is in another collective than rank 0", m->rank);
}

/* Orders this rank's later work on the device behind the last mark of every rank. */
static enum status follow_all(struct member *m)
{
    for (int r = 0; r < m->team->ranks; r++)
        TRY(memory_of(m)->follow(m->call.of_rank, m->of_rank[r]));
    return ST_OK;
}

static enum status do_part(struct member *m)
{
    const struct team *t = m->team;
    for (int r = 0; r < t->ranks; r++) {
        m->data[r] = t->member[r].call.data;
        m->of_rank[r] = t->member[r].call.of_rank;
    }
    TRY(check_same(m));
    TRY(follow_all(m));
    TRY(work(m));
    return memory_of(m)->mark(m->call.of_rank);
}

/* Runs after all ranks have done their parts. Other ranks may already be in the next collective, so
 * this function uses only the copies in m->of_rank. */
static enum status end_part(struct member *m)
{
    TRY(follow_all(m));
    return memory_of(m)->mark(m->call.of_rank);
}

static void tell_failure(struct member *m, enum status st)
{
    fail_team(m->team, fail_in(st, "rank %d", m->rank));
}

static enum status meet_and(struct member *m, enum status (*part)(struct member *m))
{
    struct team *t = m->team;
    TRY(meet(m));
    enum status st = part(m);
    if (st != ST_OK) {
        pthread_mutex_lock(&t->mutex);
        tell_failure(m, st);
        pthread_mutex_unlock(&t->mutex);
    }
    leave(t);
    return st;
}

static enum status run(void *link, struct collective_call *c)
{
    struct member *m = link;
    m->call = *c;
    TRY(meet_and(m, do_part));
    c->met_ns = m->team->met_ns; /* still of this meeting: the next one needs this rank */
    return meet_and(m, end_part);
}

/* After this call no other rank works on the caller's memory, so the caller may release the memory.
 * The exception is a rank that hangs for longer than the timeout. */
static void fail_others(void *link, enum status st)
{
    struct member *m = link;
    struct team *t = m->team;
    int waited = 0;
    pthread_mutex_lock(&t->mutex);
    struct timespec end = after_timeout(t);
    tell_failure(m, st);
    while (t->working > 0 && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&t->met, &t->mutex, &end);
    pthread_mutex_unlock(&t->mutex);
}

static void set_timeout(void *link, int64_t seconds)
{
    struct team *t = ((struct member *)link)->team;
    pthread_mutex_lock(&t->mutex);
    t->timeout_s = seconds;
    pthread_mutex_unlock(&t->mutex);
}

/* No rank is ever lost: threads end only with the process. */
static int lost(void *)
{
    return -1;
}

static void close_link(void *link)
{
    struct team *t = ((struct member *)link)->team;
    pthread_mutex_lock(&t->mutex);
    bool last = --t->open == 0;
    pthread_mutex_unlock(&t->mutex);
    if (!last) return;
    pthread_cond_destroy(&t->met);
    pthread_mutex_destroy(&t->mutex);
    for (int r = 0; r < t->ranks; r++) {
        free(t->member[r].data);
        free(t->member[r].of_rank);
    }
    free(t);
}

void communicator_open_threads(struct communicator **ret, int ranks, int64_t timeout_s)
{
    static const struct link link = {.name = "threads",
                                     .in_process = true,
                                     .run = run,
                                     .fail = fail_others,
                                     .set_timeout = set_timeout,
                                     .lost = lost,
                                     .close = close_link};
    struct team *t = heap_zeroed((int64_t)(sizeof *t + (size_t)ranks * sizeof t->member[0]));
    pthread_condattr_t monotonic;
    t->ranks = t->open = ranks;
    t->timeout_s = timeout_s;
    pthread_mutex_init(&t->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&t->met, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (int r = 0; r < ranks; r++)
        t->member[r] = (struct member){.team = t,
                                       .rank = r,
                                       .data = HEAP_NEW(float *, ranks),
                                       .of_rank = HEAP_NEW(void *, ranks)};
    for (int r = 0; r < ranks; r++) ret[r] = communicator_open(&link, &t->member[r], r, ranks);
}

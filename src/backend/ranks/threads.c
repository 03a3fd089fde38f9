/* Ranks that are threads of one process: they meet, and each sums its share into all memories. */
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
    int64_t meetings; /* at which all have arrived */
    int64_t met_ns;   /* the time of the last one */
    int arrived;
    bool failed;
    struct failure why;
    struct member {
        struct team *team;
        int rank;
        bool here; /* it has arrived at the next meeting */
        struct collective_call call;
    } member[];
};

static void fail_team(struct team *t)
{
    if (!t->failed) fail_keep(&t->why);
    t->failed = true;
    pthread_cond_broadcast(&t->met);
}

static enum status fail_late(struct team *t)
{
    int first = 0;
    while (first < t->ranks && t->member[first].here) first++;
    enum status st = fail(ST_DEVICE, "rank %d did not answer for %lld s (rank_timeout)", first,
                          (long long)t->timeout_s);
    fail_team(t);
    return st;
}

/* Returns when all ranks have arrived. Orders are waited for as long as it takes. */
static enum status meet(struct member *m)
{
    struct team *t = m->team;
    struct timespec end;
    enum status st = ST_OK;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += t->timeout_s;
    pthread_mutex_lock(&t->mutex);
    int64_t meeting = t->meetings;
    m->here = true;
    if (!t->failed && ++t->arrived == t->ranks) {
        for (int r = 0; r < t->ranks; r++) t->member[r].here = false;
        t->arrived = 0;
        t->meetings++;
        t->met_ns = clock_ns();
        pthread_cond_broadcast(&t->met);
    }
    bool patient = m->call.what == COLLECTIVE_TELL && m->rank > 0;
    while (t->meetings == meeting && !t->failed && st == ST_OK) {
        if (patient)
            pthread_cond_wait(&t->met, &t->mutex);
        else if (pthread_cond_timedwait(&t->met, &t->mutex, &end) == ETIMEDOUT &&
                 t->meetings == meeting && !t->failed)
            st = fail_late(t);
    }
    if (t->meetings == meeting && st == ST_OK) {
        fail_restore(&t->why);
        st = ST_DEVICE;
    }
    pthread_mutex_unlock(&t->mutex);
    return st;
}

/* --- collectives ------------------------------------------------------------------------------ */

/* Sums elements first ... end - 1 of all ranks, in their order, into the memory of those from
 * `to_first` to `to_end` - 1. */
static void sum(const struct team *t, int64_t first, int64_t end, int to_first, int to_end)
{
    enum { BLOCK = 1024 };
    float total[BLOCK];
    for (int64_t at = first; at < end; at += BLOCK) {
        int64_t n = min_i64(BLOCK, end - at);
        memcpy(total, t->member[0].call.data + at, (size_t)n * sizeof *total);
        for (int r = 1; r < t->ranks; r++) {
            const float *x = t->member[r].call.data + at;
            for (int64_t i = 0; i < n; i++) total[i] += x[i];
        }
        for (int r = to_first; r < to_end; r++)
            memcpy(t->member[r].call.data + at, total, (size_t)n * sizeof *total);
    }
}

static void copy_floats(float *to, const float *from, int64_t first, int64_t end)
{
    if (to != from && end > first)
        memcpy(to + first, from + first, (size_t)(end - first) * sizeof *to);
}

/* The part of a collective that this rank does while all others are in it. */
static void work(struct member *m)
{
    struct team *t = m->team;
    struct collective_call *c = &m->call;
    struct group_shard own = group_shard(c->n, t->ranks, m->rank);
    switch (c->what) {
    case COLLECTIVE_ALL_REDUCE:
        sum(t, own.first, own.end, 0, t->ranks);
        break;
    case COLLECTIVE_REDUCE_SCATTER:
        sum(t, own.first, own.end, m->rank, m->rank + 1);
        break;
    case COLLECTIVE_ALL_GATHER:
        for (int r = 0; r < t->ranks; r++)
            copy_floats(t->member[r].call.data, c->data, own.first, own.end);
        break;
    case COLLECTIVE_BROADCAST:
        copy_floats(c->data, t->member[0].call.data, 0, c->n);
        break;
    case COLLECTIVE_TELL:
        if (m->rank > 0) memcpy(c->all, t->member[0].call.all, (size_t)c->n);
        break;
    case COLLECTIVE_GATHER:
        for (int r = 0; r < t->ranks; r++)
            memcpy((char *)c->all + r * c->n, t->member[r].call.mine, (size_t)c->n);
        break;
    }
}

static void fail_others(void *link)
{
    struct member *m = link;
    pthread_mutex_lock(&m->team->mutex);
    (void)!fail_in(ST_DEVICE, "rank %d", m->rank);
    fail_team(m->team);
    pthread_mutex_unlock(&m->team->mutex);
}

static enum status run(void *link, struct collective_call *c)
{
    struct member *m = link;
    m->call = *c;
    TRY(meet(m));
    c->met_ns = m->team->met_ns; /* the next meeting waits for this rank */
    const struct collective_call *first = &m->team->member[0].call;
    if (c->what != first->what || c->n != first->n) {
        enum status st = fail(ST_DEVICE, "rank %d is in another collective than rank 0", m->rank);
        fail_others(link);
        return st;
    }
    work(m);
    return meet(m);
}

static void set_timeout(void *link, int64_t seconds)
{
    struct team *t = ((struct member *)link)->team;
    pthread_mutex_lock(&t->mutex);
    t->timeout_s = seconds;
    pthread_mutex_unlock(&t->mutex);
}

/* Threads end only with the process. */
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
    free(t);
}

void communicator_open_threads(struct communicator **ret, int ranks, int64_t timeout_s)
{
    static const struct link link = {"threads", run, fail_others, set_timeout, lost, close_link};
    struct team *t = heap_zeroed((int64_t)(sizeof *t + (size_t)ranks * sizeof t->member[0]));
    pthread_condattr_t monotonic;
    t->ranks = t->open = ranks;
    t->timeout_s = timeout_s;
    pthread_mutex_init(&t->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&t->met, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (int r = 0; r < ranks; r++) t->member[r] = (struct member){.team = t, .rank = r};
    for (int r = 0; r < ranks; r++) ret[r] = communicator_open(&link, &t->member[r], r, ranks);
}

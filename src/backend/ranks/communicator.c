/* The queue of a rank's collectives, and the thread that runs them. */
#include "backend/communicator.h"

#include "backend/ranks/link.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/threads.h"

#include <stdlib.h>

enum { QUEUE = 4096 }; /* collectives that were started and are remembered */

struct communicator {
    int rank, ranks;
    const struct link *link;
    void *state;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t posted_one, done_one;
    struct collective_call call[QUEUE]; /* number i is in place i % QUEUE */
    int64_t posted, done;
    bool closing;
    struct collective_record *record; /* NULL: none is kept */
    int64_t records, most;
    enum status st; /* of the first call that failed */
    struct failure why;
};

struct group_shard group_shard(int64_t n, int ranks, int rank)
{
    enum { GRAIN = 16 };
    int64_t each = round_up((n + ranks - 1) / ranks, GRAIN);
    return (struct group_shard){min_i64(n, rank * each), min_i64(n, (rank + 1) * each)};
}

int communicator_rank(const struct communicator *c)
{
    return c ? c->rank : 0;
}

int communicator_ranks(const struct communicator *c)
{
    return c ? c->ranks : 1;
}

const char *communicator_name(const struct communicator *c)
{
    return c ? c->link->name : "";
}

bool communicator_in_process(const struct communicator *c)
{
    return !c || c->link->in_process;
}

static enum status run_collective(struct communicator *c, struct collective_call *call)
{
    if (!call->posted_ns) return c->link->run(c->state, call);
    int64_t begun_ns = clock_ns();
    enum status st = c->link->run(c->state, call);
    if (c->records == c->most) return st;
    c->record[c->records++] = (struct collective_record){.what = call->what,
                                                         .n = call->n,
                                                         .posted_ns = call->posted_ns,
                                                         .begun_ns = begun_ns,
                                                         .done_ns = clock_ns(),
                                                         .met_ns = max_i64(call->met_ns, begun_ns)};
    return st;
}

/* After a failure the calls that follow are passed over, so that no one waits for them. */
static void *work(void *user)
{
    struct communicator *c = user;
    pthread_mutex_lock(&c->mutex);
    for (;;) {
        while (c->done == c->posted && !c->closing) pthread_cond_wait(&c->posted_one, &c->mutex);
        if (c->done == c->posted) break;
        struct collective_call call = c->call[c->done % QUEUE];
        if (c->st == ST_OK) {
            pthread_mutex_unlock(&c->mutex);
            enum status st = run_collective(c, &call);
            pthread_mutex_lock(&c->mutex);
            if (st != ST_OK) fail_keep(&c->why);
            c->st = st;
        }
        c->done++;
        pthread_cond_broadcast(&c->done_one);
    }
    pthread_mutex_unlock(&c->mutex);
    return NULL;
}

struct communicator *communicator_open(const struct link *link, void *state, int rank, int ranks)
{
    struct communicator *c = HEAP_NEW(struct communicator, 1);
    *c = (struct communicator){.rank = rank, .ranks = ranks, .link = link, .state = state};
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->posted_one, NULL);
    pthread_cond_init(&c->done_one, NULL);
    BUG_IF(!threads_start(&c->thread, work, c), "cannot start the communicator's thread of rank %d",
           rank);
    return c;
}

/* Returns the number of the call. */
static int64_t post(struct communicator *c, const struct collective_call *call)
{
    pthread_mutex_lock(&c->mutex);
    while (c->posted - c->done == QUEUE) pthread_cond_wait(&c->done_one, &c->mutex);
    int64_t number = c->posted++;
    c->call[number % QUEUE] = *call;
    if (c->record && call->data) c->call[number % QUEUE].posted_ns = clock_ns();
    pthread_cond_signal(&c->posted_one);
    pthread_mutex_unlock(&c->mutex);
    return number;
}

static enum status wait_for(struct communicator *c, int64_t number)
{
    pthread_mutex_lock(&c->mutex);
    while (c->done <= number) pthread_cond_wait(&c->done_one, &c->mutex);
    enum status st = c->st;
    if (st != ST_OK) fail_restore(&c->why);
    pthread_mutex_unlock(&c->mutex);
    return st;
}

enum status communicator_start(struct communicator *c, enum collective what, float *data, int64_t n)
{
    if (c) post(c, &(struct collective_call){.what = what, .data = data, .n = n});
    return ST_OK;
}

enum status communicator_start_in(struct communicator *c, enum collective what, float *data,
                                  int64_t n, const struct collective_memory *memory, void *call)
{
    BUG_IF(!communicator_in_process(c), "processes do not share the memory of a device");
    if (c)
        post(c, &(struct collective_call){
                    .what = what, .data = data, .n = n, .memory = memory, .of_rank = call});
    return ST_OK;
}

enum status communicator_wait(struct communicator *c, const float *data)
{
    if (!c) return ST_OK;
    pthread_mutex_lock(&c->mutex);
    int64_t oldest = max_i64(0, c->posted - QUEUE), number = c->posted - 1;
    while (number >= oldest && c->call[number % QUEUE].data != data) number--;
    BUG_IF(number < 0, "no collective was started on this memory");
    /* The collective on this memory is older than all that are remembered. Once the oldest
     * remembered one has run, this collective has run, too. */
    if (number < oldest) number = oldest;
    struct collective_call call = c->call[number % QUEUE];
    pthread_mutex_unlock(&c->mutex);
    TRY(wait_for(c, number));
    return call.memory ? call.memory->join(call.of_rank) : ST_OK;
}

enum status communicator_gather(struct communicator *c, const void *mine, int64_t bytes,
                                void *ret_all)
{
    BUG_IF(!c, "one rank has no one to gather from");
    struct collective_call call = {
        .what = COLLECTIVE_GATHER, .n = bytes, .mine = mine, .all = ret_all};
    return wait_for(c, post(c, &call));
}

enum status communicator_tell(struct communicator *c, void *message, int64_t bytes)
{
    if (!c) return ST_OK;
    struct collective_call call = {
        .what = COLLECTIVE_BROADCAST_MESSAGE, .n = bytes, .all = message};
    return wait_for(c, post(c, &call));
}

enum status communicator_broadcast(struct communicator *c, float *data, int64_t n)
{
    TRY(communicator_start(c, COLLECTIVE_BROADCAST, data, n));
    return communicator_wait(c, data);
}

void communicator_record(struct communicator *c, struct collective_record *record, int64_t most)
{
    if (!c) return;
    pthread_mutex_lock(&c->mutex);
    c->record = record;
    c->records = 0;
    c->most = record ? most : 0;
    pthread_mutex_unlock(&c->mutex);
}

void communicator_set_timeout(struct communicator *c, int64_t seconds)
{
    if (c) c->link->set_timeout(c->state, seconds);
}

enum status communicator_check(struct communicator *c, int64_t waited_ns)
{
    if (!c || !c->link->look) return ST_OK;
    pthread_mutex_lock(&c->mutex);
    enum status st = c->posted == c->done ? c->link->look(c->state, waited_ns) : ST_OK;
    pthread_mutex_unlock(&c->mutex);
    return st;
}

bool communicator_has_failed(const struct communicator *c)
{
    return c && c->link->failed && c->link->failed(c->state);
}

bool communicator_reports(const struct communicator *c)
{
    return communicator_rank(c) == 0 || (c->rank == 1 && c->link->lost(c->state) == 0);
}

void communicator_fail(struct communicator *c, enum status st)
{
    struct failure why;
    bool same = st == ST_NUMERIC || st == ST_IO || st == ST_FORMAT;
    if (!c) return;
    fail_keep(&why);
    c->link->fail(c->state, same ? st : ST_DEVICE);
    fail_restore(&why);
}

void communicator_close(struct communicator *c)
{
    if (!c) return;
    pthread_mutex_lock(&c->mutex);
    c->closing = true;
    pthread_cond_signal(&c->posted_one);
    pthread_mutex_unlock(&c->mutex);
    pthread_join(c->thread, NULL);
    c->link->close(c->state);
    pthread_cond_destroy(&c->posted_one);
    pthread_cond_destroy(&c->done_one);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}

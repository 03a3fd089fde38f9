#include "backend/cuda/runtime/nccl.h"

#include "backend/cuda/runtime/context.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NCCL_SUCCESS = 0, NCCL_FLOAT = 7, NCCL_BFLOAT16 = 9, NCCL_SUM = 0, NCCL_IN_PROGRESS = 7 };

typedef struct ncclComm *comm;
struct nccl_id {
    char bytes[128];
};

/* All functions except the first return an int, which is 0 for success. */
/* clang-format off */
#define NCCL_LIST(F)                                                                            \
    F(ncclGetErrorString, const char *, (int))                                                  \
    F(ncclGetVersion, int, (int *))                                                             \
    F(ncclGetUniqueId, int, (struct nccl_id *))                                                 \
    F(ncclCommInitRank, int, (comm *, int, struct nccl_id, int))                                \
    F(ncclCommDestroy, int, (comm))                                                             \
    F(ncclCommAbort, int, (comm))                                                               \
    F(ncclCommGetAsyncError, int, (comm, int *))                                                \
    F(ncclGroupStart, int, (void))                                                              \
    F(ncclGroupEnd, int, (void))                                                                \
    F(ncclAllReduce, int, (const void *, void *, size_t, int, int, comm, CUstream))             \
    F(ncclReduce, int, (const void *, void *, size_t, int, int, int, comm, CUstream))           \
    F(ncclReduceScatter, int, (const void *, void *, size_t, int, int, comm, CUstream))         \
    F(ncclAllGather, int, (const void *, void *, size_t, int, comm, CUstream))                  \
    F(ncclBroadcast, int, (const void *, void *, size_t, int, int, comm, CUstream))
/* clang-format on */

#define MEMBER(name, type, parameters) type(*name) parameters;
#define SYMBOL(name, type, parameters) #name,
struct library {
    NCCL_LIST(MEMBER)
};

static const struct library *library(const char **ret_why)
{
    static const char *const names[] = {"libnccl.so.2", "libnccl.so", NULL};
    static const char *const symbols[] = {NCCL_LIST(SYMBOL)};
    static struct library table;
    static struct library_state l;
    _Static_assert(sizeof table == sizeof symbols, "one pointer per name");
    return library_table(&l, names, false, symbols, COUNT_OF(symbols), &table, ret_why);
}

struct nccl {
    const struct library *library;
    struct nccl_id id;
    comm comm;
    int rank, ranks;
    bool failed;
    struct note {
        const void *data;
        CUevent event;
    } * note; /* for each memory on which a collective was started: the event that ends it */
    int notes, capacity;
    /* For the thread that joins the GPUs and then watches (work). */
    struct communicator *communicator;
    const void *context;
    pthread_t thread;
    pthread_mutex_t mutex; /* protects the members below */
    pthread_cond_t changed;
    bool joined, closing;
    int join_result, waiters;
    int64_t since_ns; /* when the last wait began or ended */
    enum status st;   /* the failure that the thread found */
    struct failure why;
};

static enum status check(struct nccl *n, int r, const char *doing)
{
    if (r == NCCL_SUCCESS) return ST_OK;
    n->failed = true;
    return fail(ST_DEVICE, "NCCL cannot %s: %s (NCCL_DEBUG=WARN says more)", doing,
                n->library->ncclGetErrorString(r));
}

/* --- the thread that joins the GPUs, then watches --------------------------------------------- */

/* Waits for `changed`, at most a tenth of a second. */
static void doze(struct nccl *n)
{
    enum { TICK_NS = 100000000, SECOND_NS = 1000000000 };
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += TICK_NS;
    t.tv_sec += t.tv_nsec / SECOND_NS;
    t.tv_nsec %= SECOND_NS;
    pthread_cond_timedwait(&n->changed, &n->mutex, &t);
}

/* Looks for a failure of another rank or of NCCL. The failure of another rank says more, so it is
 * reported if there are both. Whatever stopped the other rank, a file for example, this rank's step
 * on the device is incomplete, so the status is ST_DEVICE; only ST_NUMERIC is passed on. */
static enum status look(struct nccl *n)
{
    static const int64_t usual_ns = 100000000;
    int error = NCCL_SUCCESS;
    int64_t waited_ns = clock_ns() - n->since_ns;
    n->library->ncclCommGetAsyncError(n->comm, &error);
    bool broken = error != NCCL_SUCCESS && error != NCCL_IN_PROGRESS;
    enum status st = ST_OK;
    if (broken || waited_ns > usual_ns) st = communicator_check(n->communicator, waited_ns);
    if (st != ST_OK) return st == ST_NUMERIC ? st : ST_DEVICE;
    return broken ? check(n, error, "sum over the ranks") : ST_OK;
}

static void sleep_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* After a failure, the thread that waits for the GPU should report the failure and end the process.
 * This function does both instead if that thread still waits after STUCK_MS because NCCL's kernels
 * do not end, or if the process has not ended after ENDING_MS: mpirun kills all ranks one to three
 * seconds after it has lost one, and the report must come first. Ranks other than 0 wait
 * FOLLOWER_MS, so that mpirun kills them first: a rank that was stopped and is woken only to end
 * would otherwise report that rank 0 has ended. */
static void *end_process(void *user)
{
    enum { STUCK_MS = 400, ENDING_MS = 700, FOLLOWER_MS = 10000 };
    struct nccl *n = user;
    char text[sizeof n->why.message + 80];
    sleep_ms(n->rank ? FOLLOWER_MS : STUCK_MS);
    pthread_mutex_lock(&n->mutex);
    bool stuck = n->waiters > 0;
    pthread_mutex_unlock(&n->mutex);
    if (!n->rank && !stuck) sleep_ms(ENDING_MS - STUCK_MS);
    snprintf(text, sizeof text,
             "%s; a training continues from its last checkpoint with --init_from=resume",
             n->why.message);
    if (communicator_reports(n->communicator)) log_end(text);
    _exit(1);
}

static void *work(void *user)
{
    struct nccl *n = user;
    pthread_t end;
    int r = NCCL_SUCCESS + 1;
    struct nccl_id id = n->id;
    comm joined = NULL;
    if (cuda_enter(n->context) == ST_OK)
        r = n->library->ncclCommInitRank(&joined, n->ranks, id, n->rank);
    pthread_mutex_lock(&n->mutex);
    n->comm = joined;
    n->join_result = r;
    n->joined = true;
    pthread_cond_broadcast(&n->changed);
    while (r == NCCL_SUCCESS && n->st == ST_OK && !n->closing) {
        doze(n);
        if (n->waiters) n->st = look(n);
    }
    comm broken = n->st != ST_OK ? n->comm : NULL;
    if (broken) {
        fail_keep(&n->why);
        n->failed = true;
        n->comm = NULL;
    }
    pthread_mutex_unlock(&n->mutex);
    if (!broken) return NULL;
    (void)threads_start(&end, end_process, n);
    n->library->ncclCommAbort(broken); /* this call waits until captured graphs are freed */
    return NULL;
}

/* Starts the thread and waits until NCCL has joined the GPUs. NCCL waits without a limit for a
 * missing rank, so this function looks for failed ranks, too. After a failure the thread is left
 * running. */
static enum status join(struct nccl *n)
{
    enum status st = ST_OK;
    int64_t start_ns = clock_ns();
    if (!threads_start(&n->thread, work, n))
        return fail(ST_MEMORY, "the system has no thread that watches NCCL");
    pthread_mutex_lock(&n->mutex);
    while (!n->joined && st == ST_OK) {
        doze(n);
        if (!n->joined) st = communicator_check(n->communicator, clock_ns() - start_ns);
    }
    pthread_mutex_unlock(&n->mutex);
    return st == ST_OK ? check(n, n->join_result, "join the GPUs")
                       : fail_in(st, "joining the GPUs");
}

enum status nccl_open(struct nccl **ret, struct communicator *c, const void *context)
{
    const char *why;
    const struct library *l = library(&why);
    if (!l) return fail(ST_UNSUPPORTED, "ranks on several GPUs need NCCL: %s", why);
    struct nccl *n = HEAP_NEW(struct nccl, 1); /* not freed on failure: the thread may use it */
    n->library = l;
    n->rank = communicator_rank(c);
    n->ranks = communicator_ranks(c);
    n->communicator = c;
    n->context = context;
    pthread_mutex_init(&n->mutex, NULL);
    pthread_cond_init(&n->changed, NULL);
    if (!n->rank) TRY(check(n, l->ncclGetUniqueId(&n->id), "make an id"));
    TRY(communicator_tell(c, &n->id, sizeof n->id));
    TRY(join(n));
    *ret = n;
    return ST_OK;
}

/* The failure that the thread found; ST_OK: there is none. */
static enum status watched(struct nccl *n)
{
    pthread_mutex_lock(&n->mutex);
    enum status st = n->st;
    if (st != ST_OK) fail_restore(&n->why);
    pthread_mutex_unlock(&n->mutex);
    return st;
}

void nccl_wait_begin(struct nccl *n)
{
    if (!n) return;
    pthread_mutex_lock(&n->mutex);
    if (!n->waiters++) n->since_ns = clock_ns();
    pthread_mutex_unlock(&n->mutex);
}

enum status nccl_wait_end(struct nccl *n)
{
    if (!n) return ST_OK;
    pthread_mutex_lock(&n->mutex);
    n->waiters--;
    n->since_ns = clock_ns();
    pthread_mutex_unlock(&n->mutex);
    return watched(n);
}

/* --- collectives ------------------------------------------------------------------------------ */

static int number_of(const struct type *t)
{
    return t->dtype == DT_BF16 ? NCCL_BFLOAT16 : NCCL_FLOAT;
}

/* Reduces (scatter) or gathers the shards of all ranks, in place. NCCL's own collectives need
 * shards of equal size. If the last shards are shorter, each shard is one reduction to its rank or
 * one broadcast from its rank. */
static enum status shards(struct nccl *n, bool scatter, char *data, const struct type *t,
                          CUstream s)
{
    const struct library *l = n->library;
    int64_t count = type_elements(t), bytes = dtype_size(t->dtype);
    struct group_shard own = group_shard(count, n->ranks, n->rank);
    size_t each = (size_t)(own.end - own.first);
    char *mine = data + own.first * bytes;
    int type = number_of(t);
    if (count == (int64_t)each * n->ranks)
        return scatter
                   ? check(n, l->ncclReduceScatter(data, mine, each, type, NCCL_SUM, n->comm, s),
                           "reduce shards")
                   : check(n, l->ncclAllGather(mine, data, each, type, n->comm, s),
                           "gather shards");
    TRY(check(n, l->ncclGroupStart(), "group calls"));
    for (int r = 0; r < n->ranks; r++) {
        struct group_shard of = group_shard(count, n->ranks, r);
        char *x = data + of.first * bytes;
        size_t size = (size_t)(of.end - of.first);
        if (!size) continue;
        TRY(scatter
                ? check(n, l->ncclReduce(x, x, size, type, NCCL_SUM, r, n->comm, s),
                        "reduce a shard")
                : check(n, l->ncclBroadcast(x, x, size, type, r, n->comm, s), "gather a shard"));
    }
    return check(n, l->ncclGroupEnd(), "group calls");
}

enum status nccl_run(struct nccl *n, enum collective what, void *data, const struct type *t,
                     CUstream stream)
{
    const struct library *l = n->library;
    size_t size = (size_t)type_elements(t);
    int type = number_of(t);
    TRY(watched(n));
    switch (what) {
    case COLLECTIVE_ALL_REDUCE:
        return check(n, l->ncclAllReduce(data, data, size, type, NCCL_SUM, n->comm, stream), "sum");
    case COLLECTIVE_REDUCE_SCATTER:
        return shards(n, true, data, t, stream);
    case COLLECTIVE_ALL_GATHER:
        return shards(n, false, data, t, stream);
    case COLLECTIVE_BROADCAST:
        return check(n, l->ncclBroadcast(data, data, size, type, 0, n->comm, stream), "broadcast");
    case COLLECTIVE_GATHER:
    case COLLECTIVE_BROADCAST_MESSAGE:
        break;
    }
    return ST_OK;
}

void nccl_note(struct nccl *n, const void *data, CUevent event)
{
    int i = 0;
    while (i < n->notes && n->note[i].data != data) i++;
    if (i == n->capacity) {
        n->capacity = n->capacity ? 2 * n->capacity : 64;
        n->note = heap_resize(n->note, n->capacity * (int64_t)sizeof *n->note);
    }
    n->note[i] = (struct note){data, event};
    if (i == n->notes) n->notes++;
}

CUevent nccl_event(const struct nccl *n, const void *data)
{
    int i = 0;
    while (i < n->notes && n->note[i].data != data) i++;
    BUG_IF(i == n->notes, "no collective was started on this memory");
    return n->note[i].event;
}

void nccl_close(struct nccl *n)
{
    if (!n) return;
    pthread_mutex_lock(&n->mutex);
    n->closing = true;
    pthread_cond_broadcast(&n->changed);
    bool broken = n->st != ST_OK;
    pthread_mutex_unlock(&n->mutex);
    if (broken) return; /* threads may still use `n`, and the process ends */
    pthread_join(n->thread, NULL);
    /* the ranks of a machine wait for each other in ncclCommDestroy */
    bool failed = n->failed || communicator_has_failed(n->communicator);
    if (n->comm && failed) n->library->ncclCommAbort(n->comm);
    if (n->comm && !failed) n->library->ncclCommDestroy(n->comm);
    pthread_cond_destroy(&n->changed);
    pthread_mutex_destroy(&n->mutex);
    free(n->note);
    free(n);
}

const char *nccl_missing(char ret_version[48])
{
    const char *why;
    int v = 0;
    const struct library *l = library(&why);
    ret_version[0] = '\0';
    if (!l) return why;
    if (l->ncclGetVersion(&v) == NCCL_SUCCESS)
        snprintf(ret_version, 48, "%d.%d.%d", v / 10000, v / 100 % 100, v % 100);
    return NULL;
}

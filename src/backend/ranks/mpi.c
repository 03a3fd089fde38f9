/* Ranks that are processes, joined by MPI, which is opened at run time.
 *
 * All calls that wait for other ranks are non-blocking ones, so that a waiting rank also notices
 * why another rank does not come: the other rank reports a failure, or its process has ended or is
 * stopped (visible on the same machine only), or it does not answer in time. */
#include "backend/ranks/link.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

bool communicator_is_mpi(void)
{
    const char *slurm = getenv("SLURM_NTASKS");
    return getenv("OMPI_COMM_WORLD_SIZE") || getenv("PMI_SIZE") ||
           (getenv("PMIX_RANK") && slurm && strcmp(slurm, "1") != 0);
}

/* The first of these environment variables that is set, as a number; -1 if none is set. */
static int64_t number_of(const char *const *names)
{
    while (*names && !getenv(*names)) names++;
    return *names ? strtoll(getenv(*names), NULL, 10) : -1;
}

int64_t communicator_local_ranks(int64_t ranks)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", NULL};
    int64_t n = number_of(names);
    return n > 0 && n <= ranks ? n : ranks;
}

int communicator_local_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                        "SLURM_LOCALID", NULL};
    int64_t n = communicator_is_mpi() ? number_of(names) : 0;
    return n > 0 && n < RANKS_MOST ? (int)n : 0;
}

#ifdef HAVE_MPI

#include "base/clock.h"
#include "base/file.h"
#include "base/heap.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* THE list of the MPI functions that Strobe calls. */
/* clang-format off */
#define FUNCTIONS(X)                                                                            \
    X(Init_thread) X(Finalize) X(Comm_rank) X(Comm_size) X(Iallreduce) X(Ireduce) X(Ibcast)     \
    X(Iallgather) X(Iallgatherv) X(Isend) X(Recv) X(Iprobe) X(Get_count) X(Test) X(Testall)
/* clang-format on */

static struct {
    void *library;
#define X(name) __typeof__(&MPI_##name) name;
    FUNCTIONS(X)
#undef X
    MPI_Comm world;
    MPI_Datatype floats, bytes;
    MPI_Op sum;
} mpi;

/* In Open MPI, handles are addresses of objects in the library; in other MPIs they are numbers. */
static bool find_handles(void)
{
#ifdef OPEN_MPI
    mpi.world = dlsym(mpi.library, "ompi_mpi_comm_world");
    mpi.floats = dlsym(mpi.library, "ompi_mpi_float");
    mpi.bytes = dlsym(mpi.library, "ompi_mpi_byte");
    mpi.sum = dlsym(mpi.library, "ompi_mpi_op_sum");
    return mpi.world && mpi.floats && mpi.bytes && mpi.sum;
#else
    mpi.world = MPI_COMM_WORLD;
    mpi.floats = MPI_FLOAT;
    mpi.bytes = MPI_BYTE;
    mpi.sum = MPI_SUM;
    return true;
#endif
}

enum status communicator_find_mpi(void)
{
    if (mpi.library) return ST_OK;
    void *library = dlopen(MPI_LIBRARY, RTLD_NOW | RTLD_GLOBAL); /* for MPI's plugins */
    if (!library) return fail(ST_UNSUPPORTED, "MPI cannot be opened: %s", dlerror());
    mpi.library = library;
    bool all = find_handles();
#define X(name) all &= (mpi.name = (__typeof__(mpi.name))dlsym(library, "MPI_" #name)) != NULL;
    FUNCTIONS(X)
#undef X
    if (all) return ST_OK;
    mpi.library = NULL;
    return fail(ST_UNSUPPORTED, "%s is another MPI than the one that Strobe was built with",
                MPI_LIBRARY);
}

enum { TAG_FAIL = 1, TAG_LATE = 2 };
enum { FAILURE = 1 + sizeof(((struct failure *)NULL)->message) }; /* a status and a message */

struct peer {
    char host[64];
    int64_t pid;
};

struct waiting {
    bool patient;              /* no timeout: waits for a message of rank 0 (COLLECTIVE_TELL) */
    bool said;                 /* this rank has told the others that it waits */
    int64_t start_ns, look_ns; /* the start of the wait; the time of the next look */
    MPI_Request *late;         /* requests of these messages, one for each other rank */
};

struct mpi_link {
    int rank, ranks;
    int64_t timeout_ns, calls;
    bool failed;            /* MPI is not finalized, because the process ends */
    int lost;               /* the rank that ended or did not answer; -1: none */
    struct peer *peer;      /* of each rank */
    bool all_wait;          /* fail_late found that all ranks wait */
    struct waiting outside; /* a wait that is not in a collective (look_outside) */
};

/* --- what became of the other ranks ----------------------------------------------------------- */

static const char *name_of(const struct mpi_link *l, int rank, char buffer[160])
{
    snprintf(buffer, 160, "rank %d (process %lld on %s)", rank, (long long)l->peer[rank].pid,
             l->peer[rank].host);
    return buffer;
}

/* Fails with the status and the message that a failed rank has sent; ST_OK if none has. */
static enum status read_failure(void)
{
    char text[FAILURE] = {0};
    MPI_Status from;
    int there = 0, n = 0;
    mpi.Iprobe(MPI_ANY_SOURCE, TAG_FAIL, mpi.world, &there, &from);
    if (!there) return ST_OK;
    mpi.Get_count(&from, mpi.bytes, &n);
    n = (int)min_i64(n, FAILURE - 1);
    mpi.Recv(text, n, mpi.bytes, from.MPI_SOURCE, TAG_FAIL, mpi.world, MPI_STATUS_IGNORE);
    return fail((enum status)text[0], "%s", text + 1);
}

/* Returns the state letter of a process in /proc/PID/stat, 'R' if the file cannot be read, or 0 if
 * there is no such process. */
static char state_of(int64_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    if (!file_peek(path, text, sizeof text))
        return kill((pid_t)pid, 0) != 0 && errno == ESRCH ? '\0' : 'R';
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' ? end[2] : 'R';
}

static enum status check_processes(struct mpi_link *l, bool late)
{
    char name[160];
    for (int r = 0; r < l->ranks; r++) {
        if (r == l->rank || strcmp(l->peer[r].host, l->peer[l->rank].host) != 0) continue;
        char state = state_of(l->peer[r].pid);
        bool ended = !state || state == 'Z' || state == 'X';
        bool stopped = late && (state == 'T' || state == 't');
        if (!ended && !stopped) continue;
        l->lost = r;
        return fail(ST_DEVICE, "%s %s", name_of(l, r, name), ended ? "has ended" : "is stopped");
    }
    return ST_OK;
}

/* Called when the process of a rank has ended or is stopped. The rank may have sent a message
 * before, which MPI needs a moment to receive: waits 100 ms for such a message and then fails with
 * it. Without one, keeps the failure of check_processes. */
static enum status last_words(struct mpi_link *l)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct failure ended;
    enum status st = ST_OK;
    fail_keep(&ended);
    for (int ms = 0; ms < 100 && st == ST_OK; ms++) {
        nanosleep(&pause, NULL);
        st = read_failure();
    }
    if (st == ST_OK)
        fail_restore(&ended);
    else
        l->lost = -1;
    return st == ST_OK ? ST_DEVICE : st;
}

/* Tells all other ranks that this rank waits, and in which call. */
static void send_late(const struct mpi_link *l, MPI_Request *request)
{
    for (int r = 0; r < l->ranks; r++)
        if (r != l->rank)
            mpi.Isend(&l->calls, sizeof l->calls, mpi.bytes, r, TAG_LATE, mpi.world, request++);
}

/* Fails with the name of the first rank that has not said that it waits in the same call. */
static enum status fail_late(struct mpi_link *l)
{
    char name[160];
    bool *waits = HEAP_NEW(bool, l->ranks);
    MPI_Status from;
    int there = 1, missing = 0;
    waits[l->rank] = true;
    while (mpi.Iprobe(MPI_ANY_SOURCE, TAG_LATE, mpi.world, &there, &from) == MPI_SUCCESS && there) {
        int64_t call;
        mpi.Recv(&call, sizeof call, mpi.bytes, from.MPI_SOURCE, TAG_LATE, mpi.world,
                 MPI_STATUS_IGNORE);
        waits[from.MPI_SOURCE] |= call == l->calls;
    }
    while (missing < l->ranks && waits[missing]) missing++;
    free(waits);
    l->all_wait = missing == l->ranks;
    if (l->all_wait)
        return fail(ST_DEVICE,
                    "all ranks wait, and no one answered for %lld s; set rank_timeout to more if a "
                    "step may take so long",
                    (long long)(l->timeout_ns / 1000000000));
    l->lost = missing;
    return fail(ST_DEVICE, "%s did not answer for %lld s (rank_timeout)", name_of(l, missing, name),
                (long long)(l->timeout_ns / 1000000000));
}

/* --- waiting ---------------------------------------------------------------------------------- */

static enum status look(struct mpi_link *l, struct waiting *w, int64_t now_ns)
{
    int64_t waited_ns = now_ns - w->start_ns;
    TRY(read_failure());
    TRY(check_processes(l, waited_ns > l->timeout_ns) == ST_OK ? ST_OK : last_words(l));
    if (w->patient || waited_ns < l->timeout_ns / 2) return ST_OK;
    if (!w->said) send_late(l, w->late);
    w->said = true;
    return waited_ns < l->timeout_ns ? ST_OK : fail_late(l);
}

static enum status wait_all(struct mpi_link *l, MPI_Request *request, int n, bool patient)
{
    enum { SPINS = 200 };
    static const int64_t look_each_ns = 50000000;
    const struct timespec pause = {.tv_nsec = patient ? 200000 : 20000};
    struct waiting w = {.patient = patient, .start_ns = clock_ns()};
    w.late = HEAP_NEW(MPI_Request, l->ranks);
    w.look_ns = w.start_ns + look_each_ns;
    enum status st = ST_OK;
    for (int turn = 0; st == ST_OK; turn++) {
        int done = 0;
        mpi.Testall(n, request, &done, MPI_STATUSES_IGNORE);
        if (done) break;
        int64_t now_ns = clock_ns();
        if (now_ns >= w.look_ns) {
            st = look(l, &w, now_ns);
            w.look_ns = now_ns + look_each_ns;
        }
        if (turn < SPINS)
            sched_yield();
        else
            nanosleep(&pause, NULL);
    }
    int sent;
    if (w.said && st == ST_OK) mpi.Testall(l->ranks - 1, w.late, &sent, MPI_STATUSES_IGNORE);
    free(w.late);
    l->failed |= st != ST_OK;
    return st;
}

/* --- collectives ------------------------------------------------------------------------------ */

/* Elements of a call. To sum, MPI allocates a buffer of that many, and the C library keeps buffers
 * of several sizes: chunks of 1 MiB make them negligible, and cost one latency each. */
enum { CHUNK = 1 << 18 };

static int chunk_of(int64_t left)
{
    return (int)min_i64(left, CHUNK);
}

static enum status all_reduce(struct mpi_link *l, const struct collective_call *c)
{
    for (int64_t at = 0; at < c->n; at += CHUNK) {
        MPI_Request q;
        mpi.Iallreduce(MPI_IN_PLACE, c->data + at, chunk_of(c->n - at), mpi.floats, mpi.sum,
                       mpi.world, &q);
        TRY(wait_all(l, &q, 1, false));
    }
    return ST_OK;
}

/* Makes one reduction for each shard: a single MPI_Reduce_scatter in place would store the result
 * of every rank at the start of the buffer. */
static enum status reduce_scatter(struct mpi_link *l, const struct collective_call *c)
{
    for (int r = 0; r < l->ranks; r++) {
        struct group_shard s = group_shard(c->n, l->ranks, r);
        for (int64_t at = s.first; at < s.end; at += CHUNK) {
            MPI_Request q;
            float *own = c->data + at;
            mpi.Ireduce(r == l->rank ? MPI_IN_PLACE : own, own, chunk_of(s.end - at), mpi.floats,
                        mpi.sum, r, mpi.world, &q);
            TRY(wait_all(l, &q, 1, false));
        }
    }
    return ST_OK;
}

static enum status broadcast_from(struct mpi_link *l, float *data, int64_t first, int64_t end,
                                  int root)
{
    for (int64_t at = first; at < end; at += CHUNK) {
        MPI_Request q;
        mpi.Ibcast(data + at, chunk_of(end - at), mpi.floats, root, mpi.world, &q);
        TRY(wait_all(l, &q, 1, false));
    }
    return ST_OK;
}

static enum status all_gather(struct mpi_link *l, const struct collective_call *c)
{
    if (c->n > INT_MAX) {
        for (int r = 0; r < l->ranks; r++) {
            struct group_shard s = group_shard(c->n, l->ranks, r);
            TRY(broadcast_from(l, c->data, s.first, s.end, r));
        }
        return ST_OK;
    }
    int *count = HEAP_NEW(int, 2 * l->ranks), *from = count + l->ranks;
    MPI_Request q;
    for (int r = 0; r < l->ranks; r++) {
        struct group_shard s = group_shard(c->n, l->ranks, r);
        count[r] = (int)(s.end - s.first);
        from[r] = (int)s.first;
    }
    mpi.Iallgatherv(MPI_IN_PLACE, 0, mpi.floats, c->data, count, from, mpi.floats, mpi.world, &q);
    enum status st = wait_all(l, &q, 1, false);
    if (st == ST_OK) free(count); /* after a failure MPI may still read `count` */
    return st;
}

static enum status run(void *link, struct collective_call *c)
{
    struct mpi_link *l = link;
    MPI_Request q;
    l->calls++;
    if (l->failed) return fail(ST_DEVICE, "the ranks have failed before");
    switch (c->what) {
    case COLLECTIVE_ALL_REDUCE:
        return all_reduce(l, c);
    case COLLECTIVE_REDUCE_SCATTER:
        return reduce_scatter(l, c);
    case COLLECTIVE_ALL_GATHER:
        return all_gather(l, c);
    case COLLECTIVE_BROADCAST:
        return broadcast_from(l, c->data, 0, c->n, 0);
    case COLLECTIVE_BROADCAST_MESSAGE:
        mpi.Ibcast(c->all, (int)c->n, mpi.bytes, 0, mpi.world, &q);
        return wait_all(l, &q, 1, l->rank > 0);
    case COLLECTIVE_GATHER:
        mpi.Iallgather(c->mine, (int)c->n, mpi.bytes, c->all, (int)c->n, mpi.bytes, mpi.world, &q);
        return wait_all(l, &q, 1, false);
    }
    return ST_OK;
}

/* Sends the failure message to all other ranks. A message that has not been received after a second
 * is lost when this process ends. */
static void fail_others(void *link, enum status st)
{
    struct mpi_link *l = link;
    char name[160];
    const struct timespec pause = {.tv_nsec = 1000000};
    int done = 0;
    if (l->failed) { /* another rank has failed or is lost; if it is lost, rank 0 ends first */
        if (l->lost > 0 && l->rank > 0) sleep(1);
        return;
    }
    MPI_Request *request = HEAP_NEW(MPI_Request, l->ranks); /* MPI may read it until the end */
    char *text = HEAP_NEW(char, FAILURE);
    l->failed = true;
    text[0] = (char)st;
    snprintf(text + 1, FAILURE - 1, "%s: %s", name_of(l, l->rank, name), fail_message());
    int sent = 0;
    for (int r = 0; r < l->ranks; r++)
        if (r != l->rank)
            mpi.Isend(text, 1 + (int)strlen(text + 1), mpi.bytes, r, TAG_FAIL, mpi.world,
                      &request[sent++]);
    for (int ms = 0; ms < 1000 && !done; ms++) {
        mpi.Testall(sent, request, &done, MPI_STATUSES_IGNORE);
        nanosleep(&pause, NULL);
    }
}

static enum status look_outside(void *link, int64_t waited_ns)
{
    struct mpi_link *l = link;
    struct waiting *w = &l->outside;
    int64_t now_ns = clock_ns();
    if (w->said && now_ns - waited_ns > w->start_ns + 1000000) w->said = false; /* a new wait */
    if (!w->said) {
        w->start_ns = now_ns - waited_ns;
        w->late = w->late ? w->late : HEAP_NEW(MPI_Request, l->ranks);
    }
    enum status st = look(l, w, now_ns);
    l->failed |= st != ST_OK && !l->all_wait; /* fail_others then tells all */
    return st;
}

static void set_timeout(void *link, int64_t seconds)
{
    ((struct mpi_link *)link)->timeout_ns = seconds * 1000000000;
}

static int lost(void *link)
{
    return ((struct mpi_link *)link)->lost;
}

static bool has_failed(const void *link)
{
    return ((const struct mpi_link *)link)->failed;
}

static void close_link(void *link)
{
    struct mpi_link *l = link;
    if (!l->failed) mpi.Finalize();
    free(l->peer);
    free(l);
}

enum status communicator_open_mpi(struct communicator **ret)
{
    enum { STARTUP_S = 60 };
    static const struct link link = {.name = "mpi",
                                     .run = run,
                                     .fail = fail_others,
                                     .look = look_outside,
                                     .set_timeout = set_timeout,
                                     .lost = lost,
                                     .failed = has_failed,
                                     .close = close_link};
    struct peer own = {.pid = getpid()};
    int provided = MPI_THREAD_SINGLE;
    TRY(communicator_find_mpi());
    if (mpi.Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided) != MPI_SUCCESS)
        return fail(ST_DEVICE, "MPI cannot be initialized: start the ranks by mpirun");
    if (provided < MPI_THREAD_MULTIPLE)
        return fail(ST_UNSUPPORTED,
                    "this MPI does not allow calls from several threads (MPI_THREAD_MULTIPLE)");
    struct mpi_link *l = HEAP_NEW(struct mpi_link, 1);
    l->lost = -1;
    set_timeout(l, STARTUP_S);
    mpi.Comm_rank(mpi.world, &l->rank);
    mpi.Comm_size(mpi.world, &l->ranks);
    l->peer = HEAP_NEW(struct peer, l->ranks);
    gethostname(own.host, sizeof own.host - 1);
    for (int r = 0; r < l->ranks; r++) l->peer[r] = own; /* until the others are known */
    struct peer *all = HEAP_NEW(struct peer, l->ranks);
    MPI_Request q;
    mpi.Iallgather(&own, sizeof own, mpi.bytes, all, sizeof own, mpi.bytes, mpi.world, &q);
    enum status st = wait_all(l, &q, 1, false);
    if (st != ST_OK) return st;
    free(l->peer);
    l->peer = all;
    *ret = communicator_open(&link, l, l->rank, l->ranks);
    return ST_OK;
}

#else

enum status communicator_find_mpi(void)
{
    return fail(ST_UNSUPPORTED,
                "this build has no MPI: install libopenmpi-dev and build again, or use "
                "ranks_by=threads");
}

enum status communicator_open_mpi(struct communicator **ret)
{
    (void)ret;
    return communicator_find_mpi();
}

#endif

/* communicator.h - what joins one rank to the others: collectives on memory, and messages.
 *
 * All ranks call the same functions in the same order. A collective is started and then runs in
 * the communicator's own thread, beside the caller; this thread runs the collectives one after
 * another. Before the caller touches the memory again, it waits for the collective, which it names
 * by the address of the memory (communicator_wait). Any failure of one rank ends the calls of all
 * ranks: each call fails with a sentence that names the failed rank. A communicator that is NULL
 * stands for one rank without others: then collectives do nothing. */
#ifndef BACKEND_COMMUNICATOR_H
#define BACKEND_COMMUNICATOR_H

#include "base/base.h"

/* The most ranks of a training, and the most ranks that share the memory of one GPU. */
enum { RANKS_MOST = 1024, RANKS_ON_DEVICE = 8 };

enum collective {
    COLLECTIVE_ALL_REDUCE,        /* the sum, everywhere */
    COLLECTIVE_REDUCE_SCATTER,    /* the sum of shard r at rank r; the other shards are undefined */
    COLLECTIVE_ALL_GATHER,        /* shard r of rank r, everywhere */
    COLLECTIVE_BROADCAST,         /* what rank 0 has, everywhere */
    COLLECTIVE_GATHER,            /* the messages (bytes) of all ranks, everywhere */
    COLLECTIVE_BROADCAST_MESSAGE, /* like BROADCAST, but a message (bytes) instead of floats */
};

/* Shard `rank` of n elements: elements first ... end - 1. Shards begin at multiples of 16. */
struct group_shard {
    int64_t first, end;
};
struct group_shard group_shard(int64_t n, int ranks, int rank);

struct communicator;
int communicator_rank(const struct communicator *c);  /* NULL: 0 */
int communicator_ranks(const struct communicator *c); /* NULL: 1 */
/* "threads", "mpi"; NULL: "" */
const char *communicator_name(const struct communicator *c);
/* Whether all ranks are threads of this process; NULL: true. */
bool communicator_in_process(const struct communicator *c);

/* Starts a collective on n floats in host memory. */
enum status communicator_start(struct communicator *c, enum collective what, float *data,
                               int64_t n);
/* Waits for the last collective that was started on this memory. */
enum status communicator_wait(struct communicator *c, const float *data);

/* How ranks of one process work on the memory of a device that they share. None of these functions
 * makes the host wait for the device: they launch work and order later work behind it. `call` is
 * the argument that a rank gave to communicator_start_in. It must stay valid until
 * communicator_wait has returned, because other ranks read it. The communicator's thread calls
 * these functions, except `join`. */
struct collective_memory {
    /* Work that `call` launches from now on runs after the work that `other` launched before its
     * last mark. `other` is the `call` of another rank, or `call` itself. */
    enum status (*follow)(void *call, void *other);
    /* Sums elements first ... end - 1 of all ranks, in their order, into the memory of the ranks
     * to_first ... to_end - 1. */
    enum status (*sum)(void *call, float *const *all, int ranks, int64_t first, int64_t end,
                       int to_first, int to_end);
    enum status (*copy)(void *call, float *to, const float *from, int64_t n);
    /* Sets the mark of `call` behind the work that the functions above launched for `call`. */
    enum status (*mark)(void *call);
    /* Called by the thread that waits for the collective, with this rank's `call`: work that this
     * thread launches later follows the last mark. */
    enum status (*join)(void *call);
};
/* Starts a collective on n floats of a device; communicator_wait then makes later work of the
 * device wait, not the host. Before this, the caller itself sets the first mark of `call` behind
 * the work that computes the floats. All ranks must be in one process. */
enum status communicator_start_in(struct communicator *c, enum collective what, float *data,
                                  int64_t n, const struct collective_memory *memory, void *call);
/* Every rank gives `bytes` bytes and gets those of all ranks, in their order. */
enum status communicator_gather(struct communicator *c, const void *mine, int64_t bytes,
                                void *ret_all);
/* Every rank gets the message of rank 0; the other ranks wait for it without a timeout. */
enum status communicator_tell(struct communicator *c, void *message, int64_t bytes);
/* Every rank gets the n floats of rank 0. */
enum status communicator_broadcast(struct communicator *c, float *data, int64_t n);
/* When a collective ran, by base/clock.h. */
struct collective_record {
    enum collective what;
    int64_t n; /* floats */
    /* When the caller started it, when the communicator's thread began it, and when that thread
     * ended it. */
    int64_t posted_ns, begun_ns, done_ns;
    int64_t met_ns; /* when the last rank began it; begun_ns with MPI, which does not tell */
};
/* Records collectives on floats from now on, at most `most` of them; NULL: records nothing, which
 * is the initial state. Call it while no collective is in progress. A record is complete once
 * communicator_wait has returned. */
void communicator_record(struct communicator *c, struct collective_record *record, int64_t most);
/* How long a rank waits for another. */
void communicator_set_timeout(struct communicator *c, int64_t seconds);
/* For a rank that has waited for other ranks elsewhere than in these calls, for `waited_ns` so far:
 * fails if another rank reported a failure or has ended. After rank_timeout it also fails, and the
 * message names a rank that is not waiting, or says that all ranks wait. It never fails if the
 * ranks are threads. */
enum status communicator_check(struct communicator *c, int64_t waited_ns);
/* Whether a rank, this one included, has failed or is lost, as far as this one knows. It is always
 * false if the ranks are threads. */
bool communicator_has_failed(const struct communicator *c);
/* Whether this rank reports a failure that ended all ranks: rank 0 does, or rank 1 if rank 0 was
 * lost. */
bool communicator_reports(const struct communicator *c);
/* Makes the calls of all ranks fail, now and later, with the message of this thread's last failure,
 * whose status is `st`. The status of these calls is `st` if the failure concerns numbers or files
 * (ST_NUMERIC, ST_IO, ST_FORMAT), else ST_DEVICE. When this function returns, no other rank of this
 * process works on the memory of this rank, unless a rank hangs in such work for rank_timeout. */
void communicator_fail(struct communicator *c, enum status st);
/* No other call on `c` may be in progress. First runs the collectives that were started; does not
 * tell the other ranks. */
void communicator_close(struct communicator *c);

/* Whether this process was started as a rank by mpirun or srun. */
bool communicator_is_mpi(void);
/* How many of `ranks` ranks are on this machine: all, unless MPI says otherwise. */
int64_t communicator_local_ranks(int64_t ranks);
/* The number of this process among those of this machine; 0 without MPI. */
int communicator_local_rank(void);
/* Whether MPI is there; a failure says what is missing. */
enum status communicator_find_mpi(void);
/* The communicator of this process among those that mpirun or srun started. May be called once per
 * process. The timeout for other ranks is one minute until communicator_set_timeout changes it. */
enum status communicator_open_mpi(struct communicator **ret);

/* Communicators of `ranks` threads of this process; `ret` has `ranks` entries. Sums are in the
 * order of the ranks. A rank waits `timeout_s` seconds for another. Closing the last of these
 * communicators releases what they share. */
void communicator_open_threads(struct communicator **ret, int ranks, int64_t timeout_s);

#endif

/* communicator.h - what joins one rank to the others: collectives on memory, and messages.
 *
 * All ranks call the same functions in the same order. A collective is started and runs beside the
 * caller, in a thread of the communicator, which runs one after another; the caller waits for it by
 * its memory before it touches that memory again. Any failure of one rank ends the calls of all:
 * each fails with a sentence that names the rank. NULL stands for one rank without others: then
 * collectives do nothing. */
#ifndef BACKEND_COMMUNICATOR_H
#define BACKEND_COMMUNICATOR_H

#include "base/base.h"

enum { RANKS_MOST = 1024, RANKS_ON_DEVICE = 8 }; /* of all; those that share the memory of a GPU */

enum collective {
    COLLECTIVE_ALL_REDUCE,     /* the sum, everywhere */
    COLLECTIVE_REDUCE_SCATTER, /* the sum of shard r at rank r; the other shards are undefined */
    COLLECTIVE_ALL_GATHER,     /* shard r of rank r, everywhere */
    COLLECTIVE_BROADCAST,      /* what rank 0 has, everywhere */
    COLLECTIVE_GATHER,         /* of messages: those of all ranks, everywhere */
    COLLECTIVE_TELL,           /* the message of rank 0, everywhere */
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

/* How ranks of one process work on the memory of a device that they share. Nothing here waits for
 * the device: it launches work, and what follows it. `call` is what a rank gave to
 * communicator_start_in; until the collective was awaited it must stay valid, as other ranks read
 * it. A thread of the communicator calls these functions, except `join`. */
struct collective_memory {
    /* What `call` launches from now on follows what was launched before the last mark of `other`,
     * the call of another rank or the same. */
    enum status (*follow)(void *call, void *other);
    /* Sums elements first ... end - 1 of all ranks, in their order, into the memory of the ranks
     * to_first ... to_end - 1. */
    enum status (*sum)(void *call, float *const *all, int ranks, int64_t first, int64_t end,
                       int to_first, int to_end);
    enum status (*copy)(void *call, float *to, const float *from, int64_t n);
    enum status (*mark)(void *call);
    /* By the thread that waits for the collective: its later work follows the last mark. */
    enum status (*join)(void *call);
};
/* Starts a collective on n floats of a device; communicator_wait then makes later work of the
 * device wait, not the host. The caller has marked `call` behind what computes the floats. All
 * ranks must be in one process. */
enum status communicator_start_in(struct communicator *c, enum collective what, float *data,
                                  int64_t n, const struct collective_memory *memory, void *call);
/* Every rank gives `bytes` bytes and gets those of all ranks, in their order. */
enum status communicator_gather(struct communicator *c, const void *mine, int64_t bytes,
                                void *ret_all);
/* Every rank gets the message of rank 0, for which it waits as long as it takes. */
enum status communicator_tell(struct communicator *c, void *message, int64_t bytes);
/* Every rank gets the n floats of rank 0. */
enum status communicator_broadcast(struct communicator *c, float *data, int64_t n);
/* When a collective ran, by base/clock.h. */
struct collective_record {
    enum collective what;
    int64_t n;                            /* floats */
    int64_t posted_ns, begun_ns, done_ns; /* started by the caller; in the thread, from ... to */
    int64_t met_ns;                       /* the last rank had come; begun_ns where MPI hides it */
};
/* Records collectives on floats from now on, `most` at most; NULL: none, as at first. None may be
 * in progress. A record is whole when the collective was waited for. */
void communicator_record(struct communicator *c, struct collective_record *record, int64_t most);
/* How long a rank waits for another. */
void communicator_set_timeout(struct communicator *c, int64_t seconds);
/* For a rank that has waited for others elsewhere than in these calls: fails if one of them
 * reported a failure or has ended, and after rank_timeout, naming the rank that does not wait as
 * well. Ranks that are threads: never. */
enum status communicator_look(struct communicator *c, int64_t waited_ns);
/* Whether this rank reports a failure of all to the user: rank 0, or rank 1 where it is lost. */
bool communicator_reports(const struct communicator *c);
/* Ends the calls of all ranks, now and later, by the failure of this thread, whose status is `st`:
 * with this status if it tells of numbers or files (ST_NUMERIC, ST_IO, ST_FORMAT), else with
 * ST_DEVICE. When it returns, no other rank of this process works on the memory of this one, unless
 * a rank hangs in such work for rank_timeout. */
void communicator_fail(struct communicator *c, enum status st);
/* No call may be in progress. Collectives in progress end; the other ranks are not told. */
void communicator_close(struct communicator *c);

/* Whether this process was started as a rank by mpirun or srun. */
bool communicator_is_mpi(void);
/* How many of `ranks` ranks are on this machine: all, unless MPI says otherwise. */
int64_t communicator_local_ranks(int64_t ranks);
/* The number of this process among those of this machine; 0 without MPI. */
int communicator_local_rank(void);
/* Whether MPI is there; a failure says what is missing. */
enum status communicator_find_mpi(void);
/* The communicator of this process among those that mpirun or srun started; once. It waits a minute
 * for the other ranks until communicator_set_timeout. */
enum status communicator_open_mpi(struct communicator **ret);

/* Communicators of `ranks` threads of this process. Sums are in the order of the ranks. A rank
 * waits `timeout_s` seconds for another. The last one that is closed releases what they share. */
void communicator_open_threads(struct communicator **ret, int ranks, int64_t timeout_s);

#endif

/* crew.h - the ranks other than 0. Each is a thread, or a process that MPI started.
 *
 * Rank 0 leads: before each joint operation it sends an order, which the other ranks follow.
 * Training (train/ranks.h) and measuring (measure/random_crew.h) define different orders. */
#ifndef ENGINE_CREW_H
#define ENGINE_CREW_H

#include "base/base.h"

struct communicator;
struct config;
struct crew_member;

enum { CREW_END = -1 }; /* the order that ends the ranks; orders of the caller are not negative */
struct crew_order {
    int64_t what, iter, first;
};

/* The callbacks of a rank other than 0. */
struct crew_work {
    /* Opens the rank's state. Sets *ret also on failure, because `close` is always called. */
    enum status (*open)(void **ret, const void *job, struct communicator *c);
    enum status (*obey)(void *state, const struct crew_order *o);
    void (*close)(void *state);
};

/* The communicator of rank 0, and the threads of the other ranks of this process. */
struct crew {
    struct communicator *communicator; /* NULL: there is one rank */
    bool listening;                    /* the other ranks wait for orders, or will soon */
    bool ended;
    /* private to crew.c */
    struct crew_member *member;
    int members;
    int64_t timeout_s;
};

/* Sets the number of threads of this thread's kernels to the key `threads`, or OMP_NUM_THREADS, or
 * this rank's share of the cores. */
void crew_set_threads(const struct config *c);
/* Sets the rank of this communicator in a configuration. Processes of a machine use consecutive
 * GPUs, beginning with that of rank 0. */
void crew_set_rank(struct config *c, const struct communicator *comm);

/* The words that must be equal in all processes. */
struct crew_program {
    const char *build;   /* "0.4.0 1a2b3c4d release" */
    const char *command; /* the words of the command line */
};
/* If MPI started this process, joins it to the others; else crew->communicator is NULL. ST_USAGE:
 * they do not have the same program or command; then only the rank that reports it returns. */
enum status crew_join(struct crew *crew, const struct crew_program *p);
/* On a rank of MPI other than 0: follows the orders of rank 0, then ends the process. Returns only
 * a failure that this rank has to report. */
enum status crew_follow_process(struct crew *crew, const struct crew_work *w, const void *job);
/* The same for a process that cannot follow because of its last failure, whose status is `st`. */
enum status crew_fail_process(struct crew *crew, enum status st);
/* Sets the number of ranks to that of MPI; ST_USAGE if the user `asked` for another number. */
enum status crew_count(const struct crew *crew, struct config *c, bool asked);
/* Starts a thread for each other rank. `job`, which is passed to `open`, must outlive the threads.
 * They communicate through host memory, without a library. */
enum status crew_open(struct crew *crew, int64_t ranks, int64_t timeout_s,
                      const struct crew_work *w, const void *job);
/* Sends an order, on rank 0. Does nothing on other ranks, or if there is one rank (`c` NULL). */
enum status crew_order(struct communicator *c, int64_t what, int64_t iter, int64_t first);
/* Follows the orders of rank 0 until CREW_END. A failure makes the calls of all ranks fail. */
enum status crew_follow(struct communicator *c, const struct crew_work *w, const void *job);
/* Ends the other ranks and waits for their threads, after a failure for at most `timeout_s`. Keeps
 * the current error message. *crew may be all zeros. */
void crew_end(struct crew *crew);
/* Also closes the communicator. Close the engine first, because MPI may disturb its device. */
void crew_close(struct crew *crew);

#endif

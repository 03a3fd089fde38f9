/* crew.h - the other ranks: each follows the orders of rank 0, in a thread of its own unless MPI
 * started it as a process.
 *
 * Rank 0 leads: before anything that all ranks do together it tells the others by an order. What an
 * order means is up to the caller: training (train/ranks.h) and measuring (measure/random_crew.h)
 * have orders of their own. */
#ifndef ENGINE_CREW_H
#define ENGINE_CREW_H

#include "base/base.h"

struct communicator;
struct config;
struct crew_member;

enum { CREW_END = -1 }; /* the order that ends the ranks; the others are not negative */
struct crew_order {
    int64_t what, iter, first;
};

/* What a rank other than 0 does. */
struct crew_work {
    /* Opens the rank's own state, also *ret if it fails: `close` is called in either case. */
    enum status (*open)(void **ret, const void *job, struct communicator *c);
    enum status (*obey)(void *state, const struct crew_order *o);
    void (*close)(void *state);
};

/* The communicator of rank 0, and the threads of the other ranks of this process. */
struct crew {
    struct communicator *communicator; /* NULL: there is one rank */
    bool listening;                    /* the others wait for orders, or will */
    bool ended;
    /* private to crew.c */
    struct crew_member *member;
    int members;
    int64_t timeout_s;
};

/* Sets the number of threads of this thread's kernels: that of the key `threads` or of
 * OMP_NUM_THREADS; else the ranks share the processors. */
void crew_set_threads(const struct config *c);
/* Starts a thread for each other rank. `job`, which is passed to `open`, must outlive them. Their
 * communicators need no other library, and share host memory only. */
enum status crew_open(struct crew *crew, int64_t ranks, int64_t timeout_s,
                      const struct crew_work *w, const void *job);
/* Of rank 0; nothing happens at the others, or if there is one rank (NULL). */
enum status crew_order(struct communicator *c, int64_t what, int64_t iter, int64_t first);
/* The work of another rank until CREW_END. A failure ends the calls of all ranks. */
enum status crew_follow(struct communicator *c, const struct crew_work *w, const void *job);
/* Ends the other ranks and waits for threads, for `timeout_s` at most after a failure; keeps the
 * failure that led here. *crew may be zeros. */
void crew_end(struct crew *crew);
/* The same, and closes the communicator: after the engine, whose device MPI may disturb. */
void crew_close(struct crew *crew);

#endif

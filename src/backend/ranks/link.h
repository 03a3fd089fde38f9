/* link.h - the functions that a communicator needs of an implementation (threads, MPI). The thread
 * of the communicator calls `run`, which blocks; other threads call the rest. */
#ifndef BACKEND_RANKS_LINK_H
#define BACKEND_RANKS_LINK_H

#include "backend/communicator.h"

/* One collective. n counts the floats of `data`; for GATHER and TELL it counts bytes. GATHER reads
 * `mine` and writes `all`. TELL reads `all` on rank 0 and writes `all` on the other ranks. */
struct collective_call {
    enum collective what;
    float *data;
    int64_t n;
    const struct collective_memory *memory; /* NULL: data is in host memory */
    void *of_rank;                          /* first argument of the functions of `memory` */
    const void *mine;
    void *all;
    int64_t posted_ns; /* when the caller started the collective; 0: the call is not recorded */
    int64_t met_ns;    /* when the last rank arrived; `run` sets it if it knows, else 0 */
};

struct link {
    const char *name;
    bool in_process; /* the ranks are threads of one process */
    /* Runs a collective, for which the other ranks call their `run`, too. */
    enum status (*run)(void *link, struct collective_call *c);
    /* Makes the calls of all ranks fail with `st` and the message that this thread last gave to
     * fail(). Any thread may call it. */
    void (*fail)(void *link, enum status st);
    /* As communicator_check; called while no `run` is in progress. NULL: never fails. */
    enum status (*look)(void *link, int64_t waited_ns);
    void (*set_timeout)(void *link, int64_t seconds);
    /* The rank that ended or did not answer; -1: none. */
    int (*lost)(void *link);
    /* Whether a rank has failed or is lost, as far as this one knows. NULL: false. */
    bool (*failed)(const void *link);
    void (*close)(void *link);
};

/* Creates a communicator on `link` and starts its thread; `state` is the first argument of the
 * link's functions. communicator_close frees the communicator and calls the link's `close`. */
struct communicator *communicator_open(const struct link *link, void *state, int rank, int ranks);

#endif

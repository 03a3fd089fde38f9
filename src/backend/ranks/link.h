/* link.h - what a communicator needs of an implementation: blocking calls, made by one thread. */
#ifndef BACKEND_RANKS_LINK_H
#define BACKEND_RANKS_LINK_H

#include "backend/communicator.h"

/* One collective. A message has n bytes: GATHER from `mine` to `all`, TELL in `all`. */
struct collective_call {
    enum collective what;
    float *data;
    int64_t n;
    const struct collective_memory *memory; /* NULL: data is in host memory */
    void *of_rank;                          /* the argument of its functions */
    const void *mine;
    void *all;
    int64_t posted_ns; /* 0: it is not recorded */
    int64_t met_ns;    /* set by `run` where it knows: the last rank had come */
};

struct link {
    const char *name;
    bool in_process; /* the ranks are threads of one process */
    /* Runs a collective with the other ranks, whose calls are the same. */
    enum status (*run)(void *link, struct collective_call *c);
    /* Ends the calls of all ranks with `st` by the failure of this thread; may be called by any
     * thread. */
    void (*fail)(void *link, enum status st);
    /* As communicator_look, while no call runs; NULL: never fails. */
    enum status (*look)(void *link, int64_t waited_ns);
    void (*set_timeout)(void *link, int64_t seconds);
    /* The rank that ended or did not answer; -1: none. */
    int (*lost)(void *link);
    void (*close)(void *link);
};

/* Starts the thread of a communicator. */
struct communicator *communicator_open(const struct link *link, void *state, int rank, int ranks);

#endif

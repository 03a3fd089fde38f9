/* lab_probe.h - starts the processes that run a kernel of the user's, and words how they ended:
 * one that probes it (lab/probe.h) and, on a CPU, one that times it beside the rungs. */
#ifndef CLI_LAB_PROBE_H
#define CLI_LAB_PROBE_H

#include "base/arena.h"

/* `words` are the command line of the process, NULL-terminated; --probe=FD is added; on a CPU the
 * caller has added --library=PATH. A launch may take `limit_s` seconds. *ret_left_out: what the
 * kernel does that it may not do, in a sentence; NULL: nothing was found. A failure is not the
 * kernel's, or the compiler's. The caller has called interrupt_catch. */
enum status lab_probe(char **words, const char *name, double limit_s, const char **ret_left_out,
                      struct arena *a);

/* What the process that times shares with its parent. */
struct lab_watched {
    volatile int64_t since_ns; /* the start of the call that is under way (clock.h); 0: none */
    bool ended;                /* the run did, and printed its result */
    enum status status;        /* how, */
    char message[2048];        /* and its error */
};

/* Runs the whole command in a process of its own, which prints its result; --watched=FD is added.
 * The status is that of the run. If the kernel crashed or a call of it exceeded the limit, nothing
 * was printed, the status is ST_OK, and *ret_left_out says so; else it is NULL. */
enum status lab_watch(char **words, const char *name, double limit_s, const char **ret_left_out,
                      struct arena *a);
/* In that process. */
enum status lab_watched_open(int fd, struct lab_watched **ret);

#endif

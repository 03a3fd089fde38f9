/* probe.h - runs a kernel of the user's in a process of its own, before it becomes a rung: what
 * crashes, never ends or writes where it may not ends that process alone.
 *
 * The process says by notes on a socket what it does. It compares nothing with a solution: the
 * runner does (run.h), once the kernel is known to be harmless. */
#ifndef LAB_PROBE_H
#define LAB_PROBE_H

#include "lab/own.h"
#include "lab/run.h"

enum probe_what {
    PROBE_LAUNCHES, /* text: the size, or "its loading" */
    PROBE_RETURNED, /* no launch is under way any more; text: the size */
    PROBE_FINDS,    /* text: what the kernel does that it may not do; the last note */
    PROBE_FAILS,    /* text: an error that is not the kernel's, or of the compiler; the last note */
    PROBE_ENDS,     /* nothing was found; the last note */
};
struct probe_note {
    enum probe_what what;
    char text[1024];
};

/* In that process: runs o->own, which is `own`, at the odd sizes and at these. On a CPU it loads
 * `library` first. Failures are notes too; those of a compiler are on stderr as a whole. */
enum status probe_run(const struct lab_options *o, struct lab_own *own, const char *library,
                      const int64_t size[][LAB_SIZES], int sizes, int fd);

#endif

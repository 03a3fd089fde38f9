/* probe.h - runs a user's kernel in a separate process before the kernel becomes a rung. If the
 * kernel crashes, never ends or writes out of bounds, only that process ends.
 *
 * The process reports by notes on a socket. It does not compare outputs with the solution; the
 * checks of run.h do so after a probe that found nothing. */
#ifndef LAB_PROBE_H
#define LAB_PROBE_H

#include "lab/own.h"
#include "lab/run.h"

enum probe_what {
    PROBE_LAUNCHES, /* a launch or the loading begins; text: the size, or "its loading" */
    PROBE_RETURNED, /* the launch or the loading is over; text: as for PROBE_LAUNCHES */
    PROBE_FINDS,    /* last note; text: what the kernel did wrong */
    PROBE_FAILS,    /* last note; text: an error of the compiler or of something else */
    PROBE_ENDS,     /* last note: nothing was found */
};
struct probe_note {
    enum probe_what what;
    char text[1024];
};

/* The separate process calls this: it runs `own` (o->own is its rung) at the odd sizes of the
 * ladder and at `size`. On a CPU it loads `library` first. It reports failures as notes on `fd`;
 * the compiler's whole message goes to stderr. */
enum status probe_run(const struct lab_options *o, struct lab_own *own, const char *library,
                      const int64_t size[][LAB_SIZES], int sizes, int fd);

#endif

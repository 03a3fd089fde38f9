/* lab_probe.h - starts the process that probes a kernel of the user's, and words how it ended. */
#ifndef CLI_LAB_PROBE_H
#define CLI_LAB_PROBE_H

#include "base/arena.h"

/* `words` are the command line of the process, NULL-terminated; --probe=FD is added. A launch may
 * take `limit_s` seconds. *ret_left_out: what the kernel does that it may not do, in a sentence;
 * NULL: nothing was found. A failure is not the kernel's, or the compiler's. The caller has called
 * interrupt_catch. */
enum status lab_probe(char **words, const char *name, double limit_s, const char **ret_left_out,
                      struct arena *a);

#endif

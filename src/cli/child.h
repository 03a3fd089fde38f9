/* child.h - runs strobe in a child process, which inherits no memory from earlier work. */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include "base/arena.h"

/* Runs `strobe` with a NULL-terminated list of words. The child's stdout goes to stderr, or with
 * `quiet` to /dev/null. A signal noted by interrupt.h is passed on to the child. `what` names the
 * child in error messages. ST_INTERRUPTED: the child was stopped. */
enum status child_run(char *const *words, const char *what, bool quiet);

#endif

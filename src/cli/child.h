/* child.h - runs strobe in a child process, which inherits no memory from earlier work. */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include "base/arena.h"

#include <sys/types.h>

/* Runs `strobe` with a NULL-terminated list of words. The child's stdout goes to stderr, or with
 * `quiet` to /dev/null. A signal noted by interrupt.h is passed on to the child. `what` names the
 * child in error messages. ST_INTERRUPTED: the child was stopped. */
enum status child_run(char *const *words, const char *what, bool quiet);

/* The same in steps. `fd`: the child has it as TURN_FD (base/turn.h); -1: nothing. */
enum child_stdout { CHILD_TO_STDERR, CHILD_TO_NOTHING, CHILD_TO_STDOUT };
struct child {
    pid_t pid;
};
enum status child_start(struct child *c, char *const *words, const char *what, enum child_stdout to,
                        int fd);
/* Asks it to save and stop. */
void child_stop(const struct child *c);
/* Waits until it has ended; the status is that of child_run. */
enum status child_end(const struct child *c, const char *what);

#endif

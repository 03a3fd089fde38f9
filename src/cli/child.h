/* child.h - this program once more, in a process of its own, so that nothing is inherited from what ran before. */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include "base/arena.h"

/* Runs `strobe` with words that end with NULL; its result goes to stderr, as all else that it says, or, `quiet`, nowhere. A signal that was noted
 * (interrupt.h) is passed on, for it may have come to this process alone. `what`: whose it is, in a failure. ST_INTERRUPTED: it was stopped. */
enum status child_run(char *const *words, const char *what, bool quiet);

#endif

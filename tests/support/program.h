/* program.h - runs the program as a user does: arguments in, text and exit code out. */
#ifndef SUPPORT_PROGRAM_H
#define SUPPORT_PROGRAM_H

#include "base/arena.h"

/* stdout and stderr of the last program_run, until program_teardown. */
extern const char *program_stdout, *program_stderr;
/* For strings of a test; empty after program_teardown. */
extern struct arena arena;

/* cmocka's setup and teardown: a working folder (workdir.h) and the arena. */
int program_setup(void **state);
int program_teardown(void **state);

/* Runs $STROBE (set by the test runner) in a shell with the arguments `words`, preceded by the
 * variables in `environment`. Returns the exit code, -1 if the program was killed. */
int program_run(const char *environment, const char *words);
/* The contents of a file, in the arena. */
const char *program_text(const char *path);

#endif

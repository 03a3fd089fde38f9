/* program.h - the program as its users meet it: words in, text and an exit code out. */
#ifndef SUPPORT_PROGRAM_H
#define SUPPORT_PROGRAM_H

#include "base/arena.h"

/* stdout and stderr of the last program_run, until program_teardown. */
extern const char *said, *failed;
/* For texts of a test; empty after program_teardown. */
extern struct arena arena;

/* cmocka's setup and teardown: a working folder (workdir.h) and the arena. */
int program_setup(void **state);
int program_teardown(void **state);

/* Runs $STROBE (tools/run_tests.sh sets it) with words as a shell would read them; `environment` stands
 * in front. Returns the exit code, -1 if it was killed. */
int program_run(const char *environment, const char *words);
/* A whole file, in the arena. */
const char *program_text(const char *path);

#endif

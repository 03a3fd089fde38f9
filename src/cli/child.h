/* child.h - runs strobe in child processes, which inherit no memory from earlier work: one, or
 * several one after the other or in turns (base/turn.h), so that none of them has the machine at
 * another time than the others. */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include "base/arena.h"

#include <sys/types.h>

/* What a child runs. */
struct job {
    char **words;     /* its command line, NULL-terminated: "strobe", ... */
    const char *name; /* for messages */
};
/* The words of a command line, NULL-terminated, with one more; in `a`. */
char **job_with_word(char **words, char *more, struct arena *a);

struct jobs_options {
    bool in_turns; /* else one after the other */
    int64_t warm;  /* units of the first turn, which is to warm up */
    bool quiet;    /* stdout goes to /dev/null, else to stderr */
};
/* In turns: opens the processes one after the other, each up to its first turn. Then turns of some
 * seconds go round, in reverse order every other time, until all have ended. If one fails before
 * its first turn, or after a signal, all are told to stop.
 * One that fails later, or of several one after the other, does not end the others. The first
 * failure is returned. The caller has called interrupt_catch. */
enum status jobs_run(const struct job *job, int n, const struct jobs_options *o, struct arena *a);
/* One child; `quiet` as above. A signal noted by interrupt.h is passed on to it. ST_INTERRUPTED: it
 * was stopped. */
enum status job_run(const struct job *job, bool quiet);

/* The same in steps. `fd`: the child has it as TURN_FD (base/turn.h); -1: nothing. */
enum child_stdout { CHILD_TO_STDERR, CHILD_TO_NOTHING, CHILD_TO_STDOUT };
struct child {
    pid_t pid;
};
enum status child_start(struct child *c, const struct job *job, enum child_stdout to, int fd);
/* Asks it to save and stop. */
void child_stop(const struct child *c);
/* Waits until it has ended; its state as waitpid gives it. A signal is passed on; it is killed when
 * `must_end` (NULL: never) says so, which is called again and again. */
int child_wait(const struct child *c, bool (*must_end)(void *user), void *user);
/* The same; the status is that of job_run. */
enum status child_end(const struct child *c, const char *name);

#endif

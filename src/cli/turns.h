/* turns.h - runs several `strobe` processes in turns (base/turn.h), so that none of them has the
 * machine at another time than the others. */
#ifndef CLI_TURNS_H
#define CLI_TURNS_H

#include "base/arena.h"

/* One process. */
struct turns_of {
    char **words;     /* its command line, NULL-terminated; --turns=FD is added */
    const char *name; /* for messages */
};

/* Opens them one after the other, each up to its first turn: that one is to warm up, `warm` units.
 * Then turns of some seconds go round, in reverse order every other time, until all have ended.
 * The stdout of the processes goes to stderr, or with `quiet` to /dev/null. If one fails before its
 * first turn, or after a signal, all are told to stop. One that fails later does not end the
 * others. The first failure is returned. The caller has called
 * interrupt_catch. */
enum status turns_run(const struct turns_of *of, int n, int64_t warm, bool quiet, struct arena *a);

#endif

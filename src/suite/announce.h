/* announce.h - before a suite measures on a CPU: the batch that fits, and how long it will take, so
 * that the user can stop it. On a GPU these functions do nothing. */
#ifndef SUITE_ANNOUNCE_H
#define SUITE_ANNOUNCE_H

#include "bench/ladder.h"
#include "suite/parts.h"

struct announce {
    const struct suite_request *request;
    bool host;              /* the device is a CPU */
    bool lower;             /* batch_size is lowered to what fits */
    int64_t room;           /* bytes; -1: unknown, no limit */
    struct machine machine; /* recorded peaks, or guessed ones; no peaks: not known */
    bool guessed;
    double ms; /* of all cells so far */
    struct sheet *sheet;
    struct arena *a;
};

enum status announce_open(struct announce *x, const struct suite_request *r, struct sheet *sheet,
                          struct arena *a);
/* Lowers the batch_size of a published size to what fits, unless the command line sets it; a note
 * of the sheet says so. Adds the time of the cell, which is measured `times` times. */
enum status announce_cell(struct announce *x, const char *name, struct bench_cell *c, double times);
/* Prints the expected duration of all cells, or that it is not known. */
void announce_print(const struct announce *x);

/* "about 3 minutes" */
const char *announce_duration(double ms, struct arena *a);
/* Prints the batch, the memory and the expected duration of a ladder on a CPU that takes more than
 * a few seconds; for ladder_options.begin. */
void announce_ladder(const struct ladder *l);

#endif

/* run_fixture.h - run directories with known contents, in a temporary folder. */
#ifndef SUPPORT_RUN_FIXTURE_H
#define SUPPORT_RUN_FIXTURE_H

#include "base/arena.h"

struct fixture {
    struct arena arena;
    const char *root; /* removed by fixture_teardown */
};

/* cmocka's setup and teardown: *state is the struct fixture. */
int fixture_setup(void **state);
int fixture_teardown(void **state);
/* Writes a file of a run, making the run's directory; `name` as "a/log.jsonl". */
void fixture_write(struct fixture *f, const char *name, const char *text);
char *fixture_path(struct fixture *f, const char *name);
/* A run of ten steps of `ms` milliseconds and 1000 tokens and two evaluations, that used `memory`
 * bytes and ends at the validation loss `val`. */
char *fixture_run(struct fixture *f, const char *name, const char *flash, double ms, double memory,
                  double val);

#endif

/* compare.h - compares runs: which settings differ, and which results.
 *
 * The first run is the one that the others are compared with. Nothing here fails: a value that a
 * run lacks is an empty cell. */
#ifndef REPORT_COMPARE_H
#define REPORT_COMPARE_H

#include "base/judge.h"
#include "present/table.h"
#include "report/runs.h"

/* A key whose values are not the same in all runs. */
struct difference {
    const char *key;
    const char **value; /* one for each run; NULL: the run lacks it */
};

struct comparison {
    const struct run *run;
    int runs;
    struct difference *setting, *environment;
    int settings, environments;
    struct judgement *speed; /* of each run, relative to the first */
    struct table table;      /* a row for each run: the main results */
    const char **verdict;    /* a sentence for each run after the first: speed, memory, loss */
    int verdicts;
    const char **note; /* sentences of caution: an unfinished run, another machine */
    int notes;
};

/* Two runs before the judge of speed: per token, by the turns that they took with each other
 * (`strobe compare`), else by the times of their steps. */
struct judgement compare_speed(const struct run *first, const struct run *r, struct arena *a);
void compare_runs(const struct run *run, int n, struct arena *a, struct comparison *ret_comparison);
/* Compares the validation losses of two runs at shared iterations, or if these differ in tokens,
 * after equally many training tokens: the largest absolute difference, and b - a at the last one.
 * Returns the number of shared evaluations. */
int compare_val_loss(const struct run *a, const struct run *b, double *ret_largest,
                     double *ret_last);
/* The settings that differ as a table: a row for each key, a column for each run. */
struct table compare_settings_table(const struct comparison *c, struct arena *a);
/* Why losses of two runs are not comparable: "they have different data sets (...)"; NULL: they
 * are. */
const char *compare_why_not(const struct run *x, const struct run *y, struct arena *a);
/* Adds a sentence of caution. */
void compare_note(struct comparison *c, const char *text, struct arena *a);
/* How a run ended, in a sentence; NULL: it finished, and its losses are numbers. */
const char *compare_end(const struct run *r, struct arena *a);

#endif

/* compare.h - several runs beside each other: what differs in what was asked, and in what came out.
 *
 * The first run is the one that the others are held against. Nothing here fails: what a run does not
 * say is an empty cell. */
#ifndef REPORT_COMPARE_H
#define REPORT_COMPARE_H

#include "present/table.h"
#include "report/runs.h"

/* A key whose values are not the same in all runs. */
struct difference {
    const char *key;
    const char **value; /* one for each run; NULL: the run does not say */
};

struct comparison {
    const struct run *run;
    int runs;
    struct difference *setting, *environment;
    int settings, environments;
    struct table table;   /* a row for each run: the headline figures */
    const char **verdict; /* a sentence for each run after the first: speed, memory, loss */
    int verdicts;
    const char **note; /* sentences of caution: an unfinished run, another machine */
    int notes;
};

void compare_runs(const struct run *run, int n, struct arena *a, struct comparison *ret_comparison);
/* The validation losses of two runs at the evaluations they share: the largest distance and that at
 * the last one (b - a). Returns how many they share. */
int compare_val_loss(const struct run *a, const struct run *b, double *ret_largest,
                     double *ret_last);
/* The settings that differ as a table: a row for each key, a column for each run. */
struct table compare_settings_table(const struct comparison *c, struct arena *a);

#endif

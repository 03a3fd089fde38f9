/* bench_sheet.h - grids and suites of `strobe bench`: what they are asked for, and what becomes of their sheets. */
#ifndef CLI_BENCH_SHEET_H
#define CLI_BENCH_SHEET_H

#include "present/table_form.h"
#include "suite/suite.h"

struct bench_words {
    const char *suite; /* NULL: a grid of configurations */
    const char *warmup, *phase, *limit, *order, *size, *save;
    int64_t steps, iters, vocab; /* -1, 0: not said */
    bool full;
    struct table_form form;
    const char *command; /* as it was given */
    char **word;         /* configurations and overrides */
    int words;
};

/* What is said of one cell alone is not of a grid. */
bool bench_words_are_grid(const struct bench_words *w);
/* Runs, prints, and writes bench.json; with --json only where a place is named. */
enum status bench_sheet_run(const struct bench_words *w, struct arena *a);
/* The table of suites. */
enum status bench_sheet_list(const struct table_form *f, struct arena *a);

#endif

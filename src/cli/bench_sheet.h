/* bench_sheet.h - grids and suites of `strobe bench`: reads, runs, prints and keeps them. */
#ifndef CLI_BENCH_SHEET_H
#define CLI_BENCH_SHEET_H

#include "present/table_form.h"
#include "suite/suite.h"

struct bench_words {
    const char *suite; /* NULL: not a suite */
    const char *warmup, *phase, *limit, *order, *size, *save;
    int64_t steps, iters, vocab; /* -1, 0: not given */
    int64_t rounds;              /* 0: not given */
    bool full, wide, each_step;
    struct table_form form;
    const char *command; /* the command line */
    char **word;         /* configurations and overrides */
    int words;
};

/* Whether the words describe a grid of cells and not one configuration. */
bool bench_words_are_grid(const struct bench_words *w);
/* Runs, prints, and writes bench.json. With --json the file is only written if a path is given. */
enum status bench_sheet_run(const struct bench_words *w, struct arena *a);
/* Prints the table of suites. */
enum status bench_sheet_list(const struct table_form *f, struct arena *a);

#endif

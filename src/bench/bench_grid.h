/* bench_grid.h - makes cells from lists of configurations, values of keys, and warm-ups. */
#ifndef BENCH_BENCH_GRID_H
#define BENCH_BENCH_GRID_H

#include "bench/bench_cells.h"

enum { BENCH_AXES = 8, BENCH_WARMUPS = 8, BENCH_CELLS = 512 }; /* at most */

struct bench_subject {
    const char *name; /* "cs336_small" */
    struct config config;
    int64_t vocab;
};

/* A key with several values. */
struct bench_axis {
    const char *key; /* "dtype" */
    const char **value;
    int values;
};

struct bench_grid {
    struct bench_subject *subject;
    int subjects;
    struct bench_axis axis[BENCH_AXES];
    int axes;
    int warmup[BENCH_WARMUPS], warmups;
    int steps;
    unsigned lines; /* 1 << BENCH_FORWARD ... */
    enum bench_order order;
    /* Returns the vocabulary of a cell whose keys differ from its subject's. NULL: the cell has
     * vocab_size tokens or, if that is 0, its subject's vocabulary. */
    enum status (*vocabulary)(const struct bench_grid *g, const struct config *c, int64_t *ret,
                              struct arena *a);
    int64_t vocab; /* the vocabulary that the user requested, for `vocabulary`; 0: none */
};

/* The coordinates of a cell in its grid. */
struct bench_place {
    int subject, value[BENCH_AXES], warmup;
};

/* True for "key=a,b"; values of text keys may contain commas and are not lists. */
bool bench_is_list(const char *word);
/* Adds the axis of a word like "--dtype=float32,bfloat16"; replaces an axis of the same key. */
enum status bench_add_axis(struct bench_grid *g, const char *word, struct arena *a);
/* Reads "0,1,2,5" into g->warmup. */
enum status bench_read_warmups(struct bench_grid *g, const char *words);
/* Reads "forward,step"; an unknown word is ST_USAGE, and the message lists the valid words. */
enum status bench_read_lines(unsigned *ret_lines, const char *words);
/* Reads "rounds"; NULL is BENCH_AUTO. */
enum status bench_read_order(enum bench_order *ret, const char *word);

/* Makes the cross product of all lists; subjects vary slowest, warm-ups fastest. An invalid value
 * is an error, as on the command line. A value that the device does not support is no error: the
 * cell gets a reason. */
enum status bench_grid_cells(const struct bench_grid *g, struct bench_cell **ret_cell,
                             int *ret_cells, struct arena *a);
struct bench_place bench_grid_place(const struct bench_grid *g, int cell);
/* "cs336_small dtype=bfloat16 warm-up 5": the parts that differ between cells. */
const char *bench_grid_name(const struct bench_grid *g, int cell, struct arena *a);

#endif

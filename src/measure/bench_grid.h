/* bench_grid.h - cells from lists: configurations, keys with several values, warm-ups. */
#ifndef MEASURE_BENCH_GRID_H
#define MEASURE_BENCH_GRID_H

#include "bench/bench_cells.h"

enum { BENCH_AXES = 8, BENCH_WARMUPS = 8, BENCH_CELLS = 512 }; /* at most */

struct bench_subject {
    const char *name; /* "cs336_small" */
    struct config config;
    int64_t vocab;
};

/* A key with the values that it takes. */
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
    /* The vocabulary of a cell whose keys differ from its subject's; NULL: vocab_size, or the subject's. */
    enum status (*vocabulary)(const struct bench_grid *g, const struct config *c, int64_t *ret,
                              struct arena *a);
    int64_t vocab; /* for it: the one that is asked for; 0: none is */
};

/* Where a cell is in its grid. */
struct bench_place {
    int subject, value[BENCH_AXES], warmup;
};

/* True of "key=a,b"; keys whose values are texts may hold commas and are no lists. */
bool bench_is_list(const char *word);
/* Adds what such a word says, "--dtype=float32,bfloat16"; of a key that is there already, in its place. */
enum status bench_add_axis(struct bench_grid *g, const char *word, struct arena *a);
/* "0,1,2,5" */
enum status bench_read_warmups(struct bench_grid *g, const char *words);
/* "forward,step"; a word that is no part is ST_USAGE and names them all. */
enum status bench_read_lines(unsigned *ret_lines, const char *words);

/* The cross product: subjects first, warm-ups last and fastest. A value that makes no sense is a failure, as at the command line;
 * what cannot be had here is the cell's reason. */
enum status bench_grid_cells(const struct bench_grid *g, struct bench_cell **ret_cell,
                             int *ret_cells, struct arena *a);
struct bench_place bench_grid_place(const struct bench_grid *g, int cell);
/* "cs336_small dtype=bfloat16 warm-up 5": what differs between cells. */
const char *bench_grid_name(const struct bench_grid *g, int cell, struct arena *a);

#endif

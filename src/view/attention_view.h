/* attention_view.h - what `bench attention` prints: the table, notes on it, and the picture. */
#ifndef VIEW_ATTENTION_VIEW_H
#define VIEW_ATTENTION_VIEW_H

#include "bench/bench_attention.h"
#include "present/table_form.h"

struct markup;

struct attention_view {
    const struct attention_options *o;
    const struct machine *machine;     /* with peaks, maybe measured earlier */
    const struct machine *now;         /* of this run */
    const struct attention_cell *cell; /* of bench_attention_run */
    int cells;
    bool stopped;                           /* before all cells were measured */
    const char *command, *version, *commit; /* of the program */
    const char *svg;                        /* the file of the picture */
};

/* One row per requested cell; numbers in JSON and CSV have the units of the column ids. */
struct table attention_table(const struct attention_view *v, struct arena *a);
/* Prints the table and explains its columns; with --json everything as JSON. */
void attention_view_print(const struct attention_view *v, const struct table *t,
                          const struct table_form *form, struct str *s, struct arena *a);
/* Time, rate and memory over lengths, as one SVG. */
void attention_picture(const struct attention_view *v, struct markup *m, struct arena *a);

#endif

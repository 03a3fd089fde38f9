/* memory_view.h - what `strobe memory` prints, as text, CSV, JSON and pictures. */
#ifndef VIEW_MEMORY_VIEW_H
#define VIEW_MEMORY_VIEW_H

#include "bench/memory_run.h"
#include "engine/memory.h"
#include "present/table_form.h"

struct markup;

struct memory_view {
    const struct program *program; /* with the plans that `extent` needs */
    const struct config *config;
    int64_t vocab;
    const char *words; /* describes the configuration */
    enum memory_extent extent;
    struct memory_course course;
    struct memory_tensors largest; /* at the peak */
    int block;                     /* block whose saved values are listed; -1: none */
    struct memory_tensors saved;
    struct memory_variant variant[MEMORY_VARIANTS];
    int variants;
    /* limit: bytes; 0: none. batch: the largest that fits in the limit; 0: none does. */
    int64_t limit, batch;
    /* If the training does not fit: with how many ranks it would (fit_ranks), 0: none; and the
     * bytes of each. */
    int64_t ranks, of_rank;
    struct memory_run run;
    bool was_run;
    int64_t rows; /* how many of the largest tensors to list */
};

/* The tables and the plot as text. */
void memory_view_print(const struct memory_view *v, const struct table_form *form, struct str *s,
                       struct arena *a);
/* The timeline, one row per kernel: what --timeline prints. */
struct table memory_view_timeline(const struct memory_view *v, struct arena *a);
struct json_t *memory_view_json(const struct memory_view *v, struct arena *a);

/* memory_plot.c: the timeline as a stacked area plot, in characters and as an SVG. */
void memory_plot_text(const struct memory_view *v, struct str *s);
void memory_plot_svg(const struct memory_view *v, struct markup *m, struct arena *a);

/* "MATMUL lm_head" */
const char *memory_moment_words(const struct memory_view *v, const struct memory_moment *m,
                                struct arena *a);
/* "forward", "backward", "update"; the other micro-batches have "forward, 3 more" and "forward, the
 * last". */
const char *memory_phase_words(const struct memory_view *v, const struct memory_moment *m,
                               struct arena *a);

#endif

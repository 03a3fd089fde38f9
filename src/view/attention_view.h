/* attention_view.h - what `bench attention` shows: the table, what its columns mean, and the picture. */
#ifndef VIEW_ATTENTION_VIEW_H
#define VIEW_ATTENTION_VIEW_H

#include "bench/bench_attention.h"
#include "present/table.h"

struct str;

struct attention_view {
    const struct attention_options *o;
    const struct machine *machine;
    const struct attention_cell *cell; /* as bench_attention_run gives them */
    int cells;
};

/* A row for each cell that was asked for; numbers in JSON and CSV as their ids say. */
struct table attention_table(const struct attention_view *v, struct arena *a);
/* What is counted as FLOPs. */
extern const char attention_flops_note[];
/* What the columns mean, a line each, for those that are there. */
const char *attention_notes(const struct attention_view *v, struct arena *a);
/* Time, rate and memory over lengths, as one SVG. */
void attention_picture(const struct attention_view *v, const char *note, struct str *s);

#endif

/* ladder_view.h - the output of `strobe ladder`: one row per rung, and a legend of the columns. */
#ifndef VIEW_LADDER_VIEW_H
#define VIEW_LADDER_VIEW_H

#include "bench/ladder.h"
#include "present/table_form.h"
#include "view/published.h"

struct ladder_view {
    const struct ladder *ladder;
    const struct config *config;
    int64_t vocab;
    const struct machine *machine;
};

/* What is said if `peak_exceeded`. */
#define LADDER_PEAK_EXCEEDED                                                                     \
    "A rung exceeded the measured peak (shares above 100 %), so the peak was measured too low; " \
    "`strobe machine` measures it again."

/* A row for each rung, with the tokens/s that others published in the last columns. */
struct table ladder_table(const struct ladder *l, const struct published *p, bool comparable,
                          struct arena *a);
/* What padding the vocabulary costs in FLOPs and buys in time; NULL: it is not on the ladder. */
const char *ladder_view_padding(const struct ladder *l, struct arena *a);
void ladder_view_print(const struct ladder_view *v, const struct table_form *form, struct str *s,
                       struct arena *a);

#endif

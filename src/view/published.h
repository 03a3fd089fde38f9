/* published.h - published training throughput (configs/published/), compiled into the program. */
#ifndef VIEW_PUBLISHED_H
#define VIEW_PUBLISHED_H

#include "base/arena.h"
#include "config/config.h"
#include "present/table.h"

struct json_t;

struct published_source {
    const char *id, *machine; /* "rtx_4060_ti", "RTX 4060 Ti" */
    const char *source;       /* author, place and software */
    const struct json_t *tokens_per_s;
};

struct published {
    const struct published_source *source;
    int sources;
};

/* Reads the numbers for training GPT-2 124M. */
void published_read(struct published *ret, struct arena *a);
/* Tokens per second of a rung of the ladder; 0: not published. */
double published_rate(const struct published_source *s, const char *rung);
/* Whether a ladder of this configuration measures the published task: GPT-2 124M, T 1024, on a GPU.
 * The machine still differs. */
bool published_comparable(const struct config *c, bool gpu);
/* One column for each source, "published_a100_tokens_per_s". */
void published_columns(const struct published *p, bool comparable, struct table_column *ret,
                       struct arena *a);
/* Sets these columns of a row, from `first` on. Unless comparable, the numbers are in parentheses,
 * which a page shows paler. */
void published_set(const struct published *p, bool comparable, const char *rung, struct table *t,
                   int row, int first, struct arena *a);
/* One sentence that explains the numbers and names their sources. */
const char *published_words(const struct published *p, bool comparable, struct arena *a);

#endif

/* published.h - throughput that others published (configs/published/), in the program. */
#ifndef VIEW_PUBLISHED_H
#define VIEW_PUBLISHED_H

#include "base/arena.h"

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

/* Numbers for training GPT-2 124M. */
void published_read(struct published *ret, struct arena *a);
/* Tokens per second of a rung of the ladder; 0: not published. */
double published_tokens(const struct published_source *s, const char *rung);
/* One sentence: what the numbers are, and who published them. */
const char *published_words(const struct published *p, struct arena *a);

#endif

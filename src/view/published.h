/* published.h - figures that others published, beside ours: configs/published/, taken into the program. */
#ifndef VIEW_PUBLISHED_H
#define VIEW_PUBLISHED_H

#include "base/arena.h"

struct json_t;

struct published_source {
    const char *id, *machine; /* "rtx_4060_ti", "RTX 4060 Ti" */
    const char *source;       /* who, where, with what */
    const struct json_t *tokens_per_s;
};

struct published {
    const struct published_source *source;
    int sources;
};

/* Training GPT-2 124M. */
void published_read(struct published *ret, struct arena *a);
/* Tokens per second at a rung of the ladder; 0: none was published. */
double published_tokens(const struct published_source *s, const char *rung);
/* One sentence: what the figures are, and whose. */
const char *published_words(const struct published *p, struct arena *a);

#endif

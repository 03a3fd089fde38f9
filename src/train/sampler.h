/* sampler.h - text, token by token, from an engine's weights.
 *
 * While all of the text fits the window, one more token costs one position: keys and values of the
 * earlier ones are kept (GRAPH_DECODE). Beyond that every token gets a new position, so each one costs
 * the whole window (GRAPH_LOGITS), cropped to the last block_size tokens. */
#ifndef TRAIN_SAMPLER_H
#define TRAIN_SAMPLER_H

#include "engine/sequence.h"

struct sampler_options {
    double temperature; /* 0: always the likeliest token */
    int64_t top_k;      /* draw among the k likeliest; 0: among all */
    uint32_t seed;
    bool cache; /* false: the whole window for every token; the same text, more slowly */
};

struct sampler {
    struct sampler_options options;
    /* private to sampler.c */
    const struct engine *engine;
    struct sequence window_logits, decode; /* of GRAPH_LOGITS, of GRAPH_DECODE */
    int64_t T, vocab;
    int32_t *window, *positions; /* (T) the last tokens; 0 ... T-1 */
    int64_t length, cached;      /* tokens in the window; of those in the cache */
    int64_t total;               /* tokens of the text */
    float *logits, *sorted;      /* (V) */
    uint32_t text;               /* number of the text, its sequence of random numbers */
};

/* The engine has GRAPH_LOGITS, and GRAPH_DECODE if `cache` is wanted. */
void sampler_init(struct sampler *s, struct engine *e, const struct sampler_options *o,
                  struct arena *a);
/* Begins text number `text` with a prompt of at least one token; of a long one the last block_size. */
void sampler_start(struct sampler *s, int64_t text, const int32_t *prompt, int64_t n);
/* Draws the next token and appends it. */
enum status sampler_next(struct sampler *s, int32_t *ret_token);
/* Before the engine is closed. */
void sampler_close(struct sampler *s);

#endif

/* sampler.h - generates text token by token with an engine's weights.
 *
 * While the text fits in the window, a new token costs one position, because the keys and values of
 * earlier positions are cached (GRAPH_DECODE). After that, a new token shifts the positions of all
 * others, so it costs a whole window of block_size positions (GRAPH_LOGITS). */
#ifndef TRAIN_SAMPLER_H
#define TRAIN_SAMPLER_H

#include "engine/sequence.h"

struct str;
struct vocabulary;

struct sampler_options {
    double temperature; /* 0: always the most likely token */
    int64_t top_k;      /* sample among the k most likely tokens; 0: among all */
    /* Sample among the fewest of these tokens whose probabilities add up to top_p (Holtzman et al.
     * 2020, section 3.1); 1: among all. */
    double top_p;
    uint32_t seed;
    bool cache; /* false: recompute the window for every token; same text, but slower */
};

struct sampler {
    struct sampler_options options;
    /* private to sampler.c */
    const struct engine *engine;
    struct sequence window_logits, decode; /* of GRAPH_LOGITS, of GRAPH_DECODE */
    int64_t T, vocab;
    int32_t *window, *positions; /* (T) the last tokens; 0 ... T-1 */
    int64_t length, cached;      /* tokens in the window; positions in the cache */
    int64_t total;               /* tokens in the text */
    float *logits, *sorted;      /* (V) */
    uint32_t text;               /* index of the text; selects its random sequence */
};

/* The engine must have GRAPH_LOGITS and, if `cache` is set, GRAPH_DECODE. */
void sampler_init(struct sampler *s, struct engine *e, const struct sampler_options *o,
                  struct arena *a);
/* Starts text `text` with a prompt of at least one token. If the prompt is longer than block_size,
 * only its last block_size tokens are used. */
void sampler_start(struct sampler *s, int64_t text, const int32_t *prompt, int64_t n);
/* Samples the next token and appends it. */
enum status sampler_next(struct sampler *s, int32_t *ret_token);
/* Call it before the engine is closed. */
void sampler_close(struct sampler *s);

/* Generates a text and appends it; uses the configured prompt if the vocabulary has its
 * characters. */
enum status sampler_write_text(struct engine *e, const struct vocabulary *v, struct str *s,
                               struct arena *a);

#endif

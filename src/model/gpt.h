/* gpt.h - the GPT of nanoGPT (and GPT-2): its parameters, its forward graph, its initial values.
 *
 * Pre-norm blocks, packed q, k, v (of fewer heads of k, v if asked), learned positions, a head tied to the token table. Weights are
 * (in,out) under Hugging Face's names for GPT-2, so a file goes both ways without a converter. */
#ifndef MODEL_GPT_H
#define MODEL_GPT_H

#include "config/config.h"
#include "graph/graph.h"

struct parameter {
    const char *name; /* "h.0.attn.c_attn.weight" */
    struct type type;
    int64_t offset;   /* elements, the same in weights, gradients and moments */
    bool decay;       /* weight decay acts on it: it has two dimensions */
    bool product;     /* matrix products read it, the forward pass one and the backward pass one */
    double mean, std; /* of its initial values */
    int64_t rows;     /* rows that are drawn; those behind are padding and zero */
};

struct gpt {
    struct config_model config;
    uint32_t seed;
    int64_t vocab, padded_vocab;
    struct parameter *parameter; /* decayed ones first in the range */
    int parameters;
    int64_t elements; /* of the whole range, padding included */
};

enum gpt_mode {
    GPT_TRAIN,  /* with dropout */
    GPT_EVAL,   /* without */
    GPT_CACHED, /* without; one position at a time, keys and values kept in STORAGE_CACHE */
};

/* Fills the table of parameters. */
void gpt_init(struct gpt *m, const struct config_model *config, int64_t vocab, uint32_t seed,
              struct arena *a);
/* What people count: every parameter, without padding; without positions as nanoGPT's report if asked. */
int64_t gpt_count(const struct gpt *m, bool with_positions);
/* FLOPs of a training step for each token as nanoGPT counts them: 6 N + 12 L C T (PaLM, appendix B). */
double gpt_flops_per_token(const struct gpt *m, int64_t T);

/* Appends the forward graph: inputs tokens (B,T), positions (T), step (1); returns logits (B,T,V). */
value gpt_logits(const struct gpt *m, struct graph *g, int64_t B, int64_t T, enum gpt_mode mode);
/* The same and the mean loss (1) against the input targets (B,T). */
value gpt_loss(const struct gpt *m, struct graph *g, int64_t B, int64_t T, enum gpt_mode mode);
/* Draws initial values: normal, 0.02; residual projections 0.02 / sqrt(2 L); norms 1; biases 0. */
void gpt_draw(const struct gpt *m, float *weights);

#endif

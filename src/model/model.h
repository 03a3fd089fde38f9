/* model.h - THE table of models: what `model` of a configuration names, and all that the rest of the house asks of it.
 *
 * A row says how the parameters are laid out, what the forward graph to a loss is, which keys of the configuration it reads, and
 * whether it is trained on text or only timed, on inputs that are drawn. Weights are (in,out); a GPT's have Hugging Face's names
 * for GPT-2, so a file goes both ways without a converter. Those of CS336 are (out,in). A new model: docs/ADDING.md. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "config/config.h"
#include "graph/graph.h"

struct parameter {
    const char *name; /* "h.0.attn.c_attn.weight" */
    struct type type;
    int64_t offset; /* elements, the same in weights, gradients and moments */
    bool decay;     /* weight decay acts on it: it has two dimensions */
    bool product;   /* matrix products read it, the forward pass one and the backward pass one */
    int joined; /* so many from here on, (out,in) each, are one matrix to the pass `join`; 0: it alone */
    bool positions;   /* a table of positions, which nanoGPT leaves out of its count */
    double mean, std; /* of its initial values */
    double cut;       /* which go no further than so many deviations; 0: any */
    int64_t rows;     /* rows that are drawn; those behind are padding and zero */
};

struct model {
    const struct model_def *def;
    struct config_model config;
    uint32_t seed;
    int64_t
        vocab; /* ids of tokens, or of whatever else it tells apart, are below it; 0: it has none */
    int64_t padded_vocab;        /* rows of its tables: those from `vocab` on are padding */
    struct parameter *parameter; /* decayed ones first in the range */
    int parameters;
    int64_t elements; /* of the whole range, padding included */
};

enum model_mode {
    MODEL_TRAIN,  /* with dropout */
    MODEL_EVAL,   /* without */
    MODEL_CACHED, /* without; one position at a time, keys and values kept in STORAGE_CACHE */
};

/* A forward graph of B sequences of T, appended to `g`. */
typedef value (*model_graph_fn)(const struct model *m, struct graph *g, int64_t B, int64_t T,
                                enum model_mode mode);
struct model_parameters; /* layers.h */

struct model_def {
    const char *what;        /* for people */
    const char *unit;        /* what batch_size x block_size of them are: "tokens" */
    const char *const *keys; /* of the group `model` that it reads; ends with NULL */
    int layers;              /* blocks, of a model that does not read n_layer */
    bool trained;            /* on text; else it is only timed, on inputs that are drawn */
    enum status (*check)(const struct config_model *c); /* values that make no sense; may be NULL */
    void (*lay_out)(struct model *m, struct model_parameters *p);
    model_graph_fn loss;                                         /* -> the loss (1) */
    model_graph_fn logits;                                       /* -> (B,T,V); NULL: it has none */
    double (*flops_per_token)(const struct model *m, int64_t T); /* as papers count; may be NULL */
};

/* The row of a configuration. */
const struct model_def *model_def(const struct config_model *c);
/* config_check, and what the model has to say of its keys. */
enum status model_check(const struct config *c);
/* Refuses, with a sentence, a model that is not trained. */
enum status model_check_trained(const struct config_model *c);
/* Refuses a text of more tokens than vocab_size. */
enum status model_check_vocabulary(const struct config_model *c, int64_t vocab);
/* True if the model reads this key of the group `model`. */
bool model_reads(const struct config_model *c, const char *key);
/* How many blocks it has. */
int64_t model_layers(const struct config_model *c);

/* Fills the table of parameters. `vocab` is that of the text; models without one do not read it. */
void model_init(struct model *m, const struct config_model *config, int64_t vocab, uint32_t seed,
                struct arena *a);
/* The matrix that parameter i begins where products are joined, and of how many parameters it is: those that lie one behind the other
 * without a gap; 1: of itself alone. */
int model_matrix(const struct model *m, int i, struct type *ret_type);
/* What people count: every parameter, without padding; without positions as nanoGPT's report if asked. */
int64_t model_count(const struct model *m, bool with_positions);
/* FLOPs of a training step for each token as papers count them; 0: there is no such formula. */
double model_flops_per_token(const struct model *m, int64_t T);
/* Draws initial values: normal, of the mean and the deviation that each parameter has, drawn again where they are beyond its cut. */
void model_draw(const struct model *m, float *weights);

/* Appends the forward graph. A model that is trained has the inputs tokens (B,T), positions (T), step (1), and, of its loss, targets (B,T). A model that
 * is only timed has x, of floats, in STORAGE_DRAWN; targets, where its loss has some, beside it or, ids, as an input.
 * Returns the loss (1), or logits (B,T,V). */
value model_loss(const struct model *m, struct graph *g, int64_t B, int64_t T,
                 enum model_mode mode);
bool model_has_logits(const struct model *m);
value model_logits(const struct model *m, struct graph *g, int64_t B, int64_t T,
                   enum model_mode mode);

#endif

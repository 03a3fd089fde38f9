/* model.h - THE table of models, and the interface through which the other folders use a model.
 *
 * A row defines the parameters, the forward graph up to the loss, the configuration keys the model
 * reads, and whether it is trained on text or only timed on random inputs. Weights are (in,out) and
 * have Hugging Face's names for GPT-2, so checkpoints are exchanged without conversion; only the
 * weights of the model cs336 are (out,in). To add a model, see docs/ADDING.md. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "config/config.h"
#include "graph/graph.h"

struct parameter {
    const char *name; /* "h.0.attn.c_attn.weight" */
    struct type type;
    int64_t offset; /* in elements; the same in weights, gradients and moments */
    bool decay;     /* weight decay applies, because the parameter has two dimensions */
    bool matmul;    /* one matmul of the forward pass and one of the backward pass read it */
    int joined; /* how many weights (out,in), this and the next ones, `join` can join; 0: none */
    bool positions;   /* a table of positions, which nanoGPT's parameter count excludes */
    double mean, std; /* of the initial values */
    double cut;       /* initial values are truncated at this many deviations; 0: not truncated */
    int64_t rows;     /* rows with random initial values; the remaining rows are zero padding */
};

struct model {
    const struct model_def *def;
    struct config_model config;
    uint32_t seed;
    int64_t vocab; /* the number of token ids (or class ids): the larger of the data set's number
                             and vocab_size; 0: the model has no ids */
    int64_t padded_vocab;        /* rows of the embedding tables; rows >= vocab are padding */
    struct parameter *parameter; /* with weight decay: first in the range, or in each unit */
    int parameters;
    int64_t elements; /* of the whole range, including padding */
    int units;        /* set by model_cut; 0: the range is not cut into units */
    const int64_t
        *unit; /* units + 1 elements of the range: unit k is unit[k] ... unit[k + 1] - 1 */
};

enum model_mode {
    MODEL_TRAIN,  /* with dropout */
    MODEL_EVAL,   /* no dropout */
    MODEL_CACHED, /* no dropout; one position per run, keys and values in STORAGE_CACHE */
};

/* Appends the forward graph of B sequences of T positions, up to the loss (1) or the logits
 * (B,T,V). A trained model has the inputs tokens (B,T), positions (T), step (1), and for the loss
 * targets (B,T). A timed model has random floats x in STORAGE_RANDOM; its targets are in
 * STORAGE_RANDOM too, or an input if they are ids. */
typedef value (*model_graph_fn)(const struct model *m, struct graph *g, int64_t B, int64_t T,
                                enum model_mode mode);
struct model_parameters; /* layers.h */

struct model_def {
    const char *what;        /* one-line description */
    const char *unit;        /* name of the batch_size x block_size items: "tokens" */
    const char *const *keys; /* keys of the group `model` that the model reads; ends with NULL */
    int layers;              /* number of blocks if the model does not read n_layer */
    bool trained;            /* trained on text; otherwise only timed on random inputs */
    enum status (*check)(const struct config_model *c); /* rejects invalid values; may be NULL */
    void (*lay_out)(struct model *m, struct model_parameters *p);
    model_graph_fn loss;   /* -> the loss (1) */
    model_graph_fn logits; /* -> (B,T,V); NULL: the model has none */
    /* training FLOPs by the formula of the literature; may be NULL */
    double (*flops_per_token)(const struct model *m, int64_t T);
};

/* The table row of a configuration. */
const struct model_def *model_def(const struct config_model *c);
/* Runs config_check and the model's own checks. */
enum status model_check(const struct config *c);
/* Fails with ST_UNSUPPORTED for a model that cannot be trained. */
enum status model_check_trained(const struct config_model *c);
/* Fails with ST_USAGE if `vocab`, the vocabulary of the text, is larger than vocab_size. */
enum status model_check_vocabulary(const struct config_model *c, int64_t vocab);
/* True if the model reads this key of the group `model`. */
bool model_reads(const struct config_model *c, const char *key);
/* The number of transformer blocks. */
int64_t model_layers(const struct config_model *c);

/* Fills the parameter table. `vocab` is the vocabulary of the text; some models ignore it. */
void model_init(struct model *m, const struct config_model *config, int64_t vocab, uint32_t seed,
                struct arena *a);
/* The number of the block in a parameter's name, "h.3.mlp.c_fc.weight"; -1: outside of blocks. */
int model_parameter_layer(const struct parameter *p);
/* Cuts the range into units: one for the parameters before the blocks, one for the parameters of
 * each block, and one for the parameters after the blocks. Offsets change: the parameters of a unit
 * are contiguous, and parameters with weight decay come first. A unit consists of `ranks` shards of
 * equal, aligned length. */
void model_cut(struct model *m, int ranks, struct arena *a);
/* The type of the matrix that starts at parameter i after the pass `join`. Returns the number of
 * parameters in the matrix: parameter.joined if these are contiguous, else 1. */
int model_matrix(const struct model *m, int i, struct type *ret_type);
/* The number of scalar parameters, without padding. nanoGPT reports the number without position
 * tables. */
int64_t model_count(const struct model *m, bool with_positions);
/* Training FLOPs per token by the formula of the literature; 0 if the model has no formula. */
double model_flops_per_token(const struct model *m, int64_t T);
/* Generates the initial values: random normals with each parameter's mean, deviation and cut.
 * model_init_part generates only the parameters that begin in elements first ... end - 1 of the
 * range, with zeros between them; `part` is for element `first`. */
void model_init_weights(const struct model *m, float *weights);
void model_init_part(const struct model *m, int64_t first, int64_t end, float *part);

#endif

/* layers.h - what models are written with: parameters in their tables, layers in their graphs. Private to model/. */
#ifndef MODEL_LAYERS_H
#define MODEL_LAYERS_H

#include "model/model.h"

/* The rows of the table of models. */
extern const struct model_def model_gpt, model_cs336, model_attention_block, model_elu, model_toy;

/* --- the table of parameters ------------------------------------------------------------------- */

struct model_parameters {
    struct model *m;
    struct arena *arena;
    int capacity;
};

/* One parameter; what it says of it may be changed until the next one is appended. */
struct parameter *model_parameter(struct model_parameters *l, const char *name, struct type type,
                                  double mean, double std);
/* NAME.weight (in,out) or, of a norm, (out), where they begin with 1; if asked NAME.bias (out), of zeros. */
struct parameter *model_layer(struct model_parameters *l, const char *name, struct type type,
                              double std, bool bias);

/* Rounds padded_vocab up to a multiple of pad_vocab, where that is asked for. */
void model_pad_vocabulary(struct model *m);

/* --- the graph ----------------------------------------------------------------------------------- */

/* The parameter whose name is the scope joined with `name`; a leaf is made once. */
value model_weight(const struct model *m, struct graph *g, const char *name);
/* x times NAME.weight, plus NAME.bias if there is such a parameter. */
value model_linear(const struct model *m, struct graph *g, const char *name, value x);
/* LayerNorm with NAME.weight and, if there is such a parameter, NAME.bias. */
value model_norm(const struct model *m, struct graph *g, const char *name, value x);

/* How many heads keys and values have. */
int64_t model_kv_heads(const struct config_model *c);
/* Causal attention of packed q, k, v (B,T,C+2*KV*D); with a cache, of one position, the keys and values kept for `layer` of the graph. */
struct model_attention {
    int64_t B;
    bool cached;
    value step, positions;
    struct dropout drop;
};
value model_attention(const struct model *m, struct graph *g, const struct model_attention *a,
                      value qkv);

/* A refusal of widths that heads do not divide; the second also of heads that do not share keys and values in equal groups. */
enum status model_check_heads(const struct config_model *c);
enum status model_check_groups(const struct config_model *c);

/* nanoGPT's count of a training step: 6 N + 12 L C T for each token (PaLM, appendix B). N has the token table, also where the head is another
 * matrix and no product reads it. */
double model_flops_by_size(const struct model *m, int64_t T);

#endif

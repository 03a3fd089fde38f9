/* layers.h - helpers for models: the table of parameters, layers of graphs; private to model/. */
#ifndef MODEL_LAYERS_H
#define MODEL_LAYERS_H

#include "model/model.h"

/* The rows of the table of models. */
extern const struct model_def model_gpt, model_cs336, model_attention_block, model_elu, model_toy;

/* --- the table of parameters ------------------------------------------------------------------ */

struct model_parameters {
    struct model *m;
    struct arena *arena;
    int capacity;
};

/* Appends a parameter; the returned pointer is valid until the next parameter is appended. */
struct parameter *model_parameter(struct model_parameters *l, const char *name, struct type type,
                                  double mean, double std);
/* Appends the parameter NAME.weight: (in,out), or for a norm (out) with mean 1. With `bias` also
 * appends NAME.bias (out), which is initially zero. */
struct parameter *model_layer(struct model_parameters *l, const char *name, struct type type,
                              double std, bool bias);

/* Rounds padded_vocab up to a multiple of pad_vocab, if it is set. */
void model_pad_vocabulary(struct model *m);

/* --- the graph -------------------------------------------------------------------------------- */

/* The leaf of the parameter SCOPE.name, where SCOPE is the graph's current scope; repeated calls
 * return the same leaf. */
value model_weight(const struct model *m, struct graph *g, const char *name);
/* x @ NAME.weight, plus NAME.bias if that parameter exists. */
value model_linear(const struct model *m, struct graph *g, const char *name, value x);
/* LayerNorm with NAME.weight and, if it exists, NAME.bias. */
value model_norm(const struct model *m, struct graph *g, const char *name, value x);

int64_t model_kv_heads(const struct config_model *c);
/* Causal attention of packed q, k, v (B,T,C+2*KV*D) -> (B,T,C). With `cached`, T = 1, and the keys
 * and values of earlier positions come from the cache of the graph's current layer. */
struct model_attention {
    int64_t B;
    bool cached;
    value step, positions;
    struct dropout drop;
};
value model_attention(const struct model *m, struct graph *g, const struct model_attention *a,
                      value qkv);

/* The mean cross-entropy of logits (B,T,V) and the input `targets` (B,T). */
value model_cross_entropy(const struct model *m, struct graph *g, value logits, value targets);
/* Implements model_def.loss for models that have logits. */
value model_loss_of_logits(const struct model *m, struct graph *g, int64_t B, int64_t T,
                           enum model_mode mode);

/* Fail with ST_USAGE if n_head does not divide n_embd; model_check_groups also fails if n_kv_head
 * does not divide n_head. */
enum status model_check_heads(const struct config_model *c);
enum status model_check_groups(const struct config_model *c);

/* nanoGPT's count of training FLOPs per token: 6 N + 12 L C T (PaLM, appendix B). N includes the
 * token table even if the output head is a separate matrix and no matmul reads the table. */
double model_flops_by_size(const struct model *m, int64_t T);

#endif

/* optimizer.h - THE table of optimizers, and the update as a graph: norm, clipping, optimizer.
 *
 * A new optimizer is a word in config/fields.c, a value of `enum optimizer_kind` (config/config.h)
 * and a row in optimizer.c with a function that builds its update from operators. A fused operator
 * for it is optional: docs/ADDING.md says what that takes. */
#ifndef ENGINE_OPTIMIZER_H
#define ENGINE_OPTIMIZER_H

#include "config/config.h"
#include "model/model.h"

enum { OPTIMIZER_STATES = 2, OPTIMIZER_INPUTS = 3 };

/* What an optimizer keeps for each parameter: a tensor of its shape, zero at first. */
struct optimizer_state {
    enum storage storage;
    const char *suffix; /* of its name in checkpoints: ".m" */
};

/* A number that differs from step to step, an input of the update of that name. */
struct optimizer_input {
    const char *name;
    double (*at)(const struct config_train *c, int64_t iter);
    double timed; /* its value where an update is only timed */
};

/* What the update of one parameter reads. */
struct optimizer_operands {
    value weights, state[OPTIMIZER_STATES]; /* leaves */
    value gradient;                         /* a leaf, before clipping */
    value input[OPTIMIZER_INPUTS];
    value clip; /* the coefficient of the gradient, of one element */
};

struct optimizer {
    const char *name; /* "AdamW", in reports */
    int states, inputs;
    struct optimizer_state state[OPTIMIZER_STATES];
    struct optimizer_input input[OPTIMIZER_INPUTS];
    /* Appends the update of one parameter: stores the weights and each state tensor with g_store,
     * after all that reads them, and returns the stored weights. NULL: `op` does it. */
    value (*build)(struct graph *g, const struct config_train *c, const struct parameter *p,
                   const struct optimizer_operands *in);
    /* Without `build`: the operator that updates one parameter, whose expansion is the formula.
     * Its inputs are the members of optimizer_operands, in their order. */
    enum op op;
    union attr (*attr)(const struct config_train *c, int64_t decay_elements);
};

const struct optimizer *optimizer_of(const struct config *c);

/* Appends the update of every parameter by `o`, and the store of its bf16 copy if there is one
 * (copies.h). Inputs: the optimizer's, of one element each; output grad_norm (1), before clipping,
 * which is that of torch.nn.utils.clip_grad_norm_: min(1, grad_clip / (norm + 1e-6)); 0: none.
 * With zero=1 it updates the shards of a rank (shards.h) and gathers the weights; with zero=3 the
 * forward pass gathers them. */
void optimizer_update(struct graph *g, const struct model *m, const struct config *c,
                      const struct optimizer *o);

#endif

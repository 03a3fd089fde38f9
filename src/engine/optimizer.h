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

/* A tensor that an optimizer keeps for each parameter, of the same shape, initially zero. */
struct optimizer_state {
    enum storage storage;
    const char *suffix; /* in checkpoints, appended to the parameter's name: ".m" */
};

/* A number that changes with the iteration: the input `name` of the update graph. */
struct optimizer_input {
    const char *name;
    double (*at)(const struct config_train *c, int64_t iter);
    double timed; /* the value in updates that are only timed */
};

/* The values that the update of one parameter reads. */
struct optimizer_operands {
    value weights, state[OPTIMIZER_STATES]; /* leaves */
    value gradient;                         /* a leaf, before clipping */
    value input[OPTIMIZER_INPUTS];
    value clip; /* (1): the factor by which clipping multiplies the gradient */
};

struct optimizer {
    const char *name; /* "AdamW", in reports */
    int states, inputs;
    struct optimizer_state state[OPTIMIZER_STATES];
    struct optimizer_input input[OPTIMIZER_INPUTS];
    /* Appends the update of one parameter: stores the weights and each state tensor with g_store,
     * after all nodes that read them, and returns the stored weights. NULL: use `op`. */
    value (*build)(struct graph *g, const struct config_train *c, const struct parameter *p,
                   const struct optimizer_operands *in);
    /* If `build` is NULL: the operator that updates one parameter; its expansion is the formula.
     * Its inputs are the members of optimizer_operands in their order. */
    enum op op;
    union attr (*attr)(const struct config_train *c, int64_t decay_elements);
};

const struct optimizer *optimizer_of(const struct config *c);

/* Appends the update of every parameter by `o`, and the store of the bf16 copy if there is one
 * (copies.h). Inputs: the inputs of the optimizer, (1) each. Output: grad_norm (1), the norm before
 * clipping. As in torch.nn.utils.clip_grad_norm_, clipping multiplies the gradients by min(1,
 * grad_clip / (norm + 1e-6)); grad_clip 0: no clipping. With zero=1 and zero=3, each rank updates
 * its shards (shards.h); zero=1 then gathers the weights, with zero=3 the forward pass does. */
void optimizer_update(struct graph *g, const struct model *m, const struct config *c,
                      const struct optimizer *o);

#endif

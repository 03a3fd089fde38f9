/* optimizer.h - THE table of optimizers, and the update graph.
 *
 * A new optimizer: a word in config/fields.c, a row in optimizer.c, an operator that updates one
 * parameter (graph/op_list.h, its kernels), and a row in pass/fuse_update.c, which fuses them. */
#ifndef ENGINE_OPTIMIZER_H
#define ENGINE_OPTIMIZER_H

#include "config/config.h"
#include "model/model.h"

enum { OPTIMIZER_STATES = 2, OPTIMIZER_INPUTS = 3 };

/* Optimizer state: for each parameter a tensor of its shape, initially zero. */
struct optimizer_state {
    enum storage storage;
    const char *suffix; /* appended to the parameter's name in checkpoints: ".m" */
};

/* A number that changes from step to step: an input of the update graph with that name. */
struct optimizer_input {
    const char *name;
    double (*at)(const struct config_train *c, int64_t iter);
    double timed; /* the value used when an update is only timed */
};

struct optimizer {
    int states, inputs;
    struct optimizer_state state[OPTIMIZER_STATES];
    struct optimizer_input input[OPTIMIZER_INPUTS];
    /* Updates one parameter: weights, state, gradient, the inputs above, clip coefficient. */
    enum op op;
    union attr (*attr)(const struct config_train *c, int64_t decay_elements);
};

const struct optimizer *optimizer_of(const struct config *c);

/* Appends the update of every parameter. Inputs: the optimizer's, one element each. Output:
 * grad_norm (1), before clipping. Clips as torch.nn.utils.clip_grad_norm_ does: the gradient is
 * scaled by min(1, grad_clip / (norm + 1e-6)); grad_clip = 0 turns clipping off. If a bf16 copy of
 * the weights is kept (copies.h), each update also stores its parameter's copy. */
void optimizer_update(struct graph *g, const struct model *m, const struct config *c);

#endif

/* optim.h - THE table of optimizers, and the update as a graph: gradient norm, clipping, the optimizer.
 *
 * A new optimizer: a word in config/fields.c, a row in optim.c, an operator that updates one parameter
 * (graph/op_list.h, its kernels) and its row in pass/fuse_update.c, which makes one of all at `full`. */
#ifndef ENGINE_OPTIM_H
#define ENGINE_OPTIM_H

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

struct optimizer {
    int states, inputs;
    struct optimizer_state state[OPTIMIZER_STATES];
    struct optimizer_input input[OPTIMIZER_INPUTS];
    /* Updates one parameter: the weights, the state, the gradient, the inputs, the clip coefficient. */
    enum op op;
    union attr (*attr)(const struct config_train *c, int64_t decay_elements);
};

const struct optimizer *optimizer_of(const struct config *c);

/* Appends the update of every parameter. Inputs: the optimizer's, of one element each; output grad_norm
 * (1), before clipping. Clipping as torch.nn.utils.clip_grad_norm_: the gradient is scaled by
 * min(1, grad_clip / (norm + 1e-6)); grad_clip = 0 turns it off. Where a bf16 copy of the weights is kept
 * (copies.h), each update is followed by the store of its parameter's copy. */
void optimizer_update(struct graph *g, const struct model *m, const struct config *c);

#endif

/* optim.h - the update as a graph: gradient norm, clipping, AdamW with decay groups. */
#ifndef ENGINE_OPTIM_H
#define ENGINE_OPTIM_H

#include "config/config.h"
#include "model/model.h"

/* Appends the update of every parameter. Inputs lr (1), bias1 = 1 - beta1^t (1), bias2 = 1 - beta2^t (1);
 * output grad_norm (1), before clipping. Clipping as torch.nn.utils.clip_grad_norm_: the gradient is
 * scaled by min(1, grad_clip / (norm + 1e-6)); grad_clip = 0 turns it off. Where a bf16 copy of
 * the weights is kept (copies.h), each update is followed by the store of its parameter's copy. */
void optim_update(struct graph *g, const struct model *m, const struct config *c);

#endif

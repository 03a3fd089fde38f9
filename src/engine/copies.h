/* copies.h - what matmuls read instead of the f32 weights: a bf16 copy, and packed weights, in the
 * order in which a matmul's inner loop reads them.
 *
 * Both need fusion=full: the copy is kept if dtype is bfloat16, packed weights if the backend can
 * pack and pack_weights enables it. There are none where ranks share the weights. They are state
 * derived from the weights: the update graph writes them after AdamW, and GRAPH_REFRESH rebuilds
 * them from initial or loaded weights. */
#ifndef ENGINE_COPIES_H
#define ENGINE_COPIES_H

#include "config/config.h"
#include "model/model.h"
#include "pass/pass.h"

struct target;

bool copies_bf16(const struct config *c);
/* The offset of each packed weight, allocated in `a`; NULL if no weights are packed. */
const struct pass_packing *copies_packing(const struct config *c, const struct model *m,
                                          const struct target *target, struct arena *a);

/* Appends a store of `w`, the new value of a parameter, to its bf16 copy. */
void copies_store(struct graph *g, const struct parameter *p, value w);
/* Appends a store of all new weights to the bf16 copy, if there is one. */
void copies_refresh_all(struct graph *g, const struct config *c, const struct model *m);
/* Appends PACK of each packed weight, from the bf16 copy if there is one. Call after the update. */
void copies_pack(struct graph *g, const struct config *c, const struct model *m,
                 const struct pass_packing *packing);
/* Appends both, from the current weights. */
void copies_refresh(struct graph *g, const struct config *c, const struct model *m,
                    const struct pass_packing *packing);

#endif

/* copies.h - copies of the f32 weights for matmuls: a bf16 copy, and packed weights, whose order is
 * the order in which a matmul's inner loop reads them.
 *
 * Both need fusion=full and zero < 3. There is a bf16 copy if dtype is bfloat16 or float8, and
 * packed weights if the backend can pack and pack_weights enables it. The update graph writes both
 * after the optimizer, and GRAPH_REFRESH rebuilds both from initial or loaded weights. */
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
/* Appends the stores of the bf16 copy and of the packed weights, from the current weights. */
void copies_refresh(struct graph *g, const struct config *c, const struct model *m,
                    const struct pass_packing *packing);

#endif

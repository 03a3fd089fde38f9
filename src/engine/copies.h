/* copies.h - what products read instead of the f32 weights: a bf16 copy, and weights packed in the order
 * in which a product's inner loop reads them.
 *
 * Both exist where fusion is full: the copy where dtype is bfloat16, packed weights where the backend
 * packs and pack_weights says so. They are state that follows the weights: the update
 * writes them behind AdamW, GRAPH_REFRESH makes them anew from weights that were drawn or loaded. */
#ifndef ENGINE_COPIES_H
#define ENGINE_COPIES_H

#include "config/config.h"
#include "model/model.h"
#include "pass/pass.h"

struct target;

bool copies_bf16(const struct config *c);
/* Where each packed weight lies, in `a`; NULL if none is packed. */
const struct pass_packing *copies_packing(const struct config *c, const struct model *m,
                                          const struct target *target, struct arena *a);
/* True if GRAPH_REFRESH has something to do. */
bool copies_exist(const struct config *c, const struct pass_packing *packing);

/* Appends the store of one parameter's bf16 copy, of its new value `w`. */
void copies_store(struct graph *g, const struct parameter *p, value w);
/* Appends PACK of each packed weight, from the copy if there is one. What wrote the weights stands before. */
void copies_pack(struct graph *g, const struct config *c, const struct model *m,
                 const struct pass_packing *packing);
/* Appends both, from the weights as they are. */
void copies_refresh(struct graph *g, const struct config *c, const struct model *m,
                    const struct pass_packing *packing);

#endif

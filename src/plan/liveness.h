/* liveness.h - the live range of each value and the storage it uses; private to plan/. */
#ifndef PLAN_LIVENESS_H
#define PLAN_LIVENESS_H

#include "plan/plan.h"

/* Fills p->span except arena offsets. A STORE whose value is made in place loses its kernel. */
void liveness_find(struct plan *p, struct arena *scratch);

/* True for a leaf of STORAGE_UNIT that is the root of the values that share its bytes: its span is
 * that of the whole unit. */
bool is_unit(const struct plan *p, int v);

/* True for a small input. All small inputs are placed next to each other, in graph order, so that
 * one upload copies all of them, and they have the same live range. */
bool is_small_input(const struct plan *p, int v);

#endif

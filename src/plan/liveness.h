/* liveness.h - the live range of each value and the storage it uses; private to plan/. */
#ifndef PLAN_LIVENESS_H
#define PLAN_LIVENESS_H

#include "plan/plan.h"

/* Fills p->span except arena offsets; a store whose value can be made in place loses its kernel. */
void liveness_find(struct plan *p, struct arena *scratch);

/* A leaf of STORAGE_UNIT, the root of others: it has the live range and the bytes of the unit. */
bool is_unit(const struct plan *p, int v);

/* Small inputs lie side by side in graph order, for one upload, and share one live range. */
bool is_small_input(const struct plan *p, int v);

#endif

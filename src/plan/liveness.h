/* liveness.h - the live range of each value and the storage it uses; private to plan/. */
#ifndef PLAN_LIVENESS_H
#define PLAN_LIVENESS_H

#include "plan/plan.h"

/* Fills p->span except for arena offsets, and removes the kernel of each store whose value can be
 * produced in place. */
void liveness_find(struct plan *p, struct arena *scratch);

/* Small inputs are placed contiguously in graph order, so that one copy uploads them all; they
 * share one live range. */
bool is_small_input(const struct plan *p, int v);

#endif

/* liveness.h - when each value lives and whose bytes it has; private to plan/. */
#ifndef PLAN_LIVENESS_H
#define PLAN_LIVENESS_H

#include "plan/plan.h"

/* Fills p->span but for the offsets of the arena, and takes the kernel away from stores whose value
 * can be made in its place. */
void liveness_find(struct plan *p, struct arena *scratch);

/* Small inputs lie one behind the other in the order of the graph, as an image of them does, so that one copy feeds all: they
 * live as one span. */
bool fed_together(const struct plan *p, int v);

#endif

/* liveness.h - when each value lives and whose bytes it has; private to plan/. */
#ifndef PLAN_LIVENESS_H
#define PLAN_LIVENESS_H

#include "plan/plan.h"

/* Fills p->span but for the offsets of the arena, and takes the kernel away from stores whose value
 * can be made in its place. */
void liveness_find(struct plan *p, struct arena *scratch);

#endif

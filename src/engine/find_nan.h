/* find_nan.h - a hook of plan_run that stops at the first value that is no number. */
#ifndef ENGINE_FIND_NAN_H
#define ENGINE_FIND_NAN_H

#include "plan/plan.h"

/* What the hook needs: room to bring values from a device. */
struct find_nan {
    char chunk[1 << 16];
};

/* Looks at every float output of a step: NaN and +infinity are ST_NUMERIC, worded with the phase and
 * the element; plan_run puts the node before it. -infinity is what masks are made of. */
struct plan_hooks find_nan_hooks(struct find_nan *f);

#endif

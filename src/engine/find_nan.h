/* find_nan.h - a hook of plan_run that stops at the first NaN or infinity. */
#ifndef ENGINE_FIND_NAN_H
#define ENGINE_FIND_NAN_H

#include "plan/plan.h"

/* A buffer for values downloaded from the device. */
struct find_nan {
    char chunk[1 << 16];
};

/* Checks every float output of a step: NaN and +infinity are ST_NUMERIC; the message has the phase
 * and the element, and plan_run adds the node. -infinity is allowed: masks use it. */
struct plan_hooks find_nan_hooks(struct find_nan *f);

#endif

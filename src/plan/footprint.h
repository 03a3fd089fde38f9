/* footprint.h - where the bytes of a plan's arena go at the step that needs most of them. */
#ifndef PLAN_FOOTPRINT_H
#define PLAN_FOOTPRINT_H

#include "plan/timeline.h"

struct footprint {
    int step;
    int64_t bytes; /* alive at that step; plan->arena_bytes may be more: what placing them takes */
    int64_t part[MEMORY_PARTS]; /* MEMORY_UNUSED is what placing them takes */
    struct kept {               /* MEMORY_SAVED by the operator that made it, largest first */
        enum op op;
        int values;
        int64_t bytes;
    } kept[OP_COUNT];
    int kept_ops;
};

void plan_footprint(const struct plan *p, struct footprint *ret);

#endif

/* footprint.h - where the bytes of a plan's arena go at the step that needs most of them. */
#ifndef PLAN_FOOTPRINT_H
#define PLAN_FOOTPRINT_H

#include "plan/plan.h"

enum footprint_part {
    FOOTPRINT_INPUT,    /* fed before the run */
    FOOTPRINT_KEPT,     /* made forward, read backward */
    FOOTPRINT_FORWARD,  /* made forward, gone before backward */
    FOOTPRINT_BACKWARD, /* made backward */
    FOOTPRINT_UPDATE,   /* made by the update */
    FOOTPRINT_SCRATCH,  /* room for the kernel that runs */
    FOOTPRINT_PARTS
};

struct footprint {
    int step;
    int64_t bytes; /* alive at that step; plan->arena_bytes may be more: what placing them takes */
    int64_t part[FOOTPRINT_PARTS];
    struct kept { /* FOOTPRINT_KEPT by the operator that made it, largest first */
        enum op op;
        int values;
        int64_t bytes;
    } kept[OP_COUNT];
    int kept_ops;
};

void plan_footprint(const struct plan *p, struct footprint *ret);
/* "kept for backward" */
const char *footprint_part_name(enum footprint_part part);
/* True if the value has bytes of its own in the arena, alive at that step. */
bool plan_alive(const struct plan *p, value v, int step);

#endif

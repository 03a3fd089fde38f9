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
/* Who stands where at that step: for each value that has bytes of its own in the arena and lives then,
 * the value whose content they hold, itself or one that took its place; no value for all others. `ret`
 * has an element for each value of the graph. */
void plan_holders(const struct plan *p, int step, value *ret);

#endif

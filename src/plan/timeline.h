/* timeline.h - what is in memory while each step of a plan runs, by what it is there for. */
#ifndef PLAN_TIMELINE_H
#define PLAN_TIMELINE_H

#include "plan/plan.h"

enum memory_part {
    MEMORY_WEIGHTS,
    MEMORY_GRADIENTS, /* of weights */
    MEMORY_OPTIMIZER, /* AdamW's moments */
    MEMORY_COPIES,    /* of weights: bf16, packed */
    MEMORY_CACHE,     /* keys and values of a text that is being written */
    MEMORY_INPUTS,    /* fed before the run, those of the next step included */
    MEMORY_SAVED,     /* made forward, read backward */
    MEMORY_FORWARD,   /* made forward, gone before backward */
    MEMORY_BACKWARD,  /* made backward */
    MEMORY_UPDATE,    /* made by the update */
    MEMORY_WORKSPACE, /* room for the kernel that runs */
    MEMORY_UNUSED,    /* of the arena, nobody's at that step */
    MEMORY_PARTS
};

/* "saved for backward", for people; "saved", for programs. */
const char *memory_part_name(enum memory_part part);
const char *memory_part_id(enum memory_part part);

/* A value in bytes of the arena, from the step that makes it to the one after which they hold another value or
 * are free. A value that takes another's place begins as the other's stay ends; views do not stay. */
struct stay {
    value v;
    int first, last;       /* steps of the plan; last is plan->steps for an output */
    enum memory_part part; /* MEMORY_INPUTS to MEMORY_UPDATE */
    int64_t bytes, offset;
};
/* All stays, in the order of their values. */
struct stays {
    struct stay *stay;
    int n;
};
void plan_stays(const struct plan *p, struct stays *ret, struct arena *a);

struct timeline {
    int steps;                       /* those of the plan: bytes[id] is while step id runs */
    int64_t (*bytes)[MEMORY_PARTS];  /* their sum is the same at each step: what is allocated */
    int peak;                        /* the first step at which least is unused */
    int64_t peak_bytes, total_bytes; /* all parts but MEMORY_UNUSED there; all parts */
};
/* `storage`: bytes of the STORAGE_COUNT blocks in which the plan lies, which other plans may have made larger; NULL: its arena
 * alone. */
void plan_timeline(const struct plan *p, const int64_t *storage, struct timeline *ret,
                   struct arena *a);
/* All parts but MEMORY_UNUSED. */
int64_t timeline_used(const struct timeline *t, int step);

#endif

/* timeline.h - memory use during each step of a plan, by purpose. */
#ifndef PLAN_TIMELINE_H
#define PLAN_TIMELINE_H

#include "plan/plan.h"

enum memory_part {
    MEMORY_WEIGHTS,
    MEMORY_GRADIENTS, /* of the loss with respect to the weights */
    MEMORY_OPTIMIZER, /* AdamW's moments */
    MEMORY_COPIES,    /* bf16 and packed copies of the weights */
    MEMORY_CACHE,     /* keys and values during text generation */
    MEMORY_INPUTS,    /* uploaded before the run, including those of the next step */
    MEMORY_SAVED,     /* produced in the forward pass, read in the backward pass */
    MEMORY_FORWARD,   /* produced in the forward pass, dead before the backward pass */
    MEMORY_BACKWARD,  /* produced in the backward pass */
    MEMORY_UPDATE,    /* produced in the update */
    MEMORY_WORKSPACE, /* scratch of the running kernel */
    MEMORY_UNUSED,    /* arena bytes without a live value at that step */
    MEMORY_PARTS
};

/* "saved for backward" in reports; "saved" in files. */
const char *memory_part_name(enum memory_part part);
const char *memory_part_id(enum memory_part part);

/* A value's use of arena bytes, from the step that produces it to the last before they are free or
 * hold another value, such as a result in place. Views have none. */
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
    int steps; /* steps of the plan; bytes[id] holds while step id runs */
    /* the sum over the parts, the allocated bytes, is the same at each step */
    int64_t (*bytes)[MEMORY_PARTS];
    int peak;                        /* the first step with the fewest unused bytes */
    int64_t peak_bytes, total_bytes; /* all parts except MEMORY_UNUSED at the peak; all parts */
};
/* `storage`: bytes of the STORAGE_COUNT blocks that contain the plan, which other plans may have
 * enlarged; NULL: its arena only. */
void plan_timeline(const struct plan *p, const int64_t *storage, struct timeline *ret,
                   struct arena *a);

#endif

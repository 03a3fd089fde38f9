/* timeline.h - memory use during each step of a plan, by purpose. */
#ifndef PLAN_TIMELINE_H
#define PLAN_TIMELINE_H

#include "plan/plan.h"

enum memory_part {
    MEMORY_WEIGHTS,
    MEMORY_GRADIENTS, /* gradients of the weights */
    MEMORY_OPTIMIZER, /* state of the optimizer */
    /* bf16 and packed copies of the weights; with float8, the largest magnitudes of past steps */
    MEMORY_COPIES,
    MEMORY_CACHE,     /* keys and values during text generation */
    MEMORY_INPUTS,    /* uploaded before the run, including staged inputs of the next step */
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

/* The time during which a value occupies arena bytes: from the step that produces it to the last
 * step before the bytes are free or an in-place result overwrites them. Views have no residency. */
struct residency {
    value v;
    int first, last;       /* steps of the plan; last is plan->steps for an output */
    enum memory_part part; /* MEMORY_INPUTS to MEMORY_UPDATE */
    int64_t bytes, offset;
};
/* All residencies, in the order of their values. */
struct residencies {
    struct residency *residency;
    int n;
};
void plan_residencies(const struct plan *p, struct residencies *ret, struct arena *a);

struct timeline {
    int steps; /* steps of the plan */
    /* bytes[id]: use while step id runs. The parts add up to the allocated bytes in each step. */
    int64_t (*bytes)[MEMORY_PARTS];
    int peak; /* the first step with the fewest unused bytes */
    /* peak_bytes: all parts except MEMORY_UNUSED at the peak. total_bytes: all parts. */
    int64_t peak_bytes, total_bytes;
};
/* `storage`: sizes of the STORAGE_COUNT blocks that the plan uses, which other plans may have
 * enlarged; NULL: only the arena of the plan is counted. */
void plan_timeline(const struct plan *p, const int64_t *storage, struct timeline *ret,
                   struct arena *a);

#endif

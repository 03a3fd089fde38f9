/* memory.h - where the bytes of a training step go, read off its plans: moment by moment, tensor by tensor, and what
 * computing again would make of it. */
#ifndef ENGINE_MEMORY_H
#define ENGINE_MEMORY_H

#include "engine/program.h"
#include "plan/timeline.h"

/* How much of a step: the loss alone, with nothing saved; forward and backward, gradients included; all of it. */
enum memory_extent { EXTENT_INFERENCE, EXTENT_BACKWARD, EXTENT_STEP, EXTENTS };
/* "inference", "backward", "step" */
const char *memory_extent_name(enum memory_extent extent);
/* The graphs that it takes, a mask. */
unsigned memory_kinds(const struct config *c, enum memory_extent extent);

/* A kernel that runs, and what there is meanwhile. */
struct memory_moment {
    enum graph_kind kind;
    int step; /* of that graph's plan */
    int64_t bytes[MEMORY_PARTS], used;
};
/* Every kernel of the engine's plans of a step, in the order in which they run; further micro-steps stand here once. */
struct memory_course {
    struct memory_moment *moment;
    int moments, peak; /* the first moment at which most is used */
    int64_t total;     /* bytes that are allocated */
};
void memory_course(const struct program *program, struct memory_course *ret, struct arena *a);
/* Cuts the course into `columns` of about as many moments each, a graph into one or more; ret[i] is the moment of column i at
 * which most is used. At most as many columns as moments, and no fewer than graphs; returns how many. */
int memory_columns(const struct memory_course *c, int columns, int *ret);

struct memory_tensor {
    const char *name; /* "h.3.attn.c_attn": who made it; of a weight: its own */
    const char *op;   /* who made it: "ATTENTION"; "" for what is there from the beginning */
    int output;       /* which of its outputs */
    int layer;        /* -1: outside of blocks */
    enum memory_part part;
    struct type type; /* of rank 0 where it is none: workspace, packed weights */
    int64_t bytes;
    int64_t offset;  /* in the arena, -1 elsewhere */
    int first, last; /* steps of the moment's plan; 0 and all of them for what is always there */
};
struct memory_tensors {
    struct memory_tensor *tensor; /* largest first */
    int n;
    int64_t bytes; /* of all */
};
/* All that is there at a moment. */
void memory_tensors(const struct program *program, const struct memory_moment *m,
                    struct memory_tensors *ret, struct arena *a);
/* What operators of a block save for the backward pass; layer -1: of what is outside. */
void memory_saved(const struct program *program, int layer, struct memory_tensors *ret,
                  struct arena *a);

/* The same training with something else computed again. */
struct memory_variant {
    enum recompute recompute;
    int64_t total, saved; /* bytes; the second where most is */
    int64_t batch;        /* the largest that fits, if there is a limit; 0: none */
    double flops;         /* of a step */
};
/* None, GELUs, 1, 2, 4 ... blocks at a time, and all of them, and what the configuration has; what computes nothing again is left out.
 * `limit` in bytes, 0: none. `each`, which may be NULL, is called after each of `all` (progress). */
enum { MEMORY_VARIANTS = 16 };
enum status memory_variants(const struct config *c, int64_t vocab, unsigned kinds,
                            const struct target *target, const struct tuning *tuning, int64_t limit,
                            void (*each)(void *user, int done, int all), void *user,
                            struct memory_variant ret[MEMORY_VARIANTS], int *ret_n);

#endif

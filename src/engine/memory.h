/* memory.h - the memory of a training step, derived from its plans: over time, per tensor, and for
 * each value of the key `recompute`. */
#ifndef ENGINE_MEMORY_H
#define ENGINE_MEMORY_H

#include "engine/program.h"
#include "plan/timeline.h"

/* The loss without a backward pass; forward and backward pass with gradients; a whole step. */
enum memory_extent { EXTENT_INFERENCE, EXTENT_BACKWARD, EXTENT_STEP, EXTENTS };
/* "inference", "backward", "step" */
const char *memory_extent_name(enum memory_extent extent);
/* A mask (1 << kind) of the graphs that the extent needs. */
unsigned memory_kinds(const struct config *c, enum memory_extent extent);

/* The memory in use while one kernel runs. */
struct memory_moment {
    enum graph_kind kind;
    int step; /* of the plan of this graph */
    int64_t bytes[MEMORY_PARTS], used;
};
/* Every kernel of a step's plans in the order of execution; GRAPH_MICRO_MORE appears once. */
struct memory_course {
    struct memory_moment *moment;
    int moments, peak; /* the first moment of peak use */
    int64_t total;     /* allocated bytes */
};
void memory_course(const struct program *program, struct memory_course *ret, struct arena *a);
/* Divides the moments into `columns` columns of about equal length, at least one per graph and at
 * most one per moment; returns their number. ret[i]: the moment of peak use in column i. */
int memory_columns(const struct memory_course *c, int columns, int *ret);

struct memory_tensor {
    const char *name; /* the scope of its producer, "h.3.attn.c_attn", or the parameter's name */
    const char *op;   /* its producer: "ATTENTION"; "" if no operator computes it */
    int output;       /* index among the producer's outputs */
    int layer;        /* -1: outside the blocks */
    enum memory_part part;
    struct type type; /* rank 0 if the memory has no type: workspace, packed weights */
    int64_t bytes;
    int64_t offset;  /* in the arena; -1 elsewhere */
    int first, last; /* the tensor is live in these steps of the moment's plan */
};
struct memory_tensors {
    struct memory_tensor *tensor; /* largest first */
    int n;
    int64_t bytes; /* total */
};
void memory_tensors(const struct program *program, const struct memory_moment *m,
                    struct memory_tensors *ret, struct arena *a);
/* The tensors that block `layer` saves for the backward pass; -1: tensors outside the blocks. */
void memory_saved(const struct program *program, int layer, struct memory_tensors *ret,
                  struct arena *a);

/* The same training with another value of `recompute`. */
struct memory_variant {
    enum recompute recompute;
    int64_t total, saved; /* allocated bytes; peak of the bytes saved for the backward pass */
    int64_t batch;        /* the largest batch that fits in the limit; 0: none */
    double flops;         /* per step */
};
/* The variants: none, GELUs, regions of 1, 2, 4 ... all blocks, and the configuration's own value,
 * without variants that change nothing. `limit`: bytes for `batch`, 0: none. `each`: progress, or
 * NULL. */
enum { MEMORY_VARIANTS = 16 };
enum status memory_variants(const struct config *c, int64_t vocab, unsigned kinds,
                            const struct target *target, const struct tuning *tuning, int64_t limit,
                            void (*each)(void *user, int done, int all), void *user,
                            struct memory_variant ret[MEMORY_VARIANTS], int *ret_n);

#endif

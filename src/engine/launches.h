/* launches.h - the kernel launches of a training step, each different one once, and how many of its
 * blocks a multiprocessor (SM) holds. They follow from the plans, the compiled kernels and
 * tuning/occupancy.h; no device is needed. */
#ifndef ENGINE_LAUNCHES_H
#define ENGINE_LAUNCHES_H

#include "backend/backend.h"
#include "engine/program.h"
#include "tuning/occupancy.h"

struct step_launch {
    enum op op; /* of the first node that launches it */
    const char *variant;
    int64_t times;                /* in a training step; of a library: calls of it */
    struct planned_launch launch; /* of a library: all zeros, and the rest is unknown */
    int64_t blocks;               /* of the grid */
    int threads;                  /* of a block */
    bool known;                   /* the next two: registers and the GPU's limits are known */
    struct occupancy occupancy;
    struct occupancy_grid grid;
};

struct step_launches {
    struct step_launch *launch; /* in the order in which a step first launches them */
    int launches, capacity;
};

/* `program` has the plans of training, for a GPU. Compiles their kernels, or reads them from the
 * cache; a kernel that does not compile is the error. */
enum status step_launches_of(const struct program *p, struct step_launches *ret, struct arena *a);

/* The launch of the function `entry` by a node of one of these plans; with NULL the only kernel
 * that the node launches. NULL: there is none, or the node has several different ones. */
const struct step_launch *step_launches_find(const struct step_launches *all, const struct plan *p,
                                             int node, const char *entry, struct arena *a);

#endif

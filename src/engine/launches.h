/* launches.h - the different kernel launches of a training step and their occupancy. Both follow
 * from the plans, the compiled kernels and tuning/occupancy.h, without a device. */
#ifndef ENGINE_LAUNCHES_H
#define ENGINE_LAUNCHES_H

#include "backend/backend.h"
#include "engine/program.h"
#include "tuning/occupancy.h"

struct step_launch {
    enum op op; /* of the first node with this launch */
    const char *variant;
    int64_t times;                /* number of launches, or of library calls, in a training step */
    struct planned_launch launch; /* for a library all zeros, and the fields below are unknown */
    int64_t blocks;               /* per grid */
    int threads;                  /* per block */
    bool known;                   /* `occupancy` and `grid` are known */
    struct occupancy occupancy;
    struct occupancy_grid grid;
};

struct step_launches {
    struct step_launch *launch; /* in the order in which a step first launches them */
    int launches, capacity;
};

/* `p` has the plans of training, for a GPU. Compiles their kernels, or reads them from the cache;
 * fails if a kernel does not compile. */
enum status step_launches_of(const struct program *p, struct step_launches *ret, struct arena *a);

/* The launch of the function `entry` by a node of one of these plans. entry NULL: the only launch
 * of the node. NULL if there is no such launch, or if there are several different ones. */
const struct step_launch *step_launches_find(const struct step_launches *all, const struct plan *p,
                                             int node, const char *entry, struct arena *a);

#endif

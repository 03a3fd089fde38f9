/* random_crew.h - the other ranks of steps on random tokens: each runs every step of rank 0. */
#ifndef MEASURE_RANDOM_CREW_H
#define MEASURE_RANDOM_CREW_H

#include "engine/crew.h"
#include "engine/engine.h"

/* What another rank does around a step with a mark (random_step.mark), in its thread. */
struct random_crew_watch {
    struct plan_hooks (*begin)(void *user, const struct engine *e, int64_t mark);
    void (*end)(void *user, const struct engine *e);
    void *user;
};
struct random_crew_job {
    const struct config *config;
    int64_t vocab;
    struct random_crew_watch watch; /* `begin` is NULL: nothing */
};
/* Starts the other ranks of this configuration, each with an engine and weights of its own, as
 * threads; one rank has none. Rank 0 opens its engine with crew->communicator, then random_step_run
 * runs a step of all. Close the crew before rank 0's engine, also after a failure here.
 * ST_UNSUPPORTED: MPI is requested. `job` and its configuration must outlive the crew. */
enum status random_crew_open(struct crew *crew, const struct random_crew_job *job);

#endif

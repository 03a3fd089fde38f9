/* random_crew.h - all ranks except 0, threads or processes, which run each random-token step of
 * rank 0. */
#ifndef MEASURE_RANDOM_CREW_H
#define MEASURE_RANDOM_CREW_H

#include "engine/crew.h"
#include "engine/engine.h"

/* Each rank except 0 calls these functions, in its thread, before and after a step with a mark
 * (random_step.mark). Processes do not call them. */
struct random_crew_watch {
    struct plan_hooks (*begin)(void *user, const struct engine *e, int64_t mark);
    void (*end)(void *user, const struct engine *e);
    void *user;
};
struct random_crew_job {
    const struct config *config;
    int64_t vocab;
    struct random_crew_watch watch; /* not used if `begin` is NULL */
};
/* On a process of MPI other than that of rank 0: runs the steps of rank 0, then ends the process.
 * Returns only a failure that this rank has to report. */
enum status random_crew_follow(struct crew *crew, const struct random_crew_job *job);
/* Starts the other ranks of this configuration as threads, each with its own engine and weights;
 * the crew is empty if there is one rank. Rank 0 opens its engine with crew->communicator; then
 * random_step_run runs a step on all ranks. Later, even if this function fails, call crew_end,
 * engine_close of rank 0 and crew_close, in this order. ST_UNSUPPORTED: the configuration wants MPI
 * processes as ranks. `job` and its configuration must outlive the crew. */
enum status random_crew_open(struct crew *crew, const struct random_crew_job *job);

#endif

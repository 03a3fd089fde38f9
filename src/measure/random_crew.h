/* random_crew.h - the other ranks of steps on random tokens: each runs every step of rank 0. */
#ifndef MEASURE_RANDOM_CREW_H
#define MEASURE_RANDOM_CREW_H

#include "config/config.h"
#include "engine/crew.h"

/* Starts the other ranks of this configuration, each with an engine and weights of its own, as
 * threads; one rank has none. Rank 0 opens its engine with crew->communicator, then random_step_run
 * runs a step of all. Close the crew before rank 0's engine, also after a failure here.
 * ST_UNSUPPORTED: MPI is requested. `job` and its configuration must outlive the crew. */
struct random_crew_job {
    const struct config *config;
    int64_t vocab;
};
enum status random_crew_open(struct crew *crew, const struct random_crew_job *job);

#endif

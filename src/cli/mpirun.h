/* mpirun.h - starts this command once for each rank. */
#ifndef CLI_MPIRUN_H
#define CLI_MPIRUN_H

#include "base/arena.h"
#include "engine/crew.h"

struct config;

/* This program and the command line of this process, which all ranks must have. */
struct crew_program mpirun_program(struct arena *a);
/* Whether this command has to start its ranks by mpirun: ranks_by says so, or leaves the choice and
 * MPI and enough devices are there. ST_UNSUPPORTED: what ranks_by=mpi needs is missing. */
enum status mpirun_is_needed(const struct config *c, bool *ret);
/* Whether mpirun is in a folder of PATH. */
bool mpirun_is_there(void);
/* Runs the command line of this process in `ranks` processes by mpirun, and ends with its exit
 * code. Signals that ask to stop go to rank 0, which saves. Returns only with a failure. */
enum status mpirun_run(int64_t ranks, struct arena *a);
/* Of rank 0: lets the process that started mpirun know where to send signals. */
void mpirun_greet(void);

#endif

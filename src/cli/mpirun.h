/* mpirun.h - starts this command once for each rank. */
#ifndef CLI_MPIRUN_H
#define CLI_MPIRUN_H

#include "base/arena.h"

/* The words of the command line of this process, one space between them. */
const char *mpirun_words(struct arena *a);
/* Whether mpirun is in a folder of PATH. */
bool mpirun_is_there(void);
/* Replaces this process by mpirun, which runs the same command line in `ranks` processes. Returns
 * only with a failure. */
enum status mpirun_exec(int64_t ranks, struct arena *a);

#endif

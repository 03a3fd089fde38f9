/* memory_check.h - checks whether a problem fits into memory before the memory is allocated. */
#ifndef LAB_MEMORY_CHECK_H
#define LAB_MEMORY_CHECK_H

#include "lab/trial.h"

/* ST_UNSUPPORTED: the free memory does not suffice for `sets` sets of tensors, `extra` bytes for
 * each set, scratch, and the solution in double precision. */
enum status memory_check_problem(const struct lab_bench *b, const struct lab_problem *p, int sets,
                                 int64_t extra, struct arena *a);
/* ST_UNSUPPORTED: `needed` bytes are more than 90 % of the `free` bytes (-1: unknown, no error).
 * The message contains `what`, such as "copy at n 4096", and `where`, such as "memory". */
enum status memory_check(const char *what, const char *where, double needed, int64_t free);

#endif

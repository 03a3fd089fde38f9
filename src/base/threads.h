/* threads.h - how many threads work, OpenMP underneath. */
#ifndef BASE_THREADS_H
#define BASE_THREADS_H

#include "base/base.h"

/* From here on OpenMP regions of this thread have `n` threads; 0: threads_available(). */
void threads_set(int64_t n);
/* How many were set; before any threads_set, threads_available(). */
int64_t threads_count(void);
/* As many as this process may use: its affinity mask and the cpu limit of its control groups. */
int64_t threads_available(void);
/* The cpu limit of control groups in whole processors, 0 if there is none: `groups` is the text of
 * /proc/self/cgroup and `root` where they are mounted (/sys/fs/cgroup). */
int64_t threads_group_limit(const char *groups, const char *root);

#endif

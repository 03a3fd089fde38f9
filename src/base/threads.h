/* threads.h - how many threads work, OpenMP underneath. */
#ifndef BASE_THREADS_H
#define BASE_THREADS_H

#include "base/base.h"

/* From here on OpenMP regions of this thread have `n` threads; 0: threads_available(). More than those are
 * taken with a warning. */
void threads_set(int64_t n);
/* How many were set; before any threads_set, threads_available(). */
int64_t threads_count(void);
/* One for each core that this process may use, by its affinity mask and the cpu limit of its control
 * groups: the second thread of a core has no vector unit of its own, and at each barrier waits, and lets wait. */
int64_t threads_available(void);
/* Lets this thread run on all processors of the process again where OpenMP bound it to one place: a thread
 * that it starts would else be left with that one. */
void threads_unbind(void);
/* Cores among `n` logical processors, in rising order; `root` is /sys/devices/system/cpu. A processor
 * whose core is not told is one. */
int64_t threads_cores(const int *processor, int n, const char *root);
/* The cpu limit of control groups in whole processors, 0 if there is none: `groups` is the text of
 * /proc/self/cgroup and `root` where they are mounted (/sys/fs/cgroup). */
int64_t threads_group_limit(const char *groups, const char *root);

/* What the threads of parallel regions did while they were watched. A region is seen where its threads call
 * threads_begin and threads_end, and the one that opened it threads_joined behind it; where nobody watches, these
 * cost a comparison. */
struct threads_watch {
    int64_t regions;
    int64_t busy_ns;    /* of all threads together */
    int64_t busiest_ns; /* in each region the one that worked longest */
    bool unseen;        /* a library had regions of its own */
};
/* From here on regions that this thread opens are added to `w`; NULL: nobody watches. One at a time. */
void threads_watch(struct threads_watch *w);
int64_t threads_begin(void);
void threads_end(int64_t begun);
void threads_joined(void);
/* Whoever calls a library that shares its work by itself. */
void threads_unseen(void);

#endif

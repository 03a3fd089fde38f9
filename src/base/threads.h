/* threads.h - the number of worker threads (OpenMP). */
#ifndef BASE_THREADS_H
#define BASE_THREADS_H

#include "base/base.h"

#include <pthread.h>

/* Sets the number of threads of the OpenMP regions that this thread opens; 0: OMP_NUM_THREADS if it
 * is set, else threads_available(). OMP_THREAD_LIMIT bounds both. Warns if the number exceeds
 * threads_available(). */
void threads_set(int64_t n);
/* The number in use; before any threads_set, that of threads_set(0). */
int64_t threads_count(void);
/* The number that OMP_NUM_THREADS asks for; 0: it is not set. */
int64_t threads_asked(void);
/* One thread for each core that this process may use, by its affinity mask and control groups. A
 * second hardware thread shares the vector units and delays every barrier: not counted. */
int64_t threads_available(void);
/* The same by the system alone: OpenMP, which may have bound this thread to one place, is not
 * asked. Allocates nothing, so it may run before main and before constructors. */
int64_t threads_allowed(void);
/* Lets this thread run on all processors of the process again after OpenMP bound it to one place.
 * Call it before starting a child process, which would otherwise inherit the single place. */
void threads_unbind(void);
/* Number of distinct cores among `n` logical processors, given in ascending order; `root` is
 * /sys/devices/system/cpu. A processor of unknown topology counts as one core. */
int64_t threads_cores(const int *processor, int n, const char *root);
/* The cpu limit of control groups in whole processors, 0 if there is none. `groups` is the text of
 * /proc/self/cgroup, and `root` the mount point of the groups (/sys/fs/cgroup). */
int64_t threads_group_limit(const char *groups, const char *root);

/* Starts a thread that gets no signals; false: the system has no more. */
bool threads_start(pthread_t *ret, void *(*work)(void *user), void *user);

/* Measures the work of threads in parallel regions: each calls threads_begin and threads_end, then
 * the opening thread threads_joined. While disabled, each is one pointer check. */
struct threads_span {
    int thread;
    int64_t start_ns, end_ns;
};
struct threads_watch {
    int64_t regions;
    int64_t busy_ns;    /* sum over all threads */
    int64_t busiest_ns; /* sum over regions of the busiest thread's time */
    bool unseen;        /* a library opened regions of its own */
    /* When each thread worked in these regions; NULL: not recorded. What exceeds `capacity` is
     * lost. */
    struct threads_span *span;
    int64_t spans, capacity;
};
/* Adds the regions that this thread opens from now on to `w`, the one watch; NULL disables it. */
void threads_watch(struct threads_watch *w);
int64_t threads_begin(void);
void threads_end(int64_t begun);
void threads_joined(void);
/* Call it when calling a library that creates its own parallel regions. */
void threads_unseen(void);

#endif

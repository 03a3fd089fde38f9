/* threads.h - the number of worker threads (OpenMP). */
#ifndef BASE_THREADS_H
#define BASE_THREADS_H

#include "base/base.h"

#include <pthread.h>

/* Sets the number of threads of the OpenMP regions that this thread opens; 0: OMP_NUM_THREADS, or
 * threads_available() if it is not set. OMP_THREAD_LIMIT bounds the number. Warns if the number
 * exceeds threads_available(). */
void threads_set(int64_t n);
/* The number in use; before any threads_set, the number that threads_set(0) would set. */
int64_t threads_count(void);
/* OMP_NUM_THREADS; 0: not set. */
int64_t threads_asked(void);
/* The number of cores that this process may use, by its affinity mask and control groups. Second
 * hardware threads do not count: they share the vector units and delay every barrier. */
int64_t threads_available(void);
/* Like threads_available, but without OpenMP's places: OpenMP may have bound this thread to one
 * place. Allocates nothing, so it may run before main and before constructors. */
int64_t threads_allowed(void);
/* Lets this thread run on all processors of the process again after OpenMP bound it to one place.
 * Call it before starting a child process, which would otherwise inherit the single place. */
void threads_unbind(void);
/* How many threads a program should start now: threads_available(), less what other programs have
 * kept busy for about a minute, at least one. A thread that has to share its core delays all others
 * at every barrier. Takes 0.1 s on a busy machine, no time on an idle one. */
int64_t threads_free(void);
/* The same for `cores` cores of `processors` logical processors, of which other programs have
 * taken `taken`. */
int64_t threads_beside(int64_t cores, int64_t processors, double taken);
/* Seconds since boot in which these `n` logical processors worked, by the text of /proc/stat. */
double threads_worked(const char *stat, const int *processor, int n);
/* Number of distinct cores among `n` logical processors, given in ascending order; `root` is
 * /sys/devices/system/cpu. A processor of unknown topology counts as one core. */
int64_t threads_cores(const int *processor, int n, const char *root);
/* The CPU limit of control groups in whole processors, 0 if there is none. `groups` is the text of
 * /proc/self/cgroup, and `root` the mount point of the groups (/sys/fs/cgroup). */
int64_t threads_group_limit(const char *groups, const char *root);

/* Starts a thread that receives no signals; false if the system cannot start another thread. */
bool threads_start(pthread_t *ret, void *(*work)(void *user), void *user);

/* Measures the busy time of threads in parallel regions. Each thread calls threads_begin and
 * threads_end; then the opening thread calls threads_joined. A disabled call is a pointer check. */
struct threads_span {
    int thread;
    int64_t start_ns, end_ns;
};
struct threads_watch {
    int64_t regions;
    int64_t busy_ns;    /* sum over all threads */
    int64_t busiest_ns; /* sum over regions of the busiest thread's time */
    bool unseen;        /* a library opened parallel regions that were not measured */
    /* When each thread worked; NULL: not recorded. Spans beyond `capacity` are dropped. */
    struct threads_span *span;
    int64_t spans, capacity;
};
/* From now on, adds the regions that this thread opens to `w`, the only watch; NULL disables it. */
void threads_watch(struct threads_watch *w);
int64_t threads_begin(void);
void threads_end(int64_t begun);
void threads_joined(void);
/* Call it when calling a library that creates its own parallel regions. */
void threads_unseen(void);

#endif

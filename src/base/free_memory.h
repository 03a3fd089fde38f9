/* free_memory.h - host memory that the program can still allocate. */
#ifndef BASE_FREE_MEMORY_H
#define BASE_FREE_MEMORY_H

#include "base/base.h"

/* The free memory under the tightest limit of one kind. */
struct memory_limit {
    int64_t bytes; /* -1: unknown */
    /* Which limit it is, for a sentence: "under memory.max of the control group /job, 400.0 MiB",
     * "on this machine". "" if `bytes` is -1. */
    char name[256];
};

/* Limits on pages count memory when it is touched, limits on addresses when it is allocated. A
 * program allocates more than it touches, so either limit may be the tighter one. */
struct free_memory {
    struct memory_limit pages, addresses;
};
#define FREE_MEMORY_UNKNOWN                      \
    {                                            \
        .pages.bytes = -1, .addresses.bytes = -1 \
    }

/* Reads MemAvailable; the commit limit if the machine does not overcommit (vm.overcommit_memory=2);
 * RLIMIT_AS and RLIMIT_DATA; and the control groups of the process with all their ancestors. Swap
 * does not count as free: a training that swaps is thousands of times slower. */
struct free_memory free_memory_now(void);
/* The smaller of `pages` and `addresses`. */
const struct memory_limit *free_memory_least(const struct free_memory *f);
/* The bytes of the smaller limit of free_memory_now. */
int64_t free_memory_bytes(void);

/* The parts of free_memory_now. Each lowers the limits in `ret`, which must be initialized.
 *
 * Limits of control groups: memory.max and memory.high (version 2), memory.limit_in_bytes and
 * memory.memsw.limit_in_bytes (version 1). `groups` is the text of /proc/self/cgroup, and `root`
 * the mount point of the groups (/sys/fs/cgroup). Cached file pages and reclaimable kernel memory
 * count as free, because the kernel frees them before it kills a process. */
void free_in_groups(const char *groups, const char *root, struct free_memory *ret);
/* MemAvailable from the text of /proc/meminfo, and the commit limit if `strict`. */
void free_in_meminfo(const char *meminfo, bool strict, struct free_memory *ret);
/* Limits of the process; `status` is the text of /proc/self/status. */
void free_in_process(const char *status, struct free_memory *ret);

#endif

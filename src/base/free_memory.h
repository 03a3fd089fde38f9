/* free_memory.h - host memory that the program can still allocate. */
#ifndef BASE_ROOM_H
#define BASE_ROOM_H

#include "base/base.h"

/* The least that any limit of a kind leaves. */
struct memory_limit {
    int64_t bytes; /* -1: unknown */
    /* Which limit it is, for a sentence: "under memory.max of the control group /job, 400.0 MiB",
     * "on this machine". "" if `bytes` is -1. */
    char name[256];
};

/* Limits of pages count memory once it is touched, limits of addresses count it before: a program
 * needs more of these, so one may lack where the other does not. */
struct free_memory {
    struct memory_limit pages, addresses;
};
#define FREE_MEMORY_UNKNOWN                      \
    {                                            \
        .pages.bytes = -1, .addresses.bytes = -1 \
    }

/* Asks MemAvailable and, where the machine does not overcommit (vm.overcommit_memory=2), its commit
 * limit; RLIMIT_AS and RLIMIT_DATA; and the control groups of the process with all their ancestors.
 * Swap does not count as free: a training that is swapped out is thousands of times slower. */
struct free_memory free_memory_now(void);
/* The smaller limit of the two. */
const struct memory_limit *free_memory_least(const struct free_memory *f);
/* Its bytes now. */
int64_t free_memory_bytes(void);

/* Parts of it; `ret` must be initialized and keeps the smaller values.
 * Limits of control groups: memory.max and memory.high (version 2), memory.limit_in_bytes and
 * memory.memsw.limit_in_bytes (version 1). `groups` is the text of /proc/self/cgroup, and `root`
 * the mount point of the groups (/sys/fs/cgroup). Cached file pages and what the kernel calls
 * reclaimable count as free, since it frees them before it kills. */
void free_in_groups(const char *groups, const char *root, struct free_memory *ret);
/* MemAvailable from the text of /proc/meminfo, and with `strict` the commit limit. */
void free_in_meminfo(const char *meminfo, bool strict, struct free_memory *ret);
/* Limits of the process; `status` is the text of /proc/self/status. */
void free_in_process(const char *status, struct free_memory *ret);

#endif

/* free_memory.h - host memory that the program can still allocate. */
#ifndef BASE_ROOM_H
#define BASE_ROOM_H

#include "base/base.h"

/* Free bytes: MemAvailable of the machine, limited by the memory limits of the process's control
 * groups. -1 if the system does not report it. */
int64_t free_memory_bytes(void);
/* Free bytes under the memory limits of control groups, or -1 if there is no limit. `groups` is the
 * text of /proc/self/cgroup, and `root` the mount point of the groups (/sys/fs/cgroup). Inactive
 * cached file pages count as free because the system reclaims them. */
int64_t free_in_groups(const char *groups, const char *root);
/* MemAvailable from the text of /proc/meminfo, in bytes; -1 if it is missing. */
int64_t free_in_meminfo(const char *meminfo);

#endif

/* room.h - memory that a program may still take before the system has to say no. */
#ifndef BASE_ROOM_H
#define BASE_ROOM_H

#include "base/base.h"

/* Bytes that are free: what the machine has (MemAvailable), and not more than the memory limits of this
 * process's control groups leave. -1 where the system does not say. */
int64_t room_bytes(void);
/* What the memory limits of control groups leave, -1 if there is none: `groups` is the text of
 * /proc/self/cgroup and `root` where they are mounted (/sys/fs/cgroup). Cached pages of files that
 * nobody used lately count as free, as the system would give them up. */
int64_t room_in_groups(const char *groups, const char *root);
/* MemAvailable out of the text of a /proc/meminfo, in bytes; -1 if it is not there. */
int64_t room_in_meminfo(const char *meminfo);

#endif

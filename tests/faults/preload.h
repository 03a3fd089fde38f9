/* Inside the preloaded library. */
#pragma once
#include "faults.h"

#include <stdbool.h>

/* A system call whose instruction lies in this library, which the filter lets pass. Returns the
 * result or -errno. */
long raw_call(long number, long a, long b, long c, long d, long e, long f);

/* Counts a call. Returns 0: go on; an errno; or FAULTS_SHORT. `where`: its path, or "". */
int faults_decide(enum faults_call call, const char *where);

bool faults_active(void);

/* Joins a path of a system call with the folder of `fd`; false if it is too long or unknown. */
bool path_full(int fd, const char *path, char ret[4096]);
bool path_of_fd(int fd, char ret[4096]);
bool path_is_watched(const char *path);

/* Runs the system call and, if it changed something, records it. */
long record_call(long number, const long a[6]);
bool record_is_on(void);
void record_open(const char *path);

/* Finds the libraries whose allocations count. */
void memory_start(void);

/* Writes for each allocation that counts a hash of its stack; open returns false if it cannot. */
bool stacks_open(const char *path);
void stacks_add(uint64_t n);

/* set_lock.h - lets one process at a time write a data set.
 *
 * The lock is a file beside the set, DIR/.NAME.lock, locked with flock and removed by its holder. A
 * process that is killed leaves the file but not the lock. */
#ifndef DATA_SET_LOCK_H
#define DATA_SET_LOCK_H

#include "base/base.h"

struct set_lock {
    int fd;
    char path[1100];
};

/* Waits up to `wait_ms` for another holder, then returns ST_USAGE. `data_dir` must exist. */
enum status set_lock_take(struct set_lock *l, const char *data_dir, const char *name, int wait_ms);
/* Keeps the message of an earlier error. */
void set_lock_release(struct set_lock *l);

#endif

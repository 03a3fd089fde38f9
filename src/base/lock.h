/* lock.h - locks between processes: flock of a folder.
 *
 * Only the holder of the lock creates and removes temporary files in the folder. The system
 * releases the lock of a killed process. On file systems without locks, every lock succeeds. */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include "base/base.h"

struct lock {
    int fd;           /* of the folder. A zeroed struct, or one with fd -1, holds no lock. */
    const char *path; /* owned by the caller */
};

/* Opens a folder without locking it, so that lock_check can tell whether it was moved. */
enum status lock_watch(struct lock *l, const char *folder);
/* Opens and locks a folder. ST_USAGE if another process keeps the lock longer than `wait_ms`. */
enum status lock_take(struct lock *l, const char *folder, int wait_ms);
/* ST_ABSENT if the path no longer leads to the folder: the message says where it was moved, or that
 * it was deleted. ST_OK if the check itself fails. */
enum status lock_check(const struct lock *l);
/* The present path of the folder; false if the folder was deleted or its path is unknown. */
bool lock_present_path(const struct lock *l, char *ret_path, int size);
/* Has no effect on a lock that is released already. */
void lock_release(struct lock *l);

#endif

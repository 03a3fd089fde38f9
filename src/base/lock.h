/* lock.h - the one kind of lock: flock of a folder.
 *
 * Its holder is the only one who makes and removes what has a temporary name in the folder. The
 * system releases the lock of a process that is killed. File systems without locks are accepted. */
#ifndef BASE_LOCK_H
#define BASE_LOCK_H

#include "base/base.h"

struct lock {
    int fd;           /* of the folder; a zeroed struct holds none, nor does one with -1 */
    const char *path; /* the caller's */
};

/* Opens a folder without a lock, so that lock_check can tell whether its path still leads to it. */
enum status lock_watch(struct lock *l, const char *folder);
/* Also locks it. ST_USAGE if another process has the lock for longer than `wait_ms`. */
enum status lock_take(struct lock *l, const char *folder, int wait_ms);
/* ST_ABSENT if the path does not lead to the folder any more: the message says where it was moved,
 * or that it was deleted. An error says nothing about where it is, so then ST_OK. */
enum status lock_check(const struct lock *l);
/* The path on which the folder is now; false if it was deleted or that is unknown. */
bool lock_now(const struct lock *l, char *ret_path, int size);
/* No effect if it is released already. */
void lock_release(struct lock *l);

#endif

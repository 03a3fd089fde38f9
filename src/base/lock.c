#include "base/lock.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { POLL_MS = 10 };

enum status lock_watch(struct lock *l, const char *folder)
{
    *l = (struct lock){.fd = file_open_folder(folder), .path = folder};
    return l->fd >= 0 ? ST_OK : file_fail(folder, errno);
}

enum status lock_take(struct lock *l, const char *folder, int wait_ms)
{
    for (;; wait_ms -= POLL_MS) {
        TRY(lock_watch(l, folder));
        bool busy = flock(l->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        /* The previous holder may have removed the folder between the open and the lock. */
        enum status st = busy ? fail(ST_USAGE,
                                     "another process is writing in %s: try again when it has "
                                     "ended",
                                     folder)
                              : lock_check(l);
        if (st == ST_OK) return ST_OK;
        lock_release(l);
        if (wait_ms <= 0) return st;
        usleep(POLL_MS * 1000);
    }
}

bool lock_present_path(const struct lock *l, char *ret_path, int size)
{
    char link[64];
    struct stat info;
    snprintf(link, sizeof link, "/proc/self/fd/%d", l->fd);
    ssize_t n = readlink(link, ret_path, (size_t)size - 1);
    ret_path[n > 0 ? n : 0] = '\0';
    return n > 0 && n < size - 1 && fstat(l->fd, &info) == 0 && info.st_nlink > 0;
}

enum status lock_check(const struct lock *l)
{
    struct stat here, there;
    char now[4096];
    if (fstat(l->fd, &here) != 0) return ST_OK;
    if (stat(l->path, &there) != 0) {
        if (errno != ENOENT && errno != ENOTDIR) return ST_OK;
    } else if (here.st_dev == there.st_dev && here.st_ino == there.st_ino) {
        return ST_OK;
    }
    if (lock_present_path(l, now, sizeof now))
        return fail(ST_ABSENT, "%s was moved to %s while it was in use", l->path, now);
    return fail(ST_ABSENT, "%s was deleted while it was in use", l->path);
}

void lock_release(struct lock *l)
{
    if (l->path && l->fd >= 0) close(l->fd);
    *l = (struct lock){.fd = -1};
}

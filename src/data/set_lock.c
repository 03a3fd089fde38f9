#include "data/set_lock.h"

#include "base/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { POLL_MS = 10 };

/* Whether the file is still that of the name. Not if the holder before removed it after it was
 * opened here, because then another process may lock a new file of this name. */
static enum status is_current(int fd, const char *path, bool *ret)
{
    struct stat held, named;
    if (fstat(fd, &held) != 0) return dir_fail(NULL, path, errno);
    bool there = stat(path, &named) == 0;
    if (!there && errno != ENOENT) return dir_fail(NULL, path, errno);
    *ret = there && held.st_dev == named.st_dev && held.st_ino == named.st_ino;
    return ST_OK;
}

/* Tries once. *ret_fd is -1 if the file was removed meanwhile or, `ret_busy`, is locked. */
static enum status try_lock(const char *path, int *ret_fd, bool *ret_busy)
{
    bool current = false;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (fd < 0) return dir_fail(NULL, path, errno);
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size) {
        close(fd);
        return fail(ST_USAGE, "%s is not a lock of Strobe's: move it away", path);
    }
    /* File systems without locks are accepted. */
    *ret_busy = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    enum status st = *ret_busy ? ST_OK : is_current(fd, path, &current);
    *ret_fd = current ? fd : -1;
    if (!current) close(fd);
    return st;
}

enum status set_lock_take(struct set_lock *l, const char *data_dir, const char *name, int wait_ms)
{
    bool busy;
    if (snprintf(l->path, sizeof l->path, "%s/.%s.lock", data_dir, name) >= (int)sizeof l->path)
        return fail(ST_USAGE, "%.60s...: the path is too long", data_dir);
    for (;;) {
        TRY(try_lock(l->path, &l->fd, &busy));
        if (l->fd >= 0) return ST_OK;
        if (!busy) continue;
        if (wait_ms <= 0)
            return fail(ST_USAGE, "another process is writing %s/%s: try again when it has ended",
                        data_dir, name);
        usleep(POLL_MS * 1000);
        wait_ms -= POLL_MS;
    }
}

void set_lock_release(struct set_lock *l)
{
    unlink(l->path);
    close(l->fd);
}

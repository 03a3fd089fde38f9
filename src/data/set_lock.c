#include "data/set_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { POLL_MS = 10 };

/* False: the holder before removed the file after it was opened here, so that another process may
 * lock a new file of this name. */
static bool is_current(int fd, const char *path)
{
    struct stat held, named;
    return fstat(fd, &held) == 0 && stat(path, &named) == 0 && held.st_dev == named.st_dev &&
           held.st_ino == named.st_ino;
}

enum status set_lock_take(struct set_lock *l, const char *data_dir, const char *name, int wait_ms)
{
    if (snprintf(l->path, sizeof l->path, "%s/.%s.lock", data_dir, name) >= (int)sizeof l->path)
        return fail(ST_USAGE, "%.60s...: the path is too long", data_dir);
    for (;;) {
        int fd = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
        if (fd < 0) return fail(ST_IO, "%s: %s", l->path, strerror(errno));
        /* File systems without locks are accepted. */
        bool busy = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (!busy && is_current(fd, l->path)) {
            l->fd = fd;
            return ST_OK;
        }
        close(fd);
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

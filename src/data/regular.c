#include "data/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *kind_of(mode_t mode)
{
    return S_ISDIR(mode)    ? "a directory"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISSOCK(mode) ? "a socket"
                            : "a device";
}

/* O_NONBLOCK: opening a pipe without a writer would wait for one. */
enum status regular_open(const char *path, int *ret_fd, int64_t *ret_bytes)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &info) != 0) {
        enum status st = fail(ST_IO, "%s: %s", path, strerror(errno));
        if (fd >= 0) close(fd);
        return st;
    }
    if (!S_ISREG(info.st_mode)) {
        close(fd);
        return fail(ST_IO, "%s is %s, not a file: copy what it holds to a file", path,
                    kind_of(info.st_mode));
    }
    *ret_fd = fd;
    *ret_bytes = (int64_t)info.st_size;
    return ST_OK;
}

enum status regular_check(const char *path, int64_t bytes_most)
{
    int fd;
    int64_t bytes;
    TRY(regular_open(path, &fd, &bytes));
    close(fd);
    if (bytes <= bytes_most) return ST_OK;
    return fail(ST_FORMAT, "%s has %lld bytes, more than the %lld that are possible", path,
                (long long)bytes, (long long)bytes_most);
}

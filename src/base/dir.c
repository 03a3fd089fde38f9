#include "base/dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 3 };

int dir_fd(const struct dir *at)
{
    return at && at->fd >= 0 ? at->fd : AT_FDCWD;
}

const char *dir_path(const struct dir *at, const char *name, char buffer[DIR_NAME])
{
    if (!at) return name;
    if (!strcmp(name, ".")) return at->path;
    int n = snprintf(buffer, DIR_NAME, "%s/%s", at->path, name);
    BUG_IF(n >= DIR_NAME, "%.60s: a name of %zu bytes in a folder", name, strlen(name));
    return buffer;
}

const char *dir_name(const struct dir *at, const char *name, char buffer[DIR_NAME])
{
    return at && at->fd >= 0 ? name : dir_path(at, name, buffer);
}

enum status dir_fail(const struct dir *at, const char *name, int error)
{
    char buffer[DIR_NAME];
    errno = error;
    enum status st = fail(ST_IO, "%s: %s", dir_path(at, name, buffer), strerror(error));
    errno = error;
    return st;
}

enum status dir_by_path(struct dir *d, const char *path)
{
    if (strlen(path) > DIR_LONGEST)
        return fail(ST_USAGE, "%.60s...: the path is longer than %d bytes", path, DIR_LONGEST);
    strcpy(d->path, path);
    /* a slash at the end would follow a link */
    for (size_t n = strlen(d->path); n > 1 && d->path[n - 1] == '/';) d->path[--n] = '\0';
    d->fd = -1;
    return ST_OK;
}

enum status dir_open(struct dir *d, const char *path)
{
    TRY(dir_by_path(d, path));
    d->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return d->fd >= 0 ? ST_OK : dir_fail(NULL, path, errno);
}

void dir_close(struct dir *d)
{
    if (d->fd >= 0) close(d->fd);
    d->fd = -1;
}

bool dir_now(const struct dir *d, char *ret_path, int size)
{
    char link[64];
    struct stat info;
    snprintf(link, sizeof link, "/proc/self/fd/%d", d->fd);
    ssize_t n = readlink(link, ret_path, (size_t)size - 1);
    ret_path[n > 0 ? n : 0] = '\0';
    return n > 0 && n < size - 1 && fstat(d->fd, &info) == 0 && info.st_nlink > 0;
}

enum status dir_check(const struct dir *d)
{
    struct stat here, there;
    /* An error other than a missing folder says nothing about where the folder is. */
    if (fstat(d->fd, &here) != 0) return ST_OK;
    if (stat(d->path, &there) != 0) {
        if (errno != ENOENT && errno != ENOTDIR) return ST_OK;
    } else if (here.st_dev == there.st_dev && here.st_ino == there.st_ino) {
        return ST_OK;
    }
    char now[4096];
    if (dir_now(d, now, sizeof now))
        return fail(ST_IO, "%s was moved to %s while it was in use", d->path, now);
    return fail(ST_IO, "%s was deleted while it was in use", d->path);
}

enum status dir_has(const struct dir *at, const char *name, bool *ret_has)
{
    char buffer[DIR_NAME];
    struct stat info;
    int error = 0;
    for (int i = 0; i < TRIES; i++) {
        if (fstatat(dir_fd(at), dir_name(at, name, buffer), &info, AT_SYMLINK_NOFOLLOW) == 0) {
            *ret_has = true;
            return ST_OK;
        }
        error = errno;
        if (error != ENOENT) continue;
        *ret_has = false;
        return ST_OK;
    }
    return dir_fail(at, name, error);
}

static int open_dir(const struct dir *at, const char *name, int flags)
{
    char buffer[DIR_NAME];
    return openat(dir_fd(at), dir_name(at, name, buffer),
                  O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
}

/* Takes over the descriptor. Returns an errno, or 0. */
static int list(int fd, struct arena *a, struct dir_entries *ret)
{
    int capacity = 0;
    *ret = (struct dir_entries){0};
    DIR *stream = fdopendir(fd);
    if (!stream) {
        int error = errno;
        close(fd);
        return error;
    }
    for (;;) {
        errno = 0;
        struct dirent *e = readdir(stream);
        if (!e) break;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        ARENA_GROW(a, ret->name, ret->count, capacity);
        ret->name[ret->count++] = arena_strdup(a, e->d_name);
    }
    int error = errno;
    closedir(stream);
    return error;
}

enum status dir_list(const struct dir *at, const char *name, struct arena *a,
                     struct dir_entries *ret)
{
    int error = 0;
    for (int i = 0; i < TRIES; i++) {
        int fd = open_dir(at, name, 0);
        error = fd < 0 ? errno : list(fd, a, ret);
        if (!error) return ST_OK;
        if (fd < 0 && error == ENOENT) {
            *ret = (struct dir_entries){.missing = true};
            return ST_OK;
        }
    }
    return dir_fail(at, name, error);
}

enum status dir_sync(const struct dir *at, const char *name)
{
    int fd = open_dir(at, name, 0);
    if (fd < 0) return dir_fail(at, name, errno);
    /* Some file systems cannot sync a directory and return EINVAL; that is not an error. */
    int error = fsync(fd) != 0 && errno != EINVAL ? errno : 0;
    close(fd);
    return error ? dir_fail(at, name, error) : ST_OK;
}

enum status dir_sync_parent(const struct dir *at, const char *name)
{
    const char *slash = strrchr(name, '/');
    if (!slash) return dir_sync(at, ".");
    char parent[DIR_NAME];
    int n = snprintf(parent, sizeof parent, "%.*s", (int)(slash - name), name);
    if (n >= DIR_NAME) return dir_fail(at, name, ENAMETOOLONG);
    return dir_sync(at, n ? parent : "/");
}

enum status dir_make(const struct dir *at, const char *name)
{
    char buffer[DIR_NAME];
    if (mkdirat(dir_fd(at), dir_name(at, name, buffer), 0777) != 0)
        return errno == EEXIST ? ST_OK : dir_fail(at, name, errno);
    enum status st = dir_sync_parent(at, name);
    return st == ST_OK || errno == EACCES ? ST_OK : st; /* one that may not be read has no sync */
}

/* Removes what is in an open folder; takes over the descriptor. Returns an errno, or 0. */
static int empty(int fd)
{
    DIR *stream = fdopendir(fd);
    if (!stream) {
        int error = errno;
        close(fd);
        return error;
    }
    int error = 0;
    while (!error) {
        errno = 0;
        struct dirent *e = readdir(stream);
        error = errno;
        if (!e) break;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        if (unlinkat(dirfd(stream), e->d_name, 0) == 0 || errno == ENOENT) continue;
        error = errno;
        int inner =
            error != EISDIR && error != EPERM
                ? -1
                : openat(dirfd(stream), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (inner < 0) break;
        error = empty(inner);
        if (!error && unlinkat(dirfd(stream), e->d_name, AT_REMOVEDIR) != 0) error = errno;
    }
    closedir(stream);
    return error;
}

enum status dir_remove(const struct dir *at, const char *name)
{
    char buffer[DIR_NAME];
    int fd = open_dir(at, name, O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT) return ST_OK;
    if (fd < 0 && (errno == ENOTDIR || errno == ELOOP)) {
        enum status st = fail(ST_IO, "%s: is not a directory", dir_path(at, name, buffer));
        errno = ENOTDIR;
        return st;
    }
    int error = fd < 0 ? errno : empty(fd);
    if (!error && unlinkat(dir_fd(at), dir_name(at, name, buffer), AT_REMOVEDIR) != 0)
        error = errno;
    return error && error != ENOENT ? dir_fail(at, name, error) : ST_OK;
}

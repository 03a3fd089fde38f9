#include "base/file.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

enum status file_check_place(const char *key, const char *path)
{
    if (path[0] != '~') return ST_OK;
    return fail(ST_USAGE,
                "%s = %s: only a shell expands ~; write the whole path, or ./%s for a file or "
                "folder of that name",
                key, path, path);
}

bool file_is_dir(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0) return false;
    errno = ENOTDIR;
    return S_ISDIR(info.st_mode);
}

bool file_peek(const char *path, char *text, int size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, text, (size_t)size - 1);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* errno stays for the caller through what cleans up. */
static enum status close_and_fail(int fd, const struct dir *at, const char *name, int error)
{
    close(fd);
    return dir_fail(at, name, error);
}

/* O_NONBLOCK keeps a FIFO without a writer from blocking; it has no effect on regular files. */
enum status file_open_at(const struct dir *at, const char *name, int *ret_fd, int64_t *ret_size)
{
    char buffer[DIR_NAME];
    struct stat info;
    int fd = openat(dir_fd(at), dir_name(at, name, buffer), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return dir_fail(at, name, errno);
    if (fstat(fd, &info) != 0) return close_and_fail(fd, at, name, errno);
    if (!S_ISREG(info.st_mode)) {
        close(fd);
        enum status st = fail(ST_IO, "%s: is %s, not a regular file", dir_path(at, name, buffer),
                              S_ISDIR(info.st_mode)    ? "a directory"
                              : S_ISFIFO(info.st_mode) ? "a FIFO"
                                                       : "a device");
        errno = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
        return st;
    }
    *ret_fd = fd;
    *ret_size = (int64_t)info.st_size;
    return ST_OK;
}

/* Reads to the end, because files in /proc report a size of 0. The buffer has one byte more than
 * the size, so that the end is reached without growing it. */
enum status file_read_at(const struct dir *at, const char *name, struct arena *a, char **ret_data,
                         int64_t *ret_size)
{
    return file_read_most_at(at, name, INT64_MAX, a, ret_data, ret_size);
}

enum status file_read_most_at(const struct dir *at, const char *name, int64_t most, struct arena *a,
                              char **ret_data, int64_t *ret_size)
{
    char buffer[DIR_NAME];
    int fd;
    int64_t capacity, size = 0;
    TRY(file_open_at(at, name, &fd, &capacity));
    if (capacity > most) {
        close(fd);
        return fail(ST_FORMAT, "%s has %lld bytes, more than the %lld that are possible",
                    dir_path(at, name, buffer), (long long)capacity, (long long)most);
    }
    capacity += capacity ? 1 : 4096;
    char *data = arena_alloc(a, capacity + 1);
    for (;;) {
        if (size == capacity) {
            char *wider = arena_alloc(a, 2 * capacity + 1);
            memcpy(wider, data, (size_t)size);
            data = wider;
            capacity *= 2;
        }
        ssize_t n = read(fd, data + size, (size_t)(capacity - size));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return close_and_fail(fd, at, name, errno);
        if (n == 0) break;
        size += n;
    }
    close(fd);
    data[size] = '\0';
    *ret_data = data;
    *ret_size = size;
    return ST_OK;
}

enum status file_read(const char *path, struct arena *a, char **ret_data, int64_t *ret_size)
{
    return file_read_at(NULL, path, a, ret_data, ret_size);
}

enum status file_read_range(int fd, const char *path, int64_t from, int64_t bytes, void *ret)
{
    char *to = ret;
    for (int64_t done = 0; done < bytes;) {
        ssize_t n = pread(fd, to + done, (size_t)(bytes - done), (off_t)(from + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return dir_fail(NULL, path, errno);
        if (n == 0)
            return fail(ST_FORMAT, "%s was cut to %lld bytes while it was in use", path,
                        (long long)lseek(fd, 0, SEEK_END));
        done += n;
    }
    return ST_OK;
}

enum status file_make_dirs_count(const char *path, int *ret_made)
{
    char prefix[4096];
    int made = 0;
    if (strlen(path) >= sizeof prefix) return fail(ST_IO, "%s: the path is too long", path);
    strcpy(prefix, path);
    for (char *p = prefix + (prefix[0] == '/');; p++) {
        if (*p != '/' && *p != '\0') continue;
        char end = *p;
        *p = '\0';
        bool is_new = prefix[0] && access(prefix, F_OK) != 0;
        if (is_new) TRY(dir_make(NULL, prefix));
        made += is_new;
        if (ret_made) *ret_made = made;
        if (!end) break;
        *p = '/';
    }
    if (!file_is_dir(path))
        return errno == ENOTDIR ? fail(ST_IO, "%s: exists and is not a directory", path)
                                : dir_fail(NULL, path, errno);
    return ST_OK;
}

enum status file_make_dirs(const char *path)
{
    return file_make_dirs_count(path, NULL);
}

enum status file_make_parent(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path) return ST_OK;
    if (slash - path >= (int64_t)sizeof folder)
        return fail(ST_IO, "%s: the path is too long", path);
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    return file_make_dirs(folder);
}

enum status file_remove_dir(const char *path)
{
    return dir_remove(NULL, path);
}

enum status file_remove_at(const struct dir *at, const char *name)
{
    char buffer[DIR_NAME];
    if (unlinkat(dir_fd(at), dir_name(at, name, buffer), 0) == 0 || errno == ENOENT) return ST_OK;
    return dir_fail(at, name, errno);
}

const char *file_cache_folder(struct arena *a)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/') return arena_printf(a, "%s/strobe", cache);
    if (home && home[0] == '/') return arena_printf(a, "%s/.cache/strobe", home);
    return NULL;
}

/* --- temporary names -------------------------------------------------------------------------- */

static const char temporary_end[] = ".tmp";
enum { RANDOM_DIGITS = 12, NAME_TRIES = 8 };

enum status file_temporary_name(const char *name, char ret[FILE_TEMPORARY])
{
    uint64_t number;
    if (strlen(name) > FILE_LONGEST) return fail(ST_IO, "%s: the path is too long", name);
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return fail(ST_IO, "%s: the system has no random numbers: %s", name, strerror(errno));
    snprintf(ret, FILE_TEMPORARY, "%s.%0*llx%s", name, RANDOM_DIGITS,
             (unsigned long long)(number >> (64 - 4 * RANDOM_DIGITS)), temporary_end);
    return ST_OK;
}

int file_temporary_of(const char *entry)
{
    int end = (int)strlen(entry) - (int)strlen(temporary_end);
    if (end < 3 || strcmp(entry + end, temporary_end) != 0) return 0;
    int dot = end - 1;
    for (; dot > 0 && entry[dot] != '.'; dot--)
        if (!strchr("0123456789abcdef", entry[dot])) return 0;
    return end - dot - 1 == RANDOM_DIGITS ? dot : 0;
}

/* Writers hold a lock on what has a temporary name; the system releases that of a killed one. What
 * cannot be opened may be in use and stays. A link (ELOOP) or a socket (ENXIO) is no writer's. */
static enum status remove_unused(const struct dir *at, const char *name)
{
    char buffer[DIR_NAME];
    int fd = openat(dir_fd(at), dir_name(at, name, buffer),
                    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno != ELOOP && errno != ENXIO)
        return errno == ENOENT ? ST_OK : dir_fail(at, name, errno);
    bool in_use = fd >= 0 && !file_lock(fd);
    enum status st = ST_OK;
    if (!in_use) {
        st = file_remove_at(at, name);
        if (st != ST_OK && (errno == EISDIR || errno == EPERM)) st = dir_remove(at, name);
    }
    if (fd >= 0) close(fd);
    return st;
}

void file_remove_temporary_at(const struct dir *at, const char *name)
{
    if (remove_unused(at, name) != ST_OK)
        log_warning("could not remove a temporary file: %s", fail_message());
}

bool file_lock(int fd)
{
    /* File systems without locks are accepted. */
    return flock(fd, LOCK_EX | LOCK_NB) == 0 || errno == ENOLCK || errno == ENOSYS ||
           errno == EOPNOTSUPP;
}

bool file_lock_named(int fd, const struct dir *at, const char *name)
{
    char buffer[DIR_NAME];
    struct stat held, named;
    return file_lock(fd) && fstat(fd, &held) == 0 &&
           fstatat(dir_fd(at), dir_name(at, name, buffer), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* A file without a name in the folder of w->path; -1 if the file system has none, or no /proc by
 * which to name it later. */
static int open_nameless(const struct file_writer *w)
{
    char buffer[DIR_NAME], folder[DIR_NAME];
    snprintf(folder, sizeof folder, "%s", dir_name(w->at, w->path, buffer));
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = '\0';
    if (access("/proc/self/fd", X_OK) != 0) return -1;
    return openat(dir_fd(w->at), slash ? folder : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
}

static enum status open_named(struct file_writer *w, int *ret_fd)
{
    char buffer[DIR_NAME];
    for (int i = 0; i < NAME_TRIES; i++) {
        TRY(file_temporary_name(w->path, w->temporary));
        int fd = openat(dir_fd(w->at), dir_name(w->at, w->temporary, buffer),
                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        *ret_fd = fd;
        if (fd >= 0 && file_lock_named(fd, w->at, w->temporary)) return ST_OK;
        if (fd >= 0)
            close(fd);
        else if (errno != EEXIST)
            break;
    }
    w->temporary[0] = '\0';
    return dir_fail(w->at, w->path, errno);
}

enum status file_writer_open_at(struct file_writer *w, const struct dir *at, const char *name)
{
    char buffer[DIR_NAME];
    struct stat info;
    *w = (struct file_writer){.at = at};
    if (strlen(name) > FILE_LONGEST) return fail(ST_IO, "%s: the path is too long", name);
    strcpy(w->path, name);
    bool exists = fstatat(dir_fd(at), dir_name(at, name, buffer), &info, AT_SYMLINK_NOFOLLOW) == 0;
    if (exists && !S_ISREG(info.st_mode))
        return fail(ST_IO, "%s: exists and is %s", dir_path(at, name, buffer),
                    S_ISLNK(info.st_mode)
                        ? "a symbolic link, which is neither followed nor replaced"
                        : "not a regular file");
    int fd = open_nameless(w);
    if (fd < 0) TRY(open_named(w, &fd));
    w->stream = fdopen(fd, "wb");
    if (w->stream) return ST_OK;
    int error = errno;
    if (w->temporary[0]) unlinkat(dir_fd(at), dir_name(at, w->temporary, buffer), 0);
    return close_and_fail(fd, at, name, error);
}

enum status file_writer_open(struct file_writer *w, const char *path)
{
    return file_writer_open_at(w, NULL, path);
}

static bool link_to(const struct file_writer *w, int fd, const char *name)
{
    char self[64], buffer[DIR_NAME];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, dir_fd(w->at), dir_name(w->at, name, buffer),
                  AT_SYMLINK_FOLLOW) == 0;
}

/* Gives a nameless file its name. A link cannot replace a file, so then it takes a temporary name
 * first. */
static bool name_file(struct file_writer *w, int fd)
{
    char from[DIR_NAME], to[DIR_NAME];
    if (!w->temporary[0]) {
        if (link_to(w, fd, w->path)) return true;
        if (errno != EEXIST) return false;
        (void)file_lock(fd);
        char name[FILE_TEMPORARY];
        if (file_temporary_name(w->path, name) != ST_OK || !link_to(w, fd, name)) return false;
        strcpy(w->temporary, name);
    }
    return renameat(dir_fd(w->at), dir_name(w->at, w->temporary, from), dir_fd(w->at),
                    dir_name(w->at, w->path, to)) == 0;
}

static void remove_temporary(struct file_writer *w)
{
    char buffer[DIR_NAME];
    if (w->temporary[0]) unlinkat(dir_fd(w->at), dir_name(w->at, w->temporary, buffer), 0);
    w->temporary[0] = '\0';
}

enum status file_writer_commit(struct file_writer *w)
{
    FILE *stream = w->stream;
    BUG_IF(!stream, "%s is written twice", w->path);
    w->stream = NULL;
    errno = 0;
    bool ok = fflush(stream) == 0 && !ferror(stream) && fsync(fileno(stream)) == 0 &&
              name_file(w, fileno(stream));
    int error = errno;
    if (ok) w->temporary[0] = '\0';
    fclose(stream); /* everything is on disk, or has failed already */
    remove_temporary(w);
    /* A write that failed earlier set the stream's error flag, but errno is lost. */
    if (!ok) return dir_fail(w->at, w->path, error ? error : EIO);
    return dir_sync_parent(w->at, w->path);
}

void file_writer_discard(struct file_writer *w)
{
    if (!w->stream) return;
    int error = errno;
    fclose(w->stream);
    w->stream = NULL;
    remove_temporary(w);
    errno = error;
}

enum status file_write_at(const struct dir *at, const char *name, const void *data, int64_t size)
{
    struct file_writer w;
    TRY(file_writer_open_at(&w, at, name));
    if (size > 0 && fwrite(data, 1, (size_t)size, w.stream) != (size_t)size) {
        int error = errno; /* file_writer_commit would detect the failure but not its reason */
        file_writer_discard(&w);
        return dir_fail(at, name, error);
    }
    return file_writer_commit(&w);
}

enum status file_write(const char *path, const void *data, int64_t size)
{
    return file_write_at(NULL, path, data, size);
}

enum status file_check_writable(const char *path)
{
    struct file_writer w;
    TRY(file_writer_open(&w, path));
    file_writer_discard(&w);
    return ST_OK;
}

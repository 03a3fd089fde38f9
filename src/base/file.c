#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- errors ----------------------------------------------------------------------------------- */

enum status file_status(int error)
{
    switch (error) {
    case ENOENT:
        return ST_ABSENT;
    case EACCES:
    case EPERM:
    case EROFS:
        return ST_DENIED;
    case EINTR:
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ESTALE:
    case ETIMEDOUT:
        return ST_BUSY;
    case ENOSPC:
    case EDQUOT:
        return ST_FULL;
    case EISDIR:
    case ENOTDIR:
    case ELOOP:
        return ST_FORMAT;
    default:
        return ST_IO;
    }
}

enum status file_fail(const char *path, int error)
{
    return fail(file_status(error), "%s: %s", path, strerror(error));
}

/* Whether to retry a failed call; waits 10, 40 and 160 ms. */
static bool repeats(int error, int attempt)
{
    enum { TRIES = 4, FIRST_PAUSE_US = 10000 };
    enum status st = file_status(error);
    if (attempt >= TRIES - 1 || (st != ST_BUSY && st != ST_IO)) return false;
    usleep(FIRST_PAUSE_US << 2 * attempt);
    errno = error;
    return true;
}

/* Makes a call that returns less than 0 if it fails. */
#define RETRY(result, call) \
    for (int try_ = 0; ((result) = (call)) < 0 && repeats(errno, try_); try_++) {}

/* --- reading ---------------------------------------------------------------------------------- */

bool file_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

enum status file_has(const char *path, bool *ret_has)
{
    struct stat info;
    int failed;
    RETRY(failed, lstat(path, &info));
    if (failed && errno != ENOENT) return file_fail(path, errno);
    *ret_has = !failed;
    return ST_OK;
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
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool file_peek(const char *path, char *text, int size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, text, (size_t)size - 1);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* O_NONBLOCK keeps a FIFO without a writer from blocking; it has no effect on regular files. */
enum status file_open(const char *path, int *ret_fd, int64_t *ret_size)
{
    struct stat info;
    int fd;
    RETRY(fd, open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd < 0) return file_fail(path, errno);
    int error = fstat(fd, &info) != 0 ? errno : 0;
    if (!error && S_ISREG(info.st_mode)) {
        *ret_fd = fd;
        *ret_size = (int64_t)info.st_size;
        return ST_OK;
    }
    close(fd);
    if (error) return file_fail(path, error);
    return fail(ST_FORMAT, "%s: is %s, not a regular file", path,
                S_ISDIR(info.st_mode)    ? "a directory"
                : S_ISFIFO(info.st_mode) ? "a FIFO"
                                         : "a device");
}

enum status file_read_next(int fd, const char *path, void *ret, int64_t most, int64_t *ret_bytes)
{
    RETRY(*ret_bytes, read(fd, ret, (size_t)most));
    return *ret_bytes < 0 ? file_fail(path, errno) : ST_OK;
}

/* Reads to the end, because files in /proc report a size of 0. The buffer has one byte more than
 * the size, so that the end is reached without growing it. */
static enum status read_open(int fd, const char *path, int64_t capacity, struct arena *a,
                             char **ret_data, int64_t *ret_size)
{
    int64_t size = 0, n;
    capacity += capacity ? 1 : 4096;
    char *data = arena_alloc(a, capacity + 1);
    for (;;) {
        if (size == capacity) {
            char *wider = arena_alloc(a, 2 * capacity + 1);
            memcpy(wider, data, (size_t)size);
            data = wider;
            capacity *= 2;
        }
        TRY(file_read_next(fd, path, data + size, capacity - size, &n));
        if (n == 0) break;
        size += n;
    }
    data[size] = '\0';
    *ret_data = data;
    *ret_size = size;
    return ST_OK;
}

enum status file_read_most(const char *path, int64_t most, struct arena *a, char **ret_data,
                           int64_t *ret_size)
{
    int fd;
    int64_t bytes;
    TRY(file_open(path, &fd, &bytes));
    enum status st =
        bytes > most ? fail(ST_FORMAT, "%s has %lld bytes, more than the %lld that are possible",
                            path, (long long)bytes, (long long)most)
                     : read_open(fd, path, bytes, a, ret_data, ret_size);
    close(fd);
    return st;
}

enum status file_read(const char *path, struct arena *a, char **ret_data, int64_t *ret_size)
{
    return file_read_most(path, INT64_MAX, a, ret_data, ret_size);
}

enum status file_read_range(int fd, const char *path, int64_t from, int64_t bytes, void *ret)
{
    char *to = ret;
    for (int64_t done = 0; done < bytes;) {
        ssize_t n;
        RETRY(n, pread(fd, to + done, (size_t)(bytes - done), (off_t)(from + done)));
        if (n < 0) return file_fail(path, errno);
        if (n == 0)
            return fail(ST_FORMAT, "%s was cut to %lld bytes while it was in use", path,
                        (long long)lseek(fd, 0, SEEK_END));
        done += n;
    }
    return ST_OK;
}

/* Returns 0, or -1 with errno. */
static int list(const char *folder, struct arena *a, struct file_entries *ret)
{
    int capacity = 0;
    *ret = (struct file_entries){};
    DIR *stream = opendir(folder);
    if (!stream) return -1;
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
    errno = error;
    return error ? -1 : 0;
}

enum status file_list(const char *folder, struct arena *a, struct file_entries *ret)
{
    int failed;
    RETRY(failed, list(folder, a, ret));
    if (failed && errno != ENOENT) return file_fail(folder, errno);
    ret->missing = failed;
    return ST_OK;
}

const char *file_cache_folder(struct arena *a)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/') return arena_printf(a, "%s/strobe", cache);
    if (home && home[0] == '/') return arena_printf(a, "%s/.cache/strobe", home);
    return NULL;
}

/* --- folders ---------------------------------------------------------------------------------- */

enum status file_make_dir(const char *path)
{
    if (mkdir(path, 0777) != 0) return errno == EEXIST ? ST_OK : file_fail(path, errno);
    enum status st = file_sync_parent(path);
    if (st == ST_OK || st == ST_DENIED) return ST_OK; /* an unreadable parent cannot be synced */
    rmdir(path);
    return st;
}

enum status file_make_dirs_count(const char *path, int *ret_made)
{
    char prefix[4096];
    int made = 0;
    if (strlen(path) >= sizeof prefix) return fail(ST_USAGE, "%s: the path is too long", path);
    strcpy(prefix, path);
    for (char *p = prefix + (prefix[0] == '/');; p++) {
        if (*p != '/' && *p != '\0') continue;
        char end = *p;
        *p = '\0';
        bool is_new = prefix[0] && access(prefix, F_OK) != 0;
        if (is_new) TRY(file_make_dir(prefix));
        made += is_new;
        if (ret_made) *ret_made = made;
        if (!end) break;
        *p = '/';
    }
    struct stat info;
    if (stat(path, &info) != 0) return file_fail(path, errno);
    if (S_ISDIR(info.st_mode)) return ST_OK;
    return fail(ST_FORMAT, "%s: exists and is not a directory", path);
}

enum status file_make_dirs(const char *path)
{
    return file_make_dirs_count(path, NULL);
}

/* The folder of a path: "" if it is the current one. */
static enum status parent_of(const char *path, char ret[4096])
{
    const char *slash = strrchr(path, '/');
    if (slash == path) slash++;
    if (slash && slash - path >= 4096) return fail(ST_USAGE, "%s: the path is too long", path);
    snprintf(ret, 4096, "%.*s", slash ? (int)(slash - path) : 0, path);
    return ST_OK;
}

enum status file_make_parent(const char *path)
{
    char folder[4096];
    TRY(parent_of(path, folder));
    return folder[0] ? file_make_dirs(folder) : ST_OK;
}

int file_open_folder(const char *folder)
{
    int fd;
    RETRY(fd, open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return fd;
}

enum status file_sync_folder(const char *folder)
{
    int fd = file_open_folder(folder);
    if (fd < 0) return file_fail(folder, errno);
    /* Some file systems cannot sync a directory and return EINVAL; that is not an error. */
    int error = fsync(fd) != 0 && errno != EINVAL ? errno : 0;
    close(fd);
    return error ? file_fail(folder, error) : ST_OK;
}

enum status file_sync_parent(const char *path)
{
    char folder[4096];
    TRY(parent_of(path, folder));
    return file_sync_folder(folder[0] ? folder : ".");
}

enum status file_remove(const char *path)
{
    return unlink(path) == 0 || errno == ENOENT ? ST_OK : file_fail(path, errno);
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info;
    (void)at;
    if (type == FTW_DNR) return EACCES;
    return remove(path) == 0 || errno == ENOENT ? 0 : errno;
}

enum status file_remove_dir(const char *path)
{
    enum { OPEN_MOST = 8 };
    struct stat info;
    if (lstat(path, &info) == 0 && !S_ISDIR(info.st_mode))
        return fail(ST_FORMAT, "%s: is not a directory", path);
    int error = nftw(path, remove_entry, OPEN_MOST, FTW_DEPTH | FTW_PHYS);
    if (error < 0) error = errno;
    return error && error != ENOENT ? file_fail(path, error) : ST_OK;
}

/* --- writing ---------------------------------------------------------------------------------- */

static const char temporary_end[] = ".tmp";
enum { RANDOM_DIGITS = 12 };

enum status file_temporary_name(const char *path, char ret[FILE_TEMPORARY])
{
    uint64_t number;
    if (strlen(path) > FILE_LONGEST) return fail(ST_USAGE, "%s: the path is too long", path);
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return fail(ST_IO, "%s: the system has no random numbers: %s", path, strerror(errno));
    snprintf(ret, FILE_TEMPORARY, "%s.%0*llx%s", path, RANDOM_DIGITS,
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

enum status file_writer_open(struct file_writer *w, const char *path)
{
    struct stat info;
    *w = (struct file_writer){};
    TRY(file_temporary_name(path, w->temporary));
    strcpy(w->path, path);
    if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return fail(ST_FORMAT, "%s: exists and is %s", path,
                    S_ISLNK(info.st_mode)
                        ? "a symbolic link, which is neither followed nor replaced"
                        : "not a regular file");
    int fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) return file_fail(path, errno);
    w->stream = fdopen(fd, "wb");
    if (w->stream) return ST_OK;
    int error = errno;
    close(fd);
    unlink(w->temporary);
    return file_fail(path, error);
}

void file_writer_add(struct file_writer *w, const void *data, int64_t bytes)
{
    if (bytes == 0 || w->error) return;
    errno = 0;
    if (fwrite(data, 1, (size_t)bytes, w->stream) != (size_t)bytes) w->error = errno ? errno : EIO;
}

enum status file_writer_commit(struct file_writer *w)
{
    FILE *stream = w->stream;
    BUG_IF(!stream, "%s is written twice", w->path);
    w->stream = NULL;
    errno = 0;
    if (!w->error && (fflush(stream) != 0 || ferror(stream) || fsync(fileno(stream)) != 0))
        w->error = errno ? errno : EIO; /* ferror may be set without an errno */
    fclose(stream);                     /* everything is on disk, or the error is known */
    if (!w->error && rename(w->temporary, w->path) != 0) w->error = errno;
    if (!w->error) return file_sync_parent(w->path);
    unlink(w->temporary);
    return file_fail(w->path, w->error);
}

enum status file_append(int fd, const char *path, const char *bytes, int64_t n, int64_t *ret_done)
{
    for (*ret_done = 0; *ret_done < n;) {
        ssize_t written;
        RETRY(written, write(fd, bytes + *ret_done, (size_t)(n - *ret_done)));
        if (written < 0) return file_fail(path, errno);
        *ret_done += written;
    }
    return ST_OK;
}

enum status file_sync_data(int fd, const char *path)
{
    int failed;
    RETRY(failed, fdatasync(fd));
    return failed ? file_fail(path, errno) : ST_OK;
}

void file_writer_discard(struct file_writer *w)
{
    if (!w->stream) return;
    fclose(w->stream);
    w->stream = NULL;
    unlink(w->temporary);
}

enum status file_write(const char *path, const void *data, int64_t size)
{
    struct file_writer w;
    TRY(file_writer_open(&w, path));
    file_writer_add(&w, data, size);
    return file_writer_commit(&w);
}

enum status file_check_writable(const char *path)
{
    struct file_writer w;
    TRY(file_writer_open(&w, path));
    file_writer_discard(&w);
    return ST_OK;
}

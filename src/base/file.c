#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status fail_errno(const char *path)
{
    return fail(ST_IO, "%s: %s", path, strerror(errno));
}

bool file_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

bool file_is_dir(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool file_peek(const char *path, char *text, int size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, (size_t)size - 1);
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* Opens a regular file for reading; the size is the one fstat reports. */
static enum status open_regular(const char *path, int *ret_fd, int64_t *ret_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return fail_errno(path);
    struct stat info;
    if (fstat(fd, &info) != 0) {
        enum status st = fail_errno(path);
        close(fd);
        return st;
    }
    if (S_ISDIR(info.st_mode)) {
        close(fd);
        return fail(ST_IO, "%s: is a directory, not a file", path);
    }
    *ret_fd = fd;
    *ret_size = (int64_t)info.st_size;
    return ST_OK;
}

/* Reads to the end, because files in /proc report a size of 0. The buffer has one byte more than
 * the size, so that the end is reached without growing it. */
enum status file_read(const char *path, struct arena *a, char **ret_data, int64_t *ret_size)
{
    int fd;
    int64_t capacity, size = 0;
    TRY(open_regular(path, &fd, &capacity));
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
        if (n < 0) {
            enum status st = fail_errno(path);
            close(fd);
            return st;
        }
        if (n == 0) break;
        size += n;
    }
    close(fd);
    data[size] = '\0';
    *ret_data = data;
    *ret_size = size;
    return ST_OK;
}

enum status file_map(const char *path, void **ret_map, int64_t *ret_size)
{
    int fd;
    int64_t size;
    TRY(open_regular(path, &fd, &size));
    if (size == 0) {
        close(fd);
        return fail(ST_FORMAT, "%s: is empty", path);
    }
    void *map = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    enum status st = map == MAP_FAILED ? fail_errno(path) : ST_OK;
    close(fd);
    if (st != ST_OK) return st;
    *ret_map = map;
    *ret_size = size;
    return ST_OK;
}

void file_unmap(void *map, int64_t size)
{
    if (map) munmap(map, (size_t)size);
}

enum status file_make_dirs(const char *path)
{
    char prefix[4096];
    if (strlen(path) >= sizeof prefix) return fail(ST_IO, "%s: the path is too long", path);
    strcpy(prefix, path);
    for (char *p = prefix + (prefix[0] == '/');; p++) {
        if (*p != '/' && *p != '\0') continue;
        char end = *p;
        *p = '\0';
        if (prefix[0] && mkdir(prefix, 0777) != 0 && errno != EEXIST) return fail_errno(prefix);
        if (!end) break;
        *p = '/';
    }
    if (!file_is_dir(path)) return fail(ST_IO, "%s: exists and is not a directory", path);
    return ST_OK;
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

static int remove_entry(const char *path, const struct stat *, int, struct FTW *)
{
    return remove(path);
}

enum status file_remove_dir(const char *path)
{
    struct stat info;
    if (lstat(path, &info) != 0) return errno == ENOENT ? ST_OK : fail_errno(path);
    if (!S_ISDIR(info.st_mode)) return fail(ST_IO, "%s: is not a directory", path);
    if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0) return fail_errno(path);
    return ST_OK;
}

const char *file_cache_folder(struct arena *a)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/') return arena_printf(a, "%s/strobe", cache);
    if (home && home[0] == '/') return arena_printf(a, "%s/.cache/strobe", home);
    return NULL;
}

enum status file_writer_open(struct file_writer *w, const char *path)
{
    *w = (struct file_writer){0};
    if (strlen(path) >= sizeof w->path) return fail(ST_IO, "%s: the path is too long", path);
    strcpy(w->path, path);
    snprintf(w->temporary, sizeof w->temporary, "%s.%d.tmp", path, (int)getpid());
    w->stream = fopen(w->temporary, "wbe");
    return w->stream ? ST_OK : fail_errno(path);
}

enum status file_writer_commit(struct file_writer *w)
{
    FILE *stream = w->stream;
    BUG_IF(!stream, "%s is written twice", w->path);
    w->stream = NULL;
    errno = 0;
    bool ok = fflush(stream) == 0 && !ferror(stream) && fsync(fileno(stream)) == 0;
    int error = errno;
    if (fclose(stream) != 0 && ok) {
        ok = false;
        error = errno;
    }
    if (ok && rename(w->temporary, w->path) != 0) {
        ok = false;
        error = errno;
    }
    if (!ok) {
        unlink(w->temporary);
        /* A write that failed earlier set the stream's error flag, but errno is lost. */
        return fail(ST_IO, "%s: %s", w->path, strerror(error ? error : EIO));
    }
    return file_sync_parent(w->path);
}

void file_writer_discard(struct file_writer *w)
{
    if (!w->stream) return;
    fclose(w->stream);
    unlink(w->temporary);
    w->stream = NULL;
}

enum status file_write(const char *path, const void *data, int64_t size)
{
    struct file_writer w;
    TRY(file_writer_open(&w, path));
    if (size > 0 && fwrite(data, 1, (size_t)size, w.stream) != (size_t)size) {
        int error = errno; /* file_writer_commit would detect the failure but not its reason */
        file_writer_discard(&w);
        return fail(ST_IO, "%s: %s", path, strerror(error));
    }
    return file_writer_commit(&w);
}

enum status file_check_writable(const char *path)
{
    struct file_writer w;
    TRY(file_writer_open(&w, path));
    file_writer_discard(&w);
    return ST_OK;
}

enum status file_sync_dir(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return fail_errno(path);
    enum status st = ST_OK;
    /* Some file systems cannot sync a directory and return EINVAL; that is not an error. */
    if (fsync(fd) != 0 && errno != EINVAL) st = fail_errno(path);
    close(fd);
    return st;
}

enum status file_sync_parent(const char *path)
{
    char parent[1024];
    snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (slash) slash[slash == parent] = '\0';
    return file_sync_dir(slash ? parent : ".");
}

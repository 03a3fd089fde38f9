#include "base/folder.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* NAME.0123456789ab.old.tmp: a folder that was set aside. No writer's temporary name is like it. */
static const char set_aside[] = ".old.tmp";

static int rename_at(const struct dir *at, const char *from, const char *to, unsigned flags)
{
    char a[DIR_NAME], b[DIR_NAME];
    return renameat2(dir_fd(at), dir_name(at, from, a), dir_fd(at), dir_name(at, to, b), flags);
}

/* The length of NAME if `entry` is a folder that was set aside from it, else 0. */
static int set_aside_of(const char *entry)
{
    char plain[FILE_TEMPORARY];
    size_t n = strlen(entry), end = strlen(set_aside);
    if (n >= sizeof plain || n <= end || strcmp(entry + n - end, set_aside) != 0) return 0;
    snprintf(plain, sizeof plain, "%.*s.tmp", (int)(n - end), entry);
    return file_temporary_of(plain);
}

bool folder_is_temporary(const char *name)
{
    return file_temporary_of(name) > 0 || set_aside_of(name) > 0;
}

/* Whether `entry` is a temporary name of `name`, or of it set aside. */
static bool is_of(const char *entry, const char *name, bool aside)
{
    size_t length = (size_t)(aside ? set_aside_of(entry) : file_temporary_of(entry));
    return length > 0 && length == strlen(name) && memcmp(entry, name, length) == 0;
}

static enum status list_temporaries(const struct dir *at, const char *name, bool aside,
                                    struct arena *a, struct dir_entries *ret)
{
    const char *slash = strrchr(name, '/');
    const char *folder = slash ? arena_printf(a, "%.*s", (int)(slash - name) + 1, name) : ".";
    TRY(dir_list(at, folder, a, ret));
    int kept = 0;
    for (int i = 0; i < ret->count; i++)
        if (is_of(ret->name[i], slash ? slash + 1 : name, aside))
            ret->name[kept++] =
                slash ? arena_printf(a, "%s%s", folder, ret->name[i]) : ret->name[i];
    ret->count = kept;
    return ST_OK;
}

static enum status restore(const struct dir *at, const char *name, enum own_folder kind,
                           struct arena *a)
{
    bool there;
    struct dir_entries old;
    TRY(dir_has(at, name, &there));
    TRY(list_temporaries(at, name, true, a, &old));
    for (int i = 0; i < old.count; i++) {
        if (there) {
            own_remove_temporary(at, old.name[i], kind);
        } else {
            if (rename_at(at, old.name[i], name, RENAME_NOREPLACE) != 0)
                return dir_fail(at, old.name[i], errno);
            there = true;
        }
    }
    return ST_OK;
}

enum status folder_restore_at(const struct dir *at, const char *name, enum own_folder kind)
{
    struct arena scratch = {0};
    enum status st = restore(at, name, kind, &scratch);
    arena_release(&scratch);
    return st;
}

enum status folder_is_interrupted(const char *path, bool *ret_interrupted)
{
    struct arena scratch = {0};
    struct dir_entries old = {0};
    bool there;
    TRY(dir_has(NULL, path, &there));
    enum status st = there ? ST_OK : list_temporaries(NULL, path, true, &scratch, &old);
    *ret_interrupted = old.count > 0;
    arena_release(&scratch);
    return st;
}

static enum status clean(const struct dir *at, const char *name, enum own_folder kind)
{
    struct arena scratch = {0};
    struct dir_entries left;
    enum status st = list_temporaries(at, name, false, &scratch, &left);
    /* one may be what `name` led to before a crash, until its change is on the disk */
    if (st == ST_OK && left.count) st = dir_sync_parent(at, name);
    for (int i = 0; st == ST_OK && i < left.count; i++)
        own_remove_temporary(at, left.name[i], kind);
    arena_release(&scratch);
    return st;
}

/* The lock tells other writers that this one lives; see file_remove_temporary_at. */
static enum status make_private(struct folder_writer *w)
{
    enum { TRIES = 8 };
    char buffer[DIR_NAME];
    int error = 0;
    for (int i = 0; i < TRIES; i++) {
        TRY(file_temporary_name(w->path, w->temporary));
        const char *name = dir_name(w->at, w->temporary, buffer);
        if (mkdirat(dir_fd(w->at), name, 0777) != 0) {
            error = errno;
            if (error == EEXIST) continue;
            break;
        }
        w->lock = openat(dir_fd(w->at), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (w->lock >= 0 && file_lock_named(w->lock, w->at, w->temporary)) return ST_OK;
        error = errno;
        if (w->lock >= 0) {
            close(w->lock);
            w->lock = -1;
            continue;
        }
        if (error == ENOENT) continue; /* another process removed it as a leftover */
        unlinkat(dir_fd(w->at), name, AT_REMOVEDIR);
        break;
    }
    return dir_fail(w->at, w->path, error);
}

enum status folder_writer_open_at(struct folder_writer *w, const struct dir *at, const char *name,
                                  enum own_folder kind)
{
    *w = (struct folder_writer){.at = at, .kind = kind, .lock = -1};
    int n = snprintf(w->path, sizeof w->path, "%s", name);
    while (n > 1 && n < (int)sizeof w->path && w->path[n - 1] == '/') w->path[--n] = '\0';
    if (n >= (int)sizeof w->path)
        return fail(ST_USAGE, "%.60s...: the path is longer than %d bytes", name, FILE_LONGEST);
    if (!at) TRY(file_make_parent(w->path));
    TRY(folder_restore_at(at, w->path, kind));
    TRY(clean(at, w->path, kind));
    return make_private(w);
}

enum status folder_writer_open(struct folder_writer *w, const char *path, enum own_folder kind)
{
    return folder_writer_open_at(w, NULL, path, kind);
}

/* If the file system cannot exchange two names, the old folder is renamed first. A kill between the
 * two renames leaves it under a name that folder_restore_at knows. */
static enum status replace_by_two(struct folder_writer *w)
{
    char old[FILE_TEMPORARY + sizeof set_aside];
    TRY(file_temporary_name(w->path, old));
    strcpy(old + strlen(old) - strlen(".tmp"), set_aside);
    if (rename_at(w->at, w->path, old, 0) != 0) return dir_fail(w->at, w->path, errno);
    if (rename_at(w->at, w->temporary, w->path, 0) != 0) {
        enum status st = dir_fail(w->at, w->path, errno);
        if (rename_at(w->at, old, w->path, 0) != 0) log_warning("the old folder is now %s", old);
        return st;
    }
    TRY(dir_sync_parent(w->at, w->path));
    own_remove_temporary(w->at, old, w->kind);
    return ST_OK;
}

/* Gives the temporary folder its name; what had it before has the temporary one then. */
static enum status take_name(struct folder_writer *w)
{
    char buffer[DIR_NAME];
    struct stat existing;
    const char *name = dir_name(w->at, w->path, buffer);
    if (fstatat(dir_fd(w->at), name, &existing, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno != ENOENT) return dir_fail(w->at, w->path, errno);
        if (rename_at(w->at, w->temporary, w->path, 0) == 0) return ST_OK;
        if (errno != ENOTEMPTY && errno != EEXIST) return dir_fail(w->at, w->path, errno);
    } else if (!S_ISDIR(existing.st_mode)) {
        return fail(ST_IO, "%s: exists and is not a directory", dir_path(w->at, w->path, buffer));
    }
    TRY(dir_sync_parent(w->at, w->path)); /* both names are on the disk before they change places */
    if (rename_at(w->at, w->temporary, w->path, RENAME_EXCHANGE) == 0) return ST_OK;
    return replace_by_two(w);
}

static enum status commit(struct folder_writer *w)
{
    TRY(dir_sync(w->at, w->temporary));
    TRY(take_name(w));
    w->named = true;
    TRY(dir_sync_parent(w->at, w->path));
    own_remove_temporary(w->at, w->temporary, w->kind);
    return ST_OK;
}

static void unlock(struct folder_writer *w)
{
    if (w->lock >= 0) close(w->lock);
    w->lock = -1;
}

enum status folder_writer_commit(struct folder_writer *w)
{
    enum status st = commit(w);
    /* after the exchange, the temporary name is that of the old folder */
    if (st != ST_OK && !w->named) folder_writer_discard(w);
    unlock(w);
    return st;
}

void folder_writer_discard(struct folder_writer *w)
{
    struct failure kept;
    int error = errno;
    fail_keep(&kept);
    if (dir_remove(w->at, w->temporary) != ST_OK)
        log_warning("could not remove the temporary folder %s", w->temporary);
    unlock(w);
    fail_restore(&kept);
    errno = error;
}

enum status folder_remove_at(const struct dir *at, const char *name, enum own_folder kind)
{
    char gone[FILE_TEMPORARY];
    TRY(file_temporary_name(name, gone));
    TRY(own_check(at, name, kind));
    if (rename_at(at, name, gone, 0) != 0)
        return errno == ENOENT ? ST_OK : dir_fail(at, name, errno);
    TRY(dir_sync_parent(at, name)); /* or a crash shows a part of the folder under its name */
    TRY(own_check(at, gone, kind)); /* no one can put a file into it any more by its name */
    return dir_remove(at, gone);
}

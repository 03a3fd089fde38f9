#include "base/folder.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { WAIT_MS = 5000 };

/* Removes the temporary folders of killed writers of this folder. */
static enum status clean(const struct folder_writer *w, struct arena *a)
{
    struct file_entries e;
    const char *slash = strrchr(w->path, '/'), *name = slash ? slash + 1 : w->path;
    int length = (int)strlen(name);
    bool synced = false;
    TRY(file_list(w->parent, a, &e));
    for (int i = 0; i < e.count; i++) {
        if (file_temporary_of(e.name[i]) != length || memcmp(e.name[i], name, (size_t)length) != 0)
            continue;
        /* Sync first: until the exchange of names is on disk, a crash may restore this folder. */
        if (!synced) TRY(file_sync_folder(w->parent));
        synced = true;
        own_remove_temporary(arena_printf(a, "%s/%s", w->parent, e.name[i]), w->kind);
    }
    return ST_OK;
}

static enum status make(struct folder_writer *w)
{
    struct arena scratch = {};
    enum status st = clean(w, &scratch);
    arena_release(&scratch);
    if (st == ST_OK && mkdir(w->temporary, 0777) != 0) st = file_fail(w->path, errno);
    return st;
}

enum status folder_writer_open(struct folder_writer *w, const char *path, enum own_folder kind)
{
    size_t n = strlen(path);
    *w = (struct folder_writer){.kind = kind};
    while (n > 1 && path[n - 1] == '/') n--;
    if (n > FILE_LONGEST)
        return fail(ST_USAGE, "%.60s...: the path is longer than %d bytes", path, FILE_LONGEST);
    memcpy(w->path, path, n);
    const char *slash = strrchr(w->path, '/');
    snprintf(w->parent, sizeof w->parent, "%.*s",
             slash ? (int)(slash - w->path) + (slash == w->path) : 1, slash ? w->path : ".");
    TRY(file_temporary_name(w->path, w->temporary));
    TRY(lock_take(&w->lock, w->parent, WAIT_MS));
    enum status st = make(w);
    if (st != ST_OK) lock_release(&w->lock);
    return st;
}

/* Exchanges the names of the temporary and the existing folder. On a file system that cannot, an
 * existing checkpoint is removed first, so that training can go on; other folders are refused. */
static enum status exchange(struct folder_writer *w)
{
    TRY(file_sync_folder(w->parent)); /* both names must be on disk before the exchange */
    if (renameat2(AT_FDCWD, w->temporary, AT_FDCWD, w->path, RENAME_EXCHANGE) == 0) return ST_OK;
    if (errno != EINVAL && errno != ENOSYS) return file_fail(w->path, errno);
    if (w->kind != OWN_CHECKPOINT)
        return fail(ST_UNSUPPORTED,
                    "%s cannot be replaced in one step on this file system: delete it first, or "
                    "choose another name",
                    w->path);
    TRY(folder_remove(w->path, w->kind));
    return rename(w->temporary, w->path) == 0 ? ST_OK : file_fail(w->path, errno);
}

/* Gives the temporary folder its final name. A folder that had this name gets the temporary one. */
static enum status take_name(struct folder_writer *w)
{
    struct stat info;
    TRY(lock_check(&w->lock)); /* gives a clearer message than the sync if the parent was moved */
    TRY(file_sync_folder(w->temporary));
    if (lstat(w->path, &info) != 0) {
        if (errno != ENOENT) return file_fail(w->path, errno);
        return rename(w->temporary, w->path) == 0 ? ST_OK : file_fail(w->path, errno);
    }
    if (!S_ISDIR(info.st_mode))
        return fail(ST_FORMAT, "%s: exists and is not a directory", w->path);
    return exchange(w);
}

enum status folder_writer_commit(struct folder_writer *w)
{
    enum status st = take_name(w);
    if (st != ST_OK) {
        folder_writer_discard(w);
        return st;
    }
    st = file_sync_folder(w->parent);
    if (st == ST_OK) own_remove_temporary(w->temporary, w->kind);
    lock_release(&w->lock);
    return st;
}

void folder_writer_discard(struct folder_writer *w)
{
    struct failure kept;
    fail_keep(&kept);
    if (file_remove_dir(w->temporary) != ST_OK)
        log_warning("could not remove the temporary folder %s", w->temporary);
    lock_release(&w->lock);
    fail_restore(&kept);
}

enum status folder_remove(const char *path, enum own_folder kind)
{
    char gone[FILE_TEMPORARY];
    TRY(file_temporary_name(path, gone));
    TRY(own_check(path, kind));
    if (rename(path, gone) != 0) return errno == ENOENT ? ST_OK : file_fail(path, errno);
    TRY(file_sync_parent(path)); /* or a crash could leave a part of the folder under `path` */
    TRY(own_check(gone, kind));  /* again: no one can add a file under the old name any more */
    return file_remove_dir(gone);
}

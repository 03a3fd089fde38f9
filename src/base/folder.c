#include "base/folder.h"

#include "base/file.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Sets the names; nothing on disk changes. */
static enum status name_folders(struct folder_writer *w, const char *path)
{
    int n = snprintf(w->path, sizeof w->path, "%s", path);
    while (n > 1 && n < (int)sizeof w->path && w->path[n - 1] == '/') w->path[--n] = '\0';
    if (n >= (int)sizeof w->path)
        return fail(ST_USAGE, "%.60s...: the path is longer than %d bytes", path,
                    (int)sizeof w->path - 1);
    const char *slash = strrchr(w->path, '/'), *name = slash ? slash + 1 : w->path;
    int above = (int)(name - w->path);
    snprintf(w->temporary, sizeof w->temporary, "%.*s.%s" FOLDER_TEMPORARY, above, w->path, name);
    snprintf(w->old, sizeof w->old, "%.*s.%s" FOLDER_OLD, above, w->path, name);
    return ST_OK;
}

static bool is_missing(const char *path)
{
    struct stat info;
    return lstat(path, &info) != 0 && errno == ENOENT;
}

enum status folder_writer_open(struct folder_writer *w, const char *path)
{
    TRY(name_folders(w, path));
    TRY(file_remove_dir(w->temporary));
    return file_make_dirs(w->temporary);
}

bool folder_is_interrupted(const char *path)
{
    struct folder_writer w;
    struct stat info;
    return name_folders(&w, path) == ST_OK && is_missing(w.path) && lstat(w.old, &info) == 0 &&
           S_ISDIR(info.st_mode);
}

enum status folder_restore(const char *path)
{
    struct folder_writer w;
    if (!folder_is_interrupted(path)) return ST_OK;
    TRY(name_folders(&w, path));
    if (rename(w.old, w.path) != 0)
        return fail(ST_IO, "%s is left as %s and cannot be renamed back: %s", w.path, w.old,
                    strerror(errno));
    log_warning("%s was restored from %s, where a process that was killed had left it", w.path,
                w.old);
    return file_sync_parent(w.path);
}

/* Exchanges the old folder with the new one. If the file system cannot exchange two names, the old
 * folder is renamed first; see folder_restore. */
static enum status replace(struct folder_writer *w)
{
    if (renameat2(AT_FDCWD, w->temporary, AT_FDCWD, w->path, RENAME_EXCHANGE) == 0) return ST_OK;
    TRY(file_remove_dir(w->old));
    if (rename(w->path, w->old) != 0) return fail(ST_IO, "%s: %s", w->path, strerror(errno));
    if (rename(w->temporary, w->path) == 0) return ST_OK;
    enum status st = fail(ST_IO, "%s: %s", w->path, strerror(errno));
    if (rename(w->old, w->path) != 0) log_warning("the old folder is now %s", w->old);
    return st;
}

static enum status commit(struct folder_writer *w)
{
    TRY(file_sync_dir(w->temporary));
    struct stat existing;
    if (lstat(w->path, &existing) == 0) {
        if (!S_ISDIR(existing.st_mode))
            return fail(ST_IO, "%s: exists and is not a directory", w->path);
        TRY(replace(w));
    } else if (rename(w->temporary, w->path) != 0) {
        return fail(ST_IO, "%s: %s", w->path, strerror(errno));
    }
    TRY(file_sync_parent(w->path));
    TRY(file_remove_dir(w->old)); /* not before the new one is on disk */
    return file_remove_dir(w->temporary);
}

enum status folder_writer_commit(struct folder_writer *w)
{
    enum status st = commit(w);
    if (st != ST_OK) folder_writer_discard(w);
    return st;
}

void folder_writer_discard(struct folder_writer *w)
{
    char message[1024];
    snprintf(message, sizeof message, "%s", fail_message());
    if (file_remove_dir(w->temporary) != ST_OK)
        log_warning("could not remove the temporary folder %s", w->temporary);
    enum status kept = fail(ST_IO, "%s", message);
    (void)kept;
}

#include "base/folder.h"

#include "base/file.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum status folder_writer_open(struct folder_writer *w, const char *path)
{
    int n = snprintf(w->path, sizeof w->path, "%s", path);
    while (n > 1 && n < (int)sizeof w->path && w->path[n - 1] == '/') w->path[--n] = '\0';
    if (n >= (int)sizeof w->path)
        return fail(ST_USAGE, "%.60s...: the path is longer than %d bytes", path,
                    (int)sizeof w->path - 1);
    snprintf(w->temporary, sizeof w->temporary, "%s" FOLDER_TEMPORARY, w->path);
    TRY(file_remove_dir(w->temporary));
    return file_make_dirs(w->temporary);
}

/* Exchanges the old folder with the new one; the caller then removes the old one. If the file
 * system cannot exchange two names, the old folder is renamed first. */
static enum status replace(struct folder_writer *w)
{
    if (renameat2(AT_FDCWD, w->temporary, AT_FDCWD, w->path, RENAME_EXCHANGE) == 0) return ST_OK;
    char old[1040 + sizeof ".old" FOLDER_TEMPORARY];
    snprintf(old, sizeof old, "%s.old" FOLDER_TEMPORARY, w->path);
    TRY(file_remove_dir(old));
    if (rename(w->path, old) != 0) return fail(ST_IO, "%s: %s", w->path, strerror(errno));
    if (rename(w->temporary, w->path) != 0) {
        enum status st = fail(ST_IO, "%s: %s", w->path, strerror(errno));
        if (rename(old, w->path) != 0) log_warning("the old folder is now %s", old);
        return st;
    }
    return file_remove_dir(old);
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

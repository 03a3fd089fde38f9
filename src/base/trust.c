#include "base/trust.h"

#include "base/file.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status check_one(const char *path, const char *asked, bool above)
{
    struct stat info;
    if (lstat(path, &info) != 0) return fail(ST_IO, "%s: %s", path, strerror(errno));
    if (info.st_uid != 0 && info.st_uid != geteuid())
        return fail(ST_UNSUPPORTED,
                    "%s is not used, because %s belongs to another user (uid %d), who could change "
                    "it; set XDG_CACHE_HOME to a folder of your own",
                    asked, path, (int)info.st_uid);
    bool sticky = above && (info.st_mode & S_ISVTX);
    if (!(info.st_mode & (S_IWGRP | S_IWOTH)) || sticky) return ST_OK;
    return fail(ST_UNSUPPORTED,
                "%s is not used, because other users can write %s (mode %o); `chmod go-w '%s'` or "
                "set XDG_CACHE_HOME to a folder of your own",
                asked, path, (unsigned)info.st_mode & 07777, path);
}

/* `real` is absolute, without links, and is cut on the way up. */
static enum status check_upwards(char *real, const char *asked, bool above)
{
    for (;; above = true) {
        TRY(check_one(real, asked, above));
        char *slash = strrchr(real, '/');
        if (!slash || !slash[1]) return ST_OK;
        slash[slash == real] = '\0';
    }
}

enum status trust_check(const char *path)
{
    char existing[4096];
    bool above = false;
    if (strlen(path) >= sizeof existing) return fail(ST_IO, "%s: the path is too long", path);
    strcpy(existing, path);
    for (;;) {
        char *real = realpath(existing, NULL);
        if (real) {
            enum status st = check_upwards(real, path, above);
            free(real);
            return st;
        }
        if (errno != ENOENT) return fail(ST_IO, "%s: %s", existing, strerror(errno));
        char *slash = strrchr(existing, '/');
        strcpy(slash ? slash + (slash == existing) : existing, slash ? "" : ".");
        above = true;
    }
}

bool trust_path(const char *path, bool *warned)
{
    if (trust_check(path) == ST_OK) return true;
    if (!__atomic_exchange_n(warned, true, __ATOMIC_RELAXED)) log_warning("%s", fail_message());
    return false;
}

enum status trust_parent(const char *path)
{
    TRY(trust_check(path));
    mode_t before = umask(077);
    enum status made = file_make_parent(path);
    umask(before);
    TRY(made);
    return trust_check(path);
}

enum status trust_folder(const char *path, struct arena *a, const char **ret_real)
{
    char inside[4096];
    if (snprintf(inside, sizeof inside, "%s/.", path) >= (int)sizeof inside)
        return fail(ST_IO, "%s: the path is too long", path);
    TRY(trust_parent(inside));
    char *real = realpath(path, NULL);
    if (!real) return fail(ST_IO, "%s: %s", path, strerror(errno));
    *ret_real = arena_strdup(a, real);
    free(real);
    return trust_check(*ret_real);
}

enum status trust_private(const char *path)
{
    return chmod(path, S_IRUSR | S_IWUSR) == 0 ? ST_OK
                                               : fail(ST_IO, "%s: %s", path, strerror(errno));
}

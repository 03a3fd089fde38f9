#include "base/trust.h"

#include "base/file.h"
#include "base/json.h"
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
    if (lstat(path, &info) != 0) return file_fail(path, errno);
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

/* Checks `real`, an absolute path without links, and every folder above it; truncates `real`. */
static enum status check_upwards(char *real, const char *asked, bool above)
{
    for (;; above = true) {
        TRY(check_one(real, asked, above));
        char *slash = strrchr(real, '/');
        if (!slash || !slash[1]) return ST_OK;
        slash[slash == real] = '\0';
    }
}

/* Joins `real` and `rest`, the part of a path below `real` that does not exist yet. */
static const char *join(const char *real, const char *rest, struct arena *a)
{
    while (*rest == '/') rest++;
    if (!*rest) return arena_strdup(a, real);
    return arena_printf(a, "%s%s%s", real, strcmp(real, "/") ? "/" : "", rest);
}

/* Refuses a link to a file: it may lead to any file, which a write would replace. */
static enum status check_link(const char *path)
{
    struct stat link, there;
    if (lstat(path, &link) != 0 || !S_ISLNK(link.st_mode)) return ST_OK;
    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode)) return ST_OK;
    return fail(ST_UNSUPPORTED,
                "%s is not used, because it is a symbolic link: remove the link, or put the file "
                "itself there",
                path);
}

enum status trust_check(const char *path, struct arena *a, const char **ret_real)
{
    char existing[4096];
    const char *rest = path + strlen(path);
    if (strlen(path) >= sizeof existing) return fail(ST_IO, "%s: the path is too long", path);
    strcpy(existing, path);
    for (;;) {
        char *real = realpath(existing, NULL);
        if (real) {
            *ret_real = join(real, rest, a);
            enum status st = check_link(path);
            if (st == ST_OK) st = check_upwards(real, path, *rest != '\0');
            free(real);
            return st;
        }
        char *slash = strrchr(existing, '/');
        if (errno != ENOENT || (!slash && !strcmp(existing, ".")))
            return file_fail(existing, errno);
        rest = slash ? path + (slash - existing) : path;
        strcpy(slash ? slash + (slash == existing) : existing, slash ? "" : ".");
    }
}

bool trust_path(const char *path, bool *warned, struct arena *a, const char **ret_real)
{
    if (trust_check(path, a, ret_real) == ST_OK) return true;
    if (!__atomic_exchange_n(warned, true, __ATOMIC_RELAXED)) log_warning("%s", fail_message());
    return false;
}

enum status trust_parent(const char *path, struct arena *a, const char **ret_real)
{
    TRY(trust_check(path, a, ret_real));
    mode_t before = umask(077);
    enum status made = file_make_parent(path);
    umask(before);
    TRY(made);
    return trust_check(path, a, ret_real);
}

enum status trust_folder(const char *path, struct arena *a, const char **ret_real)
{
    char inside[4096];
    if (snprintf(inside, sizeof inside, "%s/.", path) >= (int)sizeof inside)
        return fail(ST_IO, "%s: the path is too long", path);
    return trust_parent(inside, a, ret_real);
}

enum status trust_write_json(json_t *root, size_t flags, const char *path)
{
    mode_t before = umask(077);
    enum status st = json_write(root, flags, path);
    umask(before);
    return st;
}

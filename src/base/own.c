#include "base/own.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The first bytes of each kind of file; a question mark stands for any byte. */
static const char page[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ";
static const char picture[] = "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart-picture\" ";
static const char junit[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"strobe report\" ";
static const char bench[] = "{\n \"v\": ?,\n \"kind\": \"bench\",";
static const char profile[] = "{\"v\":?,\"version\":\"";
static const char trace[] = "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"version\":";
/* A gzip header with the comment of base/gzip.c. */
static const char packed_trace[] = "\x1f\x8b\x08\x10??????strobe";

static const struct {
    const char *words, *begin;
} files[] = {
    [OWN_PAGE] = {"page", page},          [OWN_PICTURE] = {"picture", picture},
    [OWN_JUNIT] = {"JUnit file", junit},  [OWN_BENCH] = {"sheet", bench},
    [OWN_PROFILE] = {"profile", profile}, [OWN_TRACE] = {"trace", trace},
};

enum { NAMES = 15 };

/* The files of each kind of folder. A training writes the files of a run that stand before ckpt.
 * own_clear_run removes them in this order; the last one marks the run, so that a run is still
 * recognized if its removal was interrupted. */
static const struct {
    const char *words;
    struct known_file {
        const char *name, *begin; /* begin NULL: recognized by name, in a recognized folder */
        bool marks;               /* this file makes the folder recognized */
        bool unread;              /* reports do not read it */
    } file[NAMES];
} folders[] = {
    [OWN_SET] = {"data set",
                 {{"meta.json", "{\"v\":?,\"kind\":\"", true}, {"train.bin"}, {"val.bin"}}},
    [OWN_RUN] = {"run",
                 {{"plan.txt", .unread = true},
                  {"samples.txt"},
                  {"config.conf", "# run ", true},
                  {"log.jsonl", "{\"v\":?,\"kind\":\"", true},
                  {"env.json", "{\n  \"v\": ?,\n  \"version\": \"", true},
                  {"summary.json", "{\n  \"v\": ?,\n  \"iters\": ", true},
                  {"plan.json", "{\n  \"v\": ?,\n  \"parameters\": ", true},
                  {"vocabulary.json", "{\"v\":?,\"kind\":\"", true},
                  {"ckpt", .unread = true},
                  {"report.html", page},
                  {"bench.json", bench},
                  {"profile.json", profile},
                  {"trace.json", trace},
                  {"trace.json.gz", packed_trace}}},
    [OWN_CHECKPOINTS] = {"folder of checkpoints", {}},
    [OWN_CHECKPOINT] = {"checkpoint",
                        {{"state.json", "{\"v\":?,\"iter\":", true},
                         {"DONE", "", true},
                         {"model.safetensors"},
                         {"optimizer.safetensors"}}},
    [OWN_MODEL] = {"model",
                   {{"config.json", "{\n  \"architectures\": [", true},
                    {"model.safetensors"},
                    {"tokenizer.json"},
                    {"tokenizer_config.json"}}},
};

static enum status file_begins(const char *path, const char *begin, bool *ret_does,
                               int64_t *ret_size)
{
    char head[512];
    int fd;
    int64_t n = (int64_t)strlen(begin);
    *ret_does = false;
    TRY(file_open(path, &fd, ret_size));
    enum status st = *ret_size < n ? ST_OK : file_read_range(fd, path, 0, n, head);
    close(fd);
    if (st != ST_OK || *ret_size < n) return st;
    *ret_does = true;
    for (int64_t i = 0; i < n; i++) *ret_does &= begin[i] == '?' || begin[i] == head[i];
    return ST_OK;
}

/* --- folders ---------------------------------------------------------------------------------- */

/* The length of NAME if `entry` is a temporary name, else of the whole entry. */
static int name_length(const char *entry)
{
    int length = file_temporary_of(entry);
    return length ? length : (int)strlen(entry);
}

static const struct known_file *find(enum own_folder kind, const char *entry)
{
    int length = name_length(entry);
    for (const struct known_file *f = folders[kind].file; f->name; f++)
        if ((int)strlen(f->name) == length && !memcmp(f->name, entry, (size_t)length)) return f;
    return NULL;
}

static bool is_iteration(const char *entry)
{
    enum { DIGITS_LEAST = 6 };
    int length = name_length(entry);
    return length >= DIGITS_LEAST && (int)strspn(entry, "0123456789") >= length;
}

/* Examines a folder inside another one; a foreign entry of the inner folder counts for both. */
static enum status look_inside(const char *path, const char *entry, enum own_folder kind,
                               struct arena *a, struct own_found *ret)
{
    struct own_found inner;
    TRY(own_look(path, kind, a, &inner));
    ret->recognized |= inner.recognized;
    bool needs_mark = kind == OWN_CHECKPOINT && !inner.recognized && !file_temporary_of(entry);
    const char *foreign = inner.foreign || !needs_mark ? inner.foreign : inner.by_name;
    if (foreign) ret->foreign = arena_printf(a, "%s/%s", entry, foreign);
    return ST_OK;
}

static enum status look_at(const char *folder, const char *entry, enum own_folder kind,
                           struct arena *a, struct own_found *ret)
{
    struct stat info;
    const char *path = arena_printf(a, "%s/%s", folder, entry);
    if (lstat(path, &info) != 0) return errno == ENOENT ? ST_OK : file_fail(path, errno);
    const struct known_file *f = find(kind, entry);
    bool dir = S_ISDIR(info.st_mode), file = S_ISREG(info.st_mode);
    if (kind == OWN_CHECKPOINTS && dir && is_iteration(entry))
        return look_inside(path, entry, OWN_CHECKPOINT, a, ret);
    bool ckpt = f && !strcmp(f->name, "ckpt");
    if (dir && ckpt) {
        ret->by_name = arena_strdup(a, entry);
        return look_inside(path, entry, OWN_CHECKPOINTS, a, ret);
    }
    if (!f || !file || ckpt) {
        ret->foreign = arena_strdup(a, entry);
        return ST_OK;
    }
    if (file_temporary_of(entry)) return ST_OK;
    bool does = false;
    int64_t size;
    if (f->begin) TRY(file_begins(path, f->begin, &does, &size));
    ret->recognized |= does && f->marks;
    if (!does) ret->by_name = arena_strdup(a, entry);
    return ST_OK;
}

/* Removes slashes at the end first, because lstat follows a link whose path ends in one. */
enum status own_check_no_link(const char *path)
{
    char name[4096];
    struct stat info;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    snprintf(name, sizeof name, "%.*s", (int)n, path);
    if (lstat(name, &info) != 0 || !S_ISLNK(info.st_mode)) return ST_OK;
    return fail(ST_USAGE,
                "%s is a symbolic link, and links are not followed here: give the path of its "
                "target, or replace the link by the target",
                name);
}

enum status own_look(const char *folder, enum own_folder kind, struct arena *a,
                     struct own_found *ret)
{
    struct file_entries e;
    struct stat info;
    *ret = (struct own_found){};
    if (kind != OWN_RUN) TRY(own_check_no_link(folder));
    if (stat(folder, &info) == 0 && !S_ISDIR(info.st_mode))
        return fail(ST_USAGE, "%s is not a folder: move it away", folder);
    TRY(file_list(folder, a, &e));
    ret->empty = !e.count;
    for (int i = 0; i < e.count; i++) TRY(look_at(folder, e.name[i], kind, a, ret));
    return ST_OK;
}

static enum status check(const char *path, enum own_folder kind, struct arena *a)
{
    struct own_found f;
    TRY(own_look(path, kind, a, &f));
    if (f.foreign)
        return fail(ST_USAGE,
                    "%s/%s was not written by Strobe, so %s is neither deleted nor replaced: move "
                    "it away, or choose another name",
                    path, f.foreign, path);
    const char *slash = strrchr(path, '/');
    bool needs_no_mark = kind == OWN_CHECKPOINTS || file_temporary_of(slash ? slash + 1 : path);
    if (f.empty || f.recognized || needs_no_mark) return ST_OK;
    return fail(ST_USAGE,
                "%s has no %s that Strobe wrote, so this %s is neither deleted nor replaced: move "
                "it away, or choose another name",
                path, folders[kind].file[0].name, folders[kind].words);
}

enum status own_check(const char *path, enum own_folder kind)
{
    struct arena scratch = {};
    enum status st = check(path, kind, &scratch);
    arena_release(&scratch);
    return st;
}

enum status own_check_links(const char *run, bool also_unread)
{
    char path[4096];
    for (const struct known_file *f = folders[OWN_RUN].file; f->name; f++) {
        snprintf(path, sizeof path, "%s/%s", run, f->name);
        if (!f->unread || also_unread) TRY(own_check_no_link(path));
    }
    return ST_OK;
}

void own_clean(const char *folder, enum own_folder kind)
{
    struct arena scratch = {};
    struct file_entries e;
    enum status st = file_list(folder, &scratch, &e);
    for (int i = 0; st == ST_OK && i < e.count; i++) {
        const char *path = arena_printf(&scratch, "%s/%s", folder, e.name[i]);
        const struct known_file *f = find(kind, e.name[i]);
        if (!file_temporary_of(e.name[i])) continue;
        if (kind == OWN_CHECKPOINTS && is_iteration(e.name[i]))
            own_remove_temporary(path, OWN_CHECKPOINT);
        else if (f && !strcmp(f->name, "ckpt"))
            own_remove_temporary(path, OWN_CHECKPOINTS);
        else if (f && file_remove(path) != ST_OK)
            log_warning("could not remove a temporary file: %s", fail_message());
    }
    arena_release(&scratch);
}

void own_remove_temporary(const char *path, enum own_folder kind)
{
    enum status st = own_check(path, kind);
    if (st == ST_OK) st = file_remove_dir(path);
    if (st != ST_OK) log_warning("could not remove a temporary folder: %s", fail_message());
}

enum status own_clear_run(const char *run)
{
    char path[4096];
    for (const struct known_file *f = folders[OWN_RUN].file; strcmp(f->name, "ckpt") != 0; f++) {
        snprintf(path, sizeof path, "%s/%s", run, f->name);
        TRY(file_remove(path));
    }
    return ST_OK;
}

/* --- files ------------------------------------------------------------------------------------ */

static enum status look_at_file(const char *path, enum own_file kind, bool *ret_there,
                                bool *ret_own)
{
    struct stat info;
    int64_t size = 0;
    *ret_there = lstat(path, &info) == 0;
    *ret_own = false;
    if (!*ret_there) return ST_OK; /* writing the file will report other errors */
    TRY(own_check_no_link(path));
    if (!S_ISREG(info.st_mode))
        return fail(ST_FORMAT, "%s: exists and is not a regular file", path);
    TRY(file_begins(path, files[kind].begin, ret_own, &size));
    if (!*ret_own && kind == OWN_TRACE) TRY(file_begins(path, packed_trace, ret_own, &size));
    *ret_own |= size == 0;
    return ST_OK;
}

enum status own_check_file(const char *path, enum own_file kind)
{
    bool there, own;
    TRY(look_at_file(path, kind, &there, &own));
    if (!there || own) return ST_OK;
    return fail(ST_USAGE,
                "%s already exists and is not a %s of Strobe's, so it is not replaced: choose "
                "another name, or move it away",
                path, files[kind].words);
}

enum status own_check_writable(const char *path, enum own_file kind)
{
    TRY(own_check_file(path, kind));
    return file_check_writable(path);
}

enum status own_write(const char *path, enum own_file kind, const void *data, int64_t size)
{
    TRY(own_check_file(path, kind));
    return file_write(path, data, size);
}

void own_remove(const char *path, enum own_file kind)
{
    bool there, own;
    if (look_at_file(path, kind, &there, &own) == ST_OK && there && own) unlink(path);
}

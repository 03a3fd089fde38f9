#include "train/ckpt.h"

#include "base/folder.h"
#include "base/log.h"
#include "base/own.h"
#include "train/state_file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 4, FIRST_PAUSE_MS = 10 };

void ckpt_name(char ret[CKPT_NAME], int64_t iter)
{
    snprintf(ret, CKPT_NAME, "ckpt/%06lld", (long long)iter);
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x > y ? -1 : x < y;
}

/* -1 if no checkpoint has this name. */
static int64_t iter_of(const char *entry)
{
    char name[CKPT_NAME], *end;
    int64_t iter = strtoll(entry, &end, 10);
    if (iter < 0 || end == entry || *end) return -1;
    ckpt_name(name, iter);
    return strcmp(name + strlen("ckpt/"), entry) == 0 ? iter : -1;
}

enum status ckpt_iters(const struct dir *run, struct arena *a, int64_t **ret_iters, int *ret_count)
{
    struct dir_entries entries;
    TRY(dir_list(run, "ckpt", a, &entries));
    int64_t *iters = ARENA_NEW(a, int64_t, entries.count + 1);
    int count = 0;
    for (int i = 0; i < entries.count; i++) {
        int64_t iter = iter_of(entries.name[i]);
        if (iter >= 0) iters[count++] = iter;
    }
    qsort(iters, (size_t)count, sizeof *iters, newest_first);
    *ret_iters = iters;
    *ret_count = count;
    return ST_OK;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Reads instead of mapping: a bad disk then gives an error and not a signal. */
static enum status hash_file(int fd, const char *path, char ret_digest[HASH_HEX])
{
    static _Thread_local char bytes[1 << 16];
    struct hash *h = hash_open();
    ssize_t n;
    while ((n = read(fd, bytes, sizeof bytes)) != 0) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) break;
        hash_add(h, bytes, n);
    }
    int error = errno;
    hash_close(h, ret_digest);
    return n < 0 ? dir_fail(NULL, path, error) : ST_OK;
}

static enum status verify_file(const struct checkpoint *c, int i,
                               const struct safetensors_facts *expected, struct arena *a)
{
    const char *file = state_tensor_file(i), *path = arena_printf(a, "%s/%s", c->path, file);
    char digest[HASH_HEX];
    int fd;
    int64_t bytes;
    TRY(state_part(file_open_at(c->at, arena_printf(a, "%s/%s", c->name, file), &fd, &bytes),
                   path));
    enum status st = bytes == expected->bytes
                         ? hash_file(fd, path, digest)
                         : fail(ST_FORMAT, "%s has %lld bytes, expected %lld", path,
                                (long long)bytes, (long long)expected->bytes);
    int error = errno;
    close(fd);
    errno = error;
    if (st == ST_OK && strcmp(digest, expected->sha256) != 0)
        st = fail(ST_FORMAT, "%s is corrupt: its SHA-256 is %.12s..., expected %.12s...", path,
                  digest, expected->sha256);
    return st;
}

static enum status read_once(struct checkpoint *c, bool verify_tensors, struct arena *a)
{
    struct safetensors_facts files[STATE_FILE_COUNT];
    TRY(state_read(c->at, c->name, a, &c->state, files));
    for (int i = 0; verify_tensors && i < STATE_FILE_COUNT; i++)
        TRY(verify_file(c, i, &files[i], a));
    return ST_OK;
}

/* Errors that may pass by themselves. */
static bool may_pass(int error)
{
    return error == EIO || error == EINTR || error == EAGAIN || error == EMFILE ||
           error == ENFILE || error == ENOMEM || error == ESTALE || error == ETIMEDOUT;
}

static void pause_ms(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)ms * 1000000}, NULL);
}

enum status ckpt_read_folder(struct checkpoint *c, bool verify_tensors, struct arena *a)
{
    enum status st = read_once(c, verify_tensors, a);
    for (int i = 1; i < TRIES && st == ST_IO && may_pass(errno); i++) {
        pause_ms(FIRST_PAUSE_MS << (2 * (i - 1)));
        st = read_once(c, verify_tensors, a);
    }
    return st;
}

enum status ckpt_read(const struct dir *run, int64_t iter, bool verify_tensors, struct arena *a,
                      struct checkpoint *ret)
{
    struct checkpoint c = {.at = run};
    char buffer[DIR_NAME], name[CKPT_NAME];
    ckpt_name(name, iter);
    strcpy(c.name, name);
    snprintf(c.path, sizeof c.path, "%s", dir_path(run, name, buffer));
    enum status st = ckpt_read_folder(&c, verify_tensors, a);
    if (st != ST_OK) return st;
    if (c.state.iter != iter)
        return fail(ST_FORMAT, "%s holds iteration %lld", c.path, (long long)c.state.iter);
    *ret = c;
    return ST_OK;
}

/* --- what this process wrote ------------------------------------------------------------------ */

_Static_assert((int)CHECKPOINT_FILES == (int)STATE_FILE_COUNT, "one for each file of tensors");

/* How the system shows a file; inode 0: it does not. ctime changes with every write, and no program
 * can set it. */
static struct checkpoint_file shown(const struct dir *run, int64_t iter, int i, struct arena *a)
{
    char name[CKPT_NAME];
    struct stat info;
    int fd;
    int64_t bytes;
    ckpt_name(name, iter);
    const char *path = arena_printf(a, "%s/%s", name, state_tensor_file(i));
    if (file_open_at(run, path, &fd, &bytes) != ST_OK) return (struct checkpoint_file){0};
    bool known = fstat(fd, &info) == 0;
    close(fd);
    if (!known) return (struct checkpoint_file){0};
    return (struct checkpoint_file){.device = (int64_t)info.st_dev,
                                    .inode = (int64_t)info.st_ino,
                                    .bytes = info.st_size,
                                    .changed_ns = info.st_ctim.tv_sec * INT64_C(1000000000) +
                                                  info.st_ctim.tv_nsec};
}

void ckpt_note_written(const struct dir *run, int64_t iter, const struct safetensors_facts *files,
                       struct checkpoint_written *ret, struct arena *a)
{
    ret->iter = iter;
    for (int i = 0; i < CHECKPOINT_FILES; i++) {
        ret->file[i] = shown(run, iter, i, a);
        memcpy(ret->file[i].sha256, files[i].sha256, sizeof files[i].sha256);
    }
}

/* Whether the files of a checkpoint are those that this process wrote and hashed as it did. */
static bool is_as_written(const struct dir *run, int64_t iter, const struct checkpoint_written *w,
                          struct arena *a)
{
    char name[CKPT_NAME];
    struct checkpoint_state state;
    struct safetensors_facts files[STATE_FILE_COUNT];
    ckpt_name(name, iter);
    if (!w || w->iter != iter || state_read(run, name, a, &state, files) != ST_OK) return false;
    for (int i = 0; i < CHECKPOINT_FILES; i++) {
        const struct checkpoint_file *x = &w->file[i], now = shown(run, iter, i, a);
        bool same = now.inode && now.inode == x->inode && now.device == x->device &&
                    now.bytes == x->bytes && now.changed_ns == x->changed_ns;
        if (!same || strcmp(files[i].sha256, x->sha256)) return false;
    }
    return true;
}

/* --- pruning ---------------------------------------------------------------------------------- */

/* What is known of one checkpoint before anything is removed. */
struct known {
    int64_t iter;
    enum status st; /* of reading its state; for the spare, of all of it */
    struct checkpoint_state state;
};

static void look(const struct dir *run, struct known *k, bool verify_tensors, struct arena *a)
{
    struct checkpoint c;
    k->st = ckpt_read(run, k->iter, verify_tensors, a, &c);
    if (k->st == ST_OK) k->state = c.state;
    if (k->st != ST_OK && k->st != ST_FORMAT)
        log_warning("checkpoint %lld is kept, because it cannot be read: %s", (long long)k->iter,
                    fail_message());
}

/* The newest checkpoint up to `now` that had the best loss when it was saved; -1: none. */
static int64_t best_of(const struct known *k, int count, int64_t now)
{
    int64_t best = -1;
    double loss = INFINITY;
    for (int i = 0; i < count; i++) {
        if (k[i].st != ST_OK || k[i].iter > now || k[i].state.best_iter != k[i].iter) continue;
        if (!(k[i].state.best_val_loss < loss)) continue;
        best = k[i].iter;
        loss = k[i].state.best_val_loss;
    }
    return best;
}

/* The newest intact one before `now`, in case the new one is damaged later; -1: none. */
static int64_t spare_of(const struct dir *run, struct known *k, int count, int64_t now,
                        const struct checkpoint_written *written, struct arena *a)
{
    for (int i = 0; i < count; i++) {
        if (k[i].iter >= now || k[i].st != ST_OK) continue;
        if (!is_as_written(run, k[i].iter, written, a)) look(run, &k[i], true, a);
        if (k[i].st == ST_OK) return k[i].iter;
    }
    return -1;
}

static void remove_one(const struct dir *run, int64_t iter)
{
    char name[CKPT_NAME];
    ckpt_name(name, iter);
    if (folder_remove_at(run, name, OWN_CHECKPOINT) != ST_OK)
        log_warning("could not remove an old checkpoint: %s", fail_message());
}

void ckpt_clean(const struct dir *run)
{
    bool exists;
    if (dir_has(run, "ckpt", &exists) != ST_OK || !exists) return;
    /* what has a temporary name may be what a checkpoint's name led to before a crash */
    if (dir_sync(run, "ckpt") == ST_OK)
        own_clean(run, "ckpt", OWN_CHECKPOINTS);
    else
        log_warning("no temporary folder is removed: %s", fail_message());
}

/* A folder that cannot be removed wastes disk space but does not fail the run. */
void ckpt_prune(const struct dir *run, int64_t now, const struct checkpoint_written *written,
                struct arena *a)
{
    int64_t *iters;
    int count;
    if (ckpt_iters(run, a, &iters, &count) != ST_OK) {
        log_warning("no old checkpoint is removed: %s", fail_message());
        return;
    }
    struct known *k = ARENA_NEW(a, struct known, count + 1);
    for (int i = 0; i < count; i++) {
        k[i].iter = iters[i];
        look(run, &k[i], false, a);
    }
    int64_t best = best_of(k, count, now), spare = spare_of(run, k, count, now, written, a);
    for (int i = 0; i < count; i++) {
        bool was_read = k[i].st == ST_OK || k[i].st == ST_FORMAT;
        if (was_read && iters[i] != now && iters[i] != best && iters[i] != spare)
            remove_one(run, iters[i]);
    }
    ckpt_clean(run);
}

#include "train/checkpoint.h"

#include "base/folder.h"
#include "base/log.h"
#include "base/own.h"
#include "train/state_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *checkpoint_path(const char *run, int64_t iter, struct arena *a)
{
    return arena_printf(a, "%s/ckpt/%06lld", run, (long long)iter);
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x > y ? -1 : x < y;
}

/* -1 if no checkpoint has this name. */
static int64_t iter_of(const char *entry)
{
    char name[64], *end;
    int64_t iter = strtoll(entry, &end, 10);
    if (iter < 0 || end == entry || *end) return -1;
    snprintf(name, sizeof name, "%06lld", (long long)iter);
    return strcmp(name, entry) == 0 ? iter : -1;
}

enum status checkpoint_iters(const char *run, struct arena *a, int64_t **ret_iters, int *ret_count)
{
    struct file_entries entries;
    TRY(file_list(arena_printf(a, "%s/ckpt", run), a, &entries));
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

static enum status hash_file(int fd, const char *path, char ret_digest[HASH_HEX])
{
    static _Thread_local char bytes[1 << 16];
    struct hash *h = hash_open();
    int64_t n;
    enum status st;
    while ((st = file_read_next(fd, path, bytes, sizeof bytes, &n)) == ST_OK && n > 0)
        hash_add(h, bytes, n);
    hash_close(h, ret_digest);
    return st;
}

static enum status verify_file(const char *path, const struct safetensors_facts *expected)
{
    char digest[HASH_HEX];
    int fd;
    int64_t bytes;
    TRY(state_part(file_open(path, &fd, &bytes), path));
    enum status st = bytes == expected->bytes
                         ? hash_file(fd, path, digest)
                         : fail(ST_FORMAT, "%s has %lld bytes, expected %lld", path,
                                (long long)bytes, (long long)expected->bytes);
    close(fd);
    if (st == ST_OK && strcmp(digest, expected->sha256) != 0)
        st = fail(ST_FORMAT, "%s is corrupt: its SHA-256 is %.12s..., expected %.12s...", path,
                  digest, expected->sha256);
    return st;
}

/* Verifies state.json and, if `whole`, also the tensor files. */
static enum status read_folder(const char *path, bool whole, struct arena *a,
                               struct checkpoint *ret)
{
    struct safetensors_facts files[STATE_FILE_COUNT];
    struct checkpoint c = {.path = arena_strdup(a, path)};
    TRY(state_read(path, a, &c.state, files));
    for (int i = 0; whole && i < STATE_FILE_COUNT; i++)
        TRY(verify_file(arena_printf(a, "%s/%s", path, state_tensor_file(i)), &files[i]));
    *ret = c;
    return ST_OK;
}

static enum status read_iter(const char *run, int64_t iter, bool whole, struct arena *a,
                             struct checkpoint *ret)
{
    struct checkpoint c;
    TRY(read_folder(checkpoint_path(run, iter, a), whole, a, &c));
    if (c.state.iter != iter)
        return fail(ST_FORMAT, "%s holds iteration %lld", c.path, (long long)c.state.iter);
    *ret = c;
    return ST_OK;
}

enum status checkpoint_open(const char *path, struct arena *a, struct checkpoint *ret)
{
    return read_folder(path, true, a, ret);
}

/* --- what this process wrote ------------------------------------------------------------------ */

/* The present state of the files. ctime changes with every write, and no program can set it. */
static struct checkpoint_written shown(const char *run, int64_t iter, struct arena *a)
{
    const char *const names[] = {state_tensor_file(STATE_MODEL), state_tensor_file(STATE_OPTIMIZER),
                                 "state.json", "DONE"};
    struct checkpoint_written w = {.iter = iter};
    struct stat info;
    for (int i = 0; i < COUNT_OF(w.file); i++) {
        const char *path = arena_printf(a, "%s/%s", checkpoint_path(run, iter, a), names[i]);
        if (stat(path, &info) != 0) return (struct checkpoint_written){};
        w.file[i].inode = (int64_t)info.st_ino;
        w.file[i].bytes = (int64_t)info.st_size;
        w.file[i].changed_ns =
            (int64_t)info.st_ctim.tv_sec * 1000000000 + (int64_t)info.st_ctim.tv_nsec;
    }
    return w;
}

static bool is_as_written(const char *run, int64_t iter, const struct checkpoint_written *w,
                          struct arena *a)
{
    if (!w || w->iter != iter || !w->file[0].inode) return false;
    struct checkpoint_written now = shown(run, iter, a);
    return memcmp(&now, w, sizeof now) == 0;
}

/* --- pruning ---------------------------------------------------------------------------------- */

/* A checkpoint, examined before any is removed. */
struct known {
    int64_t iter;
    enum status st; /* of reading its state, or for the spare one all its files */
    struct checkpoint_state state;
};

static void look(const char *run, struct known *k, bool whole, struct arena *a)
{
    struct checkpoint c;
    k->st = read_iter(run, k->iter, whole, a, &c);
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

/* The newest intact checkpoint before `now`, kept in case `now` is damaged later; -1: none. */
static int64_t spare_of(const char *run, struct known *k, int count, int64_t now,
                        const struct checkpoint_written *written, struct arena *a)
{
    for (int i = 0; i < count; i++) {
        if (k[i].iter >= now || k[i].st != ST_OK) continue;
        if (!is_as_written(run, k[i].iter, written, a)) look(run, &k[i], true, a);
        if (k[i].st == ST_OK) return k[i].iter;
    }
    return -1;
}

static void remove_one(const char *run, int64_t iter, struct arena *a)
{
    if (folder_remove(checkpoint_path(run, iter, a), OWN_CHECKPOINT) != ST_OK)
        log_warning("could not remove an old checkpoint: %s", fail_message());
}

void checkpoint_clean(const char *run, struct arena *a)
{
    const char *ckpt = arena_printf(a, "%s/ckpt", run);
    /* Sync first: a crash may still restore a checkpoint that has a temporary name now. */
    enum status st = file_sync_folder(ckpt);
    if (st == ST_OK)
        own_clean(ckpt, OWN_CHECKPOINTS);
    else if (st != ST_ABSENT)
        log_warning("no temporary folder is removed: %s", fail_message());
}

/* A folder that cannot be removed wastes disk space but does not fail the run. */
void checkpoint_prune(const char *run, int64_t now, const struct checkpoint_written *written,
                      struct arena *a)
{
    int64_t *iters;
    int count;
    if (checkpoint_iters(run, a, &iters, &count) != ST_OK) {
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
            remove_one(run, iters[i], a);
    }
    checkpoint_clean(run, a);
}

static struct safetensor as_safetensor(const struct weights_tensor *t, const char *name,
                                       const float *data)
{
    struct safetensor s = {.name = name, .type = SAFETENSORS_F32, .rank = t->rank, .data = data};
    memcpy(s.dim, t->dim, sizeof t->dim);
    return s;
}

/* --- writing ---------------------------------------------------------------------------------- */

static enum status write_model(const char *folder, const struct weights_tensor *tensors, int count,
                               struct safetensors_facts *ret, struct arena *a)
{
    struct safetensor *list = ARENA_NEW(a, struct safetensor, count);
    for (int i = 0; i < count; i++)
        list[i] = as_safetensor(&tensors[i], tensors[i].name, tensors[i].weight);
    const char *path = arena_printf(a, "%s/%s", folder, state_tensor_file(STATE_MODEL));
    return safetensors_write(path, list, count, ret);
}

static enum status write_optimizer(const char *folder, const struct weights_tensor *tensors,
                                   int count, struct safetensors_facts *ret, struct arena *a)
{
    struct safetensor *list = ARENA_NEW(a, struct safetensor, (int64_t)count * OPTIMIZER_STATES);
    int kept = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < OPTIMIZER_STATES; k++) {
            const float *data = tensors[i].state[k].data;
            if (!data) continue;
            const char *name = arena_printf(a, "%s%s", tensors[i].name, tensors[i].state[k].suffix);
            list[kept++] = as_safetensor(&tensors[i], name, data);
        }
    const char *path = arena_printf(a, "%s/%s", folder, state_tensor_file(STATE_OPTIMIZER));
    return safetensors_write(path, list, kept, ret);
}

static enum status write_files(const char *folder, const struct weights_tensor *tensors, int count,
                               const struct checkpoint_state *state,
                               struct safetensors_facts files[STATE_FILE_COUNT], struct arena *a)
{
    TRY(write_model(folder, tensors, count, &files[STATE_MODEL], a));
    TRY(write_optimizer(folder, tensors, count, &files[STATE_OPTIMIZER], a));
    return state_write(folder, state, files);
}

/* Checks the lock before and after writing, because the run may be moved meanwhile. */
static enum status save(const struct lock *run, const struct weights_tensor *tensors, int count,
                        const struct checkpoint_state *state, struct checkpoint_written *written,
                        struct arena *a)
{
    struct safetensors_facts files[STATE_FILE_COUNT];
    const char *path = checkpoint_path(run->path, state->iter, a);
    struct folder_writer w;
    TRY(lock_check(run));
    TRY(file_make_dir(arena_printf(a, "%s/ckpt", run->path)));
    TRY(own_check(path, OWN_CHECKPOINT));
    TRY(folder_writer_open(&w, path, OWN_CHECKPOINT));
    enum status st = write_files(w.temporary, tensors, count, state, files, a);
    if (st == ST_OK) st = lock_check(run);
    if (st != ST_OK) {
        folder_writer_discard(&w);
        return st;
    }
    TRY(folder_writer_commit(&w));
    checkpoint_prune(run->path, state->iter, written, a);
    *written = shown(run->path, state->iter, a);
    return ST_OK;
}

/* After a failed save: whether older checkpoints exist. */
static const char *what_is_left(const struct lock *run, struct arena *a)
{
    int64_t *iters;
    int count = 0;
    struct failure kept;
    fail_keep(&kept);
    enum status st = lock_check(run); /* another run may have this path now */
    if (st == ST_OK) st = checkpoint_iters(run->path, a, &iters, &count);
    fail_restore(&kept);
    return st != ST_OK ? "" : count ? " (older ones are kept)" : " (there is no older one)";
}

enum status checkpoint_save(const struct lock *run, const struct weights_tensor *tensors, int count,
                            const struct checkpoint_state *state,
                            struct checkpoint_written *written)
{
    struct arena scratch = {};
    enum status st = save(run, tensors, count, state, written, &scratch);
    if (st != ST_OK)
        st = fail_in(st, "the checkpoint of iteration %lld was not saved%s", (long long)state->iter,
                     what_is_left(run, &scratch));
    arena_release(&scratch);
    return st;
}

/* --- finding ---------------------------------------------------------------------------------- */

static enum status list(const char *run, struct arena *a, int64_t **ret_iters, int *ret_count)
{
    enum status st = checkpoint_iters(run, a, ret_iters, ret_count);
    if (st == ST_OK) return ST_OK;
    return fail_in(st, "the checkpoints cannot be read, so nothing was changed: %s",
                   st == ST_FORMAT /* a file, or a link that is not followed */
                       ? "ckpt must be the folder that the training wrote; put it back"
                       : "give yourself permission, or try again when the disk can be read");
}

struct passed_over {
    int damaged, unreadable;
};

/* Fails if the user can fix the error or try again. Else warns, and an older one may be used. */
static enum status pass_over(const char *run, int64_t iter, enum status st, struct passed_over *p)
{
    if (st == ST_DENIED)
        return fail_in(st,
                       "%s/ckpt has a checkpoint that this user may not read, so nothing was "
                       "changed: give yourself permission to read it (ls -l shows its owner)",
                       run);
    if (st == ST_BUSY)
        return fail_in(st,
                       "%s/ckpt has a checkpoint that cannot be read now, so nothing was changed: "
                       "try again",
                       run);
    log_warning("skipping checkpoint %lld, which %s: %s", (long long)iter,
                st == ST_FORMAT ? "is damaged" : "cannot be read", fail_message());
    if (st == ST_FORMAT)
        p->damaged++;
    else
        p->unreadable++;
    return ST_OK;
}

static enum status found_none(const char *run, bool best, const struct passed_over *p)
{
    const char *what = best ? "of those with the lowest loss, none" : "none of its checkpoints";
    if (p->unreadable)
        return fail(ST_IO,
                    "%s/ckpt: %s could be read, and nothing was changed: the warnings above give "
                    "the reasons",
                    run, what);
    if (!p->damaged) return ST_OK;
    if (best)
        return fail(ST_FORMAT,
                    "%s/ckpt: no intact checkpoint is known to have the lowest loss: leave out "
                    "--best to use the last intact one",
                    run);
    return fail(ST_FORMAT,
                "all checkpoints in %s/ckpt are damaged: train again, in another --out_dir or in "
                "place of this run (--overwrite)",
                run);
}

/* Whether a running training removed a checkpoint before it was read. Keeps the error message. */
static enum status is_gone(const char *run, int64_t iter, bool *ret, struct arena *a)
{
    bool there;
    struct failure kept;
    fail_keep(&kept);
    TRY(file_has(checkpoint_path(run, iter, a), &there));
    fail_restore(&kept);
    *ret = !there;
    return ST_OK;
}

/* One attempt; *ret_changed: a checkpoint was removed meanwhile, so try again. */
static enum status find(const char *run, bool best, struct arena *a, struct checkpoint *ret,
                        bool *ret_found, bool *ret_changed)
{
    int64_t *iters;
    int count;
    struct passed_over p = {0};
    bool found = false;
    TRY(list(run, a, &iters, &count));
    for (int i = 0; i < count && (best || !found); i++) {
        struct checkpoint c;
        enum status st = read_iter(run, iters[i], true, a, &c);
        if (st != ST_OK) {
            TRY(is_gone(run, iters[i], ret_changed, a));
            if (*ret_changed) return ST_OK;
            TRY(pass_over(run, iters[i], st, &p));
            continue;
        }
        if (best && c.state.best_iter != iters[i]) continue;
        if (found && !(c.state.best_val_loss < ret->state.best_val_loss)) continue;
        *ret = c;
        found = true;
    }
    *ret_found = found;
    return found ? ST_OK : found_none(run, best, &p);
}

enum status checkpoint_find(const char *run, bool best, struct arena *a, struct checkpoint *ret,
                            bool *ret_found)
{
    enum { FIND_TRIES = 10 };
    for (int i = 0; i < FIND_TRIES; i++) {
        bool changed = false;
        TRY(find(run, best, a, ret, ret_found, &changed));
        if (!changed) return ST_OK;
    }
    return fail(ST_IO,
                "a training replaces the checkpoints in %s/ckpt faster than they can be read: try "
                "again when it has ended",
                run);
}

/* --- loading ---------------------------------------------------------------------------------- */

static enum status load_tensor(const struct safetensors *s, const char *path,
                               const struct weights_tensor *t, const char *name, float *ret_values)
{
    const struct safetensor *found = safetensors_find(s, name);
    if (!found)
        return fail(ST_FORMAT, "%s has no tensor %s: the checkpoint is of a different model", path,
                    name);
    struct safetensor wanted = as_safetensor(t, name, NULL);
    bool same = found->rank == wanted.rank && found->type == SAFETENSORS_F32;
    for (int d = 0; same && d < wanted.rank; d++) same = found->dim[d] == wanted.dim[d];
    if (!same) {
        char there[128], here[128];
        return fail(ST_FORMAT, "%s: tensor %s is %s %s, but this model needs F32 %s", path, name,
                    safetensors_type_name(found->type), safetensors_shape(found, there),
                    safetensors_shape(&wanted, here));
    }
    return safetensors_read(s, found, ret_values);
}

static enum status load_model(const struct safetensors *s, const char *path,
                              const struct weights_tensor *tensors, int count)
{
    for (int i = 0; i < count; i++)
        TRY(load_tensor(s, path, &tensors[i], tensors[i].name, tensors[i].weight));
    if (s->count != count)
        return fail(
            ST_FORMAT,
            "%s has %d tensors, but this model has %d: the checkpoint is of a different model",
            path, s->count, count);
    return ST_OK;
}

static enum status load_optimizer(const struct safetensors *s, const char *path,
                                  const struct weights_tensor *tensors, int count)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < OPTIMIZER_STATES; k++) {
            if (!tensors[i].state[k].data) continue;
            char name[512];
            snprintf(name, sizeof name, "%s%s", tensors[i].name, tensors[i].state[k].suffix);
            TRY(load_tensor(s, path, &tensors[i], name, tensors[i].state[k].data));
        }
    return ST_OK;
}

enum status checkpoint_load(const struct checkpoint *c, const struct weights_tensor *tensors,
                            int count)
{
    enum status (*const load[STATE_FILE_COUNT])(const struct safetensors *, const char *,
                                                const struct weights_tensor *, int) = {
        [STATE_MODEL] = load_model, [STATE_OPTIMIZER] = load_optimizer};
    bool states = false;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < OPTIMIZER_STATES; k++) states |= tensors[i].state[k].data != NULL;
    enum status st = ST_OK;
    for (int f = 0; f < (states ? STATE_FILE_COUNT : 1) && st == ST_OK; f++) {
        struct arena scratch = {};
        struct safetensors s = {};
        const char *path = arena_printf(&scratch, "%s/%s", c->path, state_tensor_file(f));
        st = safetensors_open(&s, path, &scratch);
        if (st == ST_OK) st = load[f](&s, path, tensors, count);
        safetensors_close(&s);
        arena_release(&scratch);
    }
    return st;
}

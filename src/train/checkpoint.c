#include "train/checkpoint.h"

#include "base/folder.h"
#include "base/log.h"
#include "base/own.h"
#include "train/ckpt.h"
#include "train/state_file.h"

#include <errno.h>
#include <string.h>

static struct safetensor as_safetensor(const struct weights_tensor *t, const char *name,
                                       const float *data)
{
    struct safetensor s = {.name = name, .type = SAFETENSORS_F32, .rank = t->rank, .data = data};
    memcpy(s.dim, t->dim, sizeof t->dim);
    return s;
}

/* --- writing ---------------------------------------------------------------------------------- */

static enum status write_model(const struct folder_writer *w, const struct weights_tensor *tensors,
                               int count, struct safetensors_facts *ret, struct arena *a)
{
    struct safetensor *list = ARENA_NEW(a, struct safetensor, count);
    for (int i = 0; i < count; i++)
        list[i] = as_safetensor(&tensors[i], tensors[i].name, tensors[i].weight);
    const char *name = arena_printf(a, "%s/%s", w->temporary, state_tensor_file(STATE_MODEL));
    return safetensors_write_at(w->at, name, list, count, ret);
}

static enum status write_optimizer(const struct folder_writer *w,
                                   const struct weights_tensor *tensors, int count,
                                   struct safetensors_facts *ret, struct arena *a)
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
    const char *name = arena_printf(a, "%s/%s", w->temporary, state_tensor_file(STATE_OPTIMIZER));
    return safetensors_write_at(w->at, name, list, kept, ret);
}

static enum status write_files(const struct folder_writer *w, const struct weights_tensor *tensors,
                               int count, const struct checkpoint_state *state,
                               struct safetensors_facts files[STATE_FILE_COUNT], struct arena *a)
{
    TRY(write_model(w, tensors, count, &files[STATE_MODEL], a));
    TRY(write_optimizer(w, tensors, count, &files[STATE_OPTIMIZER], a));
    return state_write(w->at, w->temporary, state, files);
}

static enum status save(const struct dir *run, const struct weights_tensor *tensors, int count,
                        const struct checkpoint_state *state, struct checkpoint_written *written,
                        struct arena *a)
{
    struct safetensors_facts files[STATE_FILE_COUNT];
    char name[CKPT_NAME];
    ckpt_name(name, state->iter);
    struct folder_writer w;
    TRY(dir_make(run, "ckpt"));
    TRY(own_check(run, name, OWN_CHECKPOINT));
    TRY(folder_writer_open_at(&w, run, name, OWN_CHECKPOINT));
    enum status st = write_files(&w, tensors, count, state, files, a);
    if (st != ST_OK) {
        folder_writer_discard(&w);
        return st;
    }
    TRY(folder_writer_commit(&w));
    ckpt_prune(run, state->iter, written, a);
    ckpt_note_written(run, state->iter, files, written, a);
    return ST_OK;
}

/* What a failed save leaves: a sentence must not promise older checkpoints that do not exist. */
static const char *what_is_left(const struct dir *run, struct arena *a)
{
    int64_t *iters;
    int count;
    struct failure kept;
    fail_keep(&kept);
    enum status st = ckpt_iters(run, a, &iters, &count);
    fail_restore(&kept);
    return st != ST_OK ? "" : count ? " (older ones are kept)" : " (there is no older one)";
}

enum status checkpoint_save(const struct dir *run, const struct weights_tensor *tensors, int count,
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

void checkpoint_prune(const struct dir *run, int64_t now)
{
    struct arena scratch = {};
    ckpt_prune(run, now, NULL, &scratch);
    arena_release(&scratch);
}

/* --- finding ---------------------------------------------------------------------------------- */

/* What the user can mend, or what passes: then no older checkpoint is taken in its place. */
static bool must_stop(int error)
{
    return error == EACCES || error == EPERM || error == EMFILE || error == ENFILE ||
           error == ENOMEM || error == EINTR || error == EAGAIN || error == ETIMEDOUT;
}

static enum status fail_unreadable(const struct dir *run, int error)
{
    if (error == EACCES || error == EPERM)
        return fail_in(ST_IO,
                       "%s/ckpt has a checkpoint that this user may not read, so nothing was "
                       "changed: give yourself permission to read it (ls -l shows its owner)",
                       run->path);
    return fail_in(ST_IO,
                   "%s/ckpt has a checkpoint that cannot be read now, so nothing was changed: "
                   "try again",
                   run->path);
}

static enum status list(const struct dir *run, struct arena *a, int64_t **ret_iters, int *ret_count)
{
    enum status st = ckpt_iters(run, a, ret_iters, ret_count);
    if (st == ST_OK) return ST_OK;
    bool other = errno == ENOTDIR || errno == ELOOP; /* a file, or a link that is not followed */
    return fail_in(st, "the checkpoints cannot be read, so nothing was changed: %s",
                   other ? "ckpt must be the folder that the training wrote; put it back"
                         : "give yourself permission, or try again when the disk can be read");
}

struct passed_over {
    int damaged, unreadable;
};

/* ST_OK: an older one may be taken. */
static enum status pass_over(const struct dir *run, int64_t iter, enum status st, int error,
                             struct passed_over *p)
{
    if (st == ST_IO && must_stop(error)) return fail_unreadable(run, error);
    log_warning("skipping checkpoint %lld, which %s: %s", (long long)iter,
                st == ST_FORMAT ? "is damaged" : "cannot be read", fail_message());
    if (st == ST_FORMAT)
        p->damaged++;
    else
        p->unreadable++;
    return ST_OK;
}

static enum status found_none(const struct dir *run, bool best, const struct passed_over *p)
{
    const char *what = best ? "of those with the lowest loss, none" : "none of its checkpoints";
    if (p->unreadable)
        return fail(ST_IO,
                    "%s/ckpt: %s could be read, and nothing was changed: the warnings above give "
                    "the reasons",
                    run->path, what);
    if (!p->damaged) return ST_OK;
    if (best)
        return fail(ST_FORMAT,
                    "%s/ckpt: no intact checkpoint is known to have the lowest loss: leave out "
                    "--best to use the last intact one",
                    run->path);
    return fail(ST_FORMAT,
                "all checkpoints in %s/ckpt are damaged: train again, in another --out_dir or in "
                "place of this run (--overwrite)",
                run->path);
}

/* Whether a checkpoint that could not be read does not exist any more: a training that runs has
 * removed it. Keeps the failure. */
static enum status is_gone(const struct dir *run, int64_t iter, bool *ret)
{
    char name[CKPT_NAME];
    bool there;
    struct failure kept;
    int error = errno;
    ckpt_name(name, iter);
    fail_keep(&kept);
    TRY(dir_has(run, name, &there));
    fail_restore(&kept);
    errno = error;
    *ret = !there;
    return ST_OK;
}

/* One try; `ret_changed`: a checkpoint was removed meanwhile. */
static enum status find(const struct dir *run, bool best, struct arena *a, struct checkpoint *ret,
                        bool *ret_found, bool *ret_changed)
{
    int64_t *iters;
    int count;
    struct passed_over p = {0};
    bool found = false;
    TRY(list(run, a, &iters, &count));
    for (int i = 0; i < count && (best || !found); i++) {
        struct checkpoint c;
        enum status st = ckpt_read(run, iters[i], true, a, &c);
        if (st != ST_OK) {
            TRY(is_gone(run, iters[i], ret_changed));
            if (*ret_changed) return ST_OK;
            TRY(pass_over(run, iters[i], st, errno, &p));
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

enum status checkpoint_find(const struct dir *run, bool best, struct arena *a,
                            struct checkpoint *ret, bool *ret_found)
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
                run->path);
}

enum status checkpoint_open(const char *path, struct arena *a, struct checkpoint *ret)
{
    struct checkpoint c = {0};
    if (strlen(path) > DIR_LONGEST) return fail(ST_USAGE, "%s: the path is too long", path);
    strcpy(c.name, path);
    strcpy(c.path, path);
    TRY(ckpt_read_folder(&c, true, a));
    *ret = c;
    return ST_OK;
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
        const char *name = arena_printf(&scratch, "%s/%s", c->name, state_tensor_file(f));
        st = safetensors_open_at(&s, c->at, name, &scratch);
        if (st == ST_OK) st = load[f](&s, path, tensors, count);
        safetensors_close(&s);
        arena_release(&scratch);
    }
    return st;
}

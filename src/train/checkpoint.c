#include "train/checkpoint.h"

#include "base/file.h"
#include "base/folder.h"
#include "base/log.h"
#include "train/state_file.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Folder names are padded so that `ls` shows them in order. */
static void iter_path(char path[1024], const char *run_dir, int64_t iter)
{
    int n = snprintf(path, 1024, "%s/ckpt/%06lld", run_dir, (long long)iter);
    BUG_IF(n >= 1024, "%s: the path is too long", run_dir); /* see path_fits */
}

static bool path_fits(const char *run_dir)
{
    return strlen(run_dir) < 900;
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
    return safetensors_write(arena_printf(a, "%s/%s", folder, state_tensor_file(STATE_MODEL)), list,
                             count, ret);
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
    return safetensors_write(arena_printf(a, "%s/%s", folder, state_tensor_file(STATE_OPTIMIZER)),
                             list, kept, ret);
}

static enum status write_files(const char *folder, const struct weights_tensor *tensors, int count,
                               const struct checkpoint_state *state, struct arena *a)
{
    struct safetensors_facts files[STATE_FILE_COUNT];
    TRY(write_model(folder, tensors, count, &files[STATE_MODEL], a));
    TRY(write_optimizer(folder, tensors, count, &files[STATE_OPTIMIZER], a));
    return state_write(folder, state, files);
}

/* --- finding ---------------------------------------------------------------------------------- */

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x > y ? -1 : x < y;
}

/* Iterations that have a folder, complete or not, newest first. */
static int list_iters(const char *run_dir, struct arena *a, int64_t **ret_iters)
{
    int count = 0, capacity = 0;
    int64_t *iters = NULL;
    DIR *dir = path_fits(run_dir) ? opendir(arena_printf(a, "%s/ckpt", run_dir)) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char *end, path[1024];
        int64_t iter = strtoll(e->d_name, &end, 10);
        if (iter < 0 || end == e->d_name || *end) continue;
        iter_path(path, run_dir, iter);
        if (strcmp(strrchr(path, '/') + 1, e->d_name) != 0) continue; /* not written by iter_path */
        ARENA_GROW(a, iters, count, capacity);
        iters[count++] = iter;
    }
    if (dir) closedir(dir);
    if (count) qsort(iters, (size_t)count, sizeof *iters, newest_first);
    *ret_iters = iters;
    return count;
}

static enum status verify_file(const char *folder, int i, const struct safetensors_facts *expected,
                               struct arena *a)
{
    const char *path = arena_printf(a, "%s/%s", folder, state_tensor_file(i));
    void *map;
    int64_t bytes;
    TRY(file_map(path, &map, &bytes));
    char digest[HASH_HEX] = "";
    if (bytes == expected->bytes) hash_bytes(map, bytes, digest);
    file_unmap(map, bytes);
    if (bytes != expected->bytes)
        return fail(ST_FORMAT, "%s has %lld bytes, expected %lld", path, (long long)bytes,
                    (long long)expected->bytes);
    if (strcmp(digest, expected->sha256) != 0)
        return fail(ST_FORMAT, "%s is corrupt: its SHA-256 is %.12s..., expected %.12s...", path,
                    digest, expected->sha256);
    return ST_OK;
}

/* `whole`: also verify the tensor files, not only the state. */
static enum status read_folder(struct checkpoint *c, bool whole, struct arena *a)
{
    struct safetensors_facts files[STATE_FILE_COUNT];
    TRY(state_read(c->path, a, &c->state, files));
    for (int i = 0; whole && i < STATE_FILE_COUNT; i++) TRY(verify_file(c->path, i, &files[i], a));
    return ST_OK;
}

static enum status read_checkpoint(const char *run_dir, int64_t iter, bool whole, struct arena *a,
                                   struct checkpoint *ret)
{
    struct checkpoint c;
    iter_path(c.path, run_dir, iter);
    TRY(read_folder(&c, whole, a));
    if (c.state.iter != iter)
        return fail(ST_FORMAT, "%s holds iteration %lld", c.path, (long long)c.state.iter);
    *ret = c;
    return ST_OK;
}

enum status checkpoint_open(const char *path, struct arena *a, struct checkpoint *ret)
{
    struct checkpoint c;
    if (strlen(path) >= sizeof c.path) return fail(ST_USAGE, "%s: the path is too long", path);
    strcpy(c.path, path);
    TRY(read_folder(&c, true, a));
    *ret = c;
    return ST_OK;
}

bool checkpoint_exists(const char *run_dir)
{
    struct arena scratch = {};
    int64_t *iters;
    int count = list_iters(run_dir, &scratch, &iters);
    arena_release(&scratch);
    return count > 0;
}

bool checkpoint_find(const char *run_dir, bool best, struct arena *a, struct checkpoint *ret)
{
    int64_t *iters;
    int count = list_iters(run_dir, a, &iters);
    bool found = false;
    for (int i = 0; i < count; i++) {
        struct checkpoint c;
        if (read_checkpoint(run_dir, iters[i], true, a, &c) != ST_OK) {
            log_warning("skipping checkpoint %lld: %s", (long long)iters[i], fail_message());
            continue;
        }
        if (!best) {
            *ret = c;
            return true;
        }
        bool is_best = c.state.best_iter == iters[i];
        if (is_best && (!found || c.state.best_val_loss < ret->state.best_val_loss)) {
            *ret = c;
            found = true;
        }
    }
    return found;
}

/* --- pruning ---------------------------------------------------------------------------------- */

/* The newest checkpoint that had the best loss when it was saved; -1: none. */
static int64_t best_of(const char *run_dir, const int64_t *iters, int count, struct arena *a)
{
    int64_t best = -1;
    double loss = INFINITY;
    for (int i = 0; i < count; i++) {
        struct checkpoint c;
        if (read_checkpoint(run_dir, iters[i], false, a, &c) != ST_OK) continue;
        if (c.state.best_iter != iters[i] || !(c.state.best_val_loss < loss)) continue;
        best = iters[i];
        loss = c.state.best_val_loss;
    }
    return best;
}

static void remove_folder(const char *path)
{
    if (file_remove_dir(path) != ST_OK)
        log_warning("could not remove an old checkpoint: %s", fail_message());
}

static void remove_leftovers(const char *run_dir, struct arena *a)
{
    const char *above = arena_printf(a, "%s/ckpt", run_dir);
    DIR *dir = opendir(above);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        size_t n = strlen(e->d_name), suffix = strlen(FOLDER_TEMPORARY);
        if (n > suffix && strcmp(e->d_name + n - suffix, FOLDER_TEMPORARY) == 0)
            remove_folder(arena_printf(a, "%s/%s", above, e->d_name));
    }
    if (dir) closedir(dir);
}

/* Runs only after the new checkpoint is complete. The previous one is kept as a spare in case the
 * new one is corrupted later, so it must be intact; if it is not, an older one is kept instead. A
 * folder that cannot be removed wastes disk space but does not fail the run. */
static void prune(const char *run_dir, int64_t now, struct arena *a)
{
    int64_t *iters;
    int count = list_iters(run_dir, a, &iters);
    int later = 0;
    while (later < count && iters[later] > now) later++;
    int64_t best = best_of(run_dir, iters + later, count - later, a);
    int before = later + 1;
    for (struct checkpoint c; before < count; before++)
        if (read_checkpoint(run_dir, iters[before], true, a, &c) == ST_OK) break;
    for (int i = 0; i < count; i++) {
        if (i == later || i == before || iters[i] == best) continue;
        char path[1024];
        iter_path(path, run_dir, iters[i]);
        remove_folder(path);
    }
    remove_leftovers(run_dir, a);
}

static enum status save(const char *run_dir, const struct weights_tensor *tensors, int count,
                        const struct checkpoint_state *state, struct arena *a)
{
    if (!path_fits(run_dir)) return fail(ST_USAGE, "%s: the path is too long", run_dir);
    char path[1024];
    iter_path(path, run_dir, state->iter);
    struct folder_writer w;
    TRY(folder_writer_open(&w, path));
    enum status st = write_files(w.temporary, tensors, count, state, a);
    if (st != ST_OK) {
        folder_writer_discard(&w);
        return st;
    }
    TRY(folder_writer_commit(&w));
    prune(run_dir, state->iter, a);
    return ST_OK;
}

enum status checkpoint_save(const char *run_dir, const struct weights_tensor *tensors, int count,
                            const struct checkpoint_state *state)
{
    struct arena scratch = {};
    enum status st = save(run_dir, tensors, count, state, &scratch);
    arena_release(&scratch);
    return st == ST_OK
               ? st
               : fail_in(st, "the checkpoint of iteration %lld was not saved (older ones are kept)",
                         (long long)state->iter);
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
    memcpy(ret_values, found->data, (size_t)found->bytes);
    return ST_OK;
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

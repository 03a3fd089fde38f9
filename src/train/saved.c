#include "train/saved.h"

#include "base/file.h"
#include "base/log.h"
#include "base/shell.h"
#include "base/str.h"
#include "base/threads.h"
#include "data/meta.h"
#include "engine/device.h"
#include "engine/weights.h"
#include "exchange/published.h"
#include "model/model.h"
#include "train/origin.h"
#include "train/rundir.h"
#include "train/state_file.h"

#include <stdio.h>
#include <string.h>

struct differences {
    const char *run_dir;
    unsigned fixed; /* keys with these flags may not change */
    enum status st;
};

static void compare_key(void *user, const char *key, const char *before, const char *now)
{
    struct differences *d = user;
    bool chosen = !strcmp(before, "auto"); /* nothing was trained yet, or it would be known */
    if (config_key_flags(key) & d->fixed && !chosen && d->st == ST_OK)
        d->st =
            fail(ST_USAGE, "the run in %s has %s = %s, not %s: leave that, or train another run",
                 d->run_dir, key, before, now);
}

enum status saved_check_keys(const struct config *before, const struct config *now, bool training,
                             const char *run_dir)
{
    struct differences d = {run_dir, training ? KEY_MODEL | KEY_RUN : KEY_MODEL, ST_OK};
    config_diff(before, now, compare_key, &d);
    return d.st;
}

enum status saved_check_data(const char *run, const struct dataset *d, bool other_text,
                             struct arena *a)
{
    struct meta m;
    const char *path = arena_printf(a, "%s/vocabulary.json", run);
    bool exists;
    TRY(file_has(path, &exists));
    if (!exists) return ST_OK;
    TRY(meta_read(&m, path, a));
    bool equal = true;
    if (!vocabulary_same(&m.vocabulary, &d->vocabulary))
        return fail(ST_USAGE,
                    "the vocabulary of data set %s differs from that of the run in %s: recreate it "
                    "from the text of that run, or train another run",
                    d->name, run);
    for (int i = 0; i < SPLIT_COUNT; i++) equal &= !strcmp(m.split[i].sha256, d->sha256[i]);
    if (equal) return ST_OK;
    if (other_text) {
        log_warning("the text of data set %s differs from that of the run in %s", d->name, run);
        return ST_OK;
    }
    return fail(
        ST_USAGE,
        "the text of data set %s has changed since the run in %s began (training split %.12s..., "
        "not %.12s...): recreate it from the text of that run, or train another run; "
        "`strobe eval` takes it as it is if --dataset names it",
        d->name, run, d->sha256[SPLIT_TRAIN], m.split[SPLIT_TRAIN].sha256);
}

enum status saved_check_eval(const struct saved_run *s, const struct dataset *d, bool named,
                             struct arena *a)
{
    if (!s->foreign) return saved_check_data(s->run_dir, d, named, a);
    if (d->vocabulary.size > s->vocabulary.size)
        return fail(ST_USAGE,
                    "data set %s has %d tokens, but %s only %d: make it with its tokenizer",
                    d->name, d->vocabulary.size, s->foreign, s->vocabulary.size);
    if (vocabulary_differs(&s->vocabulary, &d->vocabulary))
        log_warning("data set %s has other tokens than %s: its losses mean nothing", d->name,
                    s->foreign);
    return ST_OK;
}

static void print_difference(void *user, const char *key, const char *in_checkpoint,
                             const char *in_file)
{
    struct str *s = user;
    if (config_key_flags(key) & KEY_PLACE) return;
    str_printf(s, "%s%s = %s, not %s", s->len ? "; " : "", key, in_checkpoint, in_file);
}

/* Warns if config.conf differs from the checkpoint's configuration. Users may edit the file; it is
 * used only for a run without a checkpoint. */
static enum status compare_file(const char *run, const struct checkpoint *c,
                                const struct config *own, struct arena *a)
{
    const char *path = arena_printf(a, "%s/config.conf", run);
    bool exists;
    TRY(file_has(path, &exists));
    if (!exists) return ST_OK;
    struct config file;
    config_init(&file);
    if (config_read(&file, path, a) != ST_OK) {
        log_warning("%s; the configuration in %s is used", fail_message(), c->path);
        return ST_OK;
    }
    struct str s = {0};
    config_diff(own, &file, print_difference, &s);
    if (s.len)
        log_warning("%s differs from the configuration in %s, which is used: %s", path, c->path,
                    str_text(&s));
    str_release(&s);
    return ST_OK;
}

/* Refuses a checkpoint that was copied from another run, by the identity of the run. */
static enum status check_run(const char *run, const struct checkpoint *c, struct arena *a)
{
    const char *own;
    TRY(rundir_identity(run, a, &own));
    if (!own || !c->state.run || !strcmp(own, c->state.run)) return ST_OK;
    return fail(ST_USAGE,
                "%s is a checkpoint of another run, so nothing was changed: move it out of %s/ckpt",
                c->path, run);
}

/* A checkpoint without the key init_weights_only is from a version in which the padding tokens of
 * vocab_size did not take part in the softmax. */
static void warn_of_vocabulary(const struct checkpoint *c, const struct config *own)
{
    if (own->model.vocab_size && !strstr(c->state.config, "init_weights_only"))
        log_warning("%s was trained when tokens that only vocab_size = %lld adds were left out of "
                    "the softmax; now they take part, so losses are higher",
                    c->path, (long long)own->model.vocab_size);
}

enum status saved_config(const char *run, const struct checkpoint *c, struct config *ret,
                         struct arena *a)
{
    const char *name = arena_printf(a, "%s/state.json", c->path);
    config_init(ret);
    TRY(config_read_memory(ret, name, c->state.config, a));
    warn_of_vocabulary(c, ret);
    TRY(check_run(run, c, a));
    return compare_file(run, c, ret, a);
}

enum status saved_check_size(const struct checkpoint *c, const struct config *own, struct arena *a)
{
    struct safetensors s = {0};
    struct model m;
    int64_t stored = 0;
    const char *path = arena_printf(a, "%s/%s", c->path, state_tensor_file(STATE_MODEL));
    enum status st = safetensors_open(&s, path, a);
    if (st == ST_ABSENT) return ST_OK; /* a running training removed it: loading selects again */
    TRY(st);
    for (int i = 0; i < s.count; i++) stored += s.tensor[i].bytes;
    safetensors_close(&s);
    model_init(&m, &own->model, 1, 0, a); /* the smallest vocabulary */
    int64_t needed = model_count(&m, true) * (int64_t)sizeof(float);
    if (stored >= needed) return ST_OK;
    return fail(ST_FORMAT,
                "%s has %lld bytes of weights, but the model of its configuration has %lld or "
                "more: the checkpoint is of a different model",
                path, (long long)stored, (long long)needed);
}

static enum status find_checkpoint(struct saved_run *s, struct arena *a)
{
    bool found;
    TRY(checkpoint_find(s->run_dir, s->best, a, &s->checkpoint, &found));
    if (found) return ST_OK;
    if (s->best) TRY(checkpoint_find(s->run_dir, false, a, &s->checkpoint, &found));
    if (found && s->checkpoint.state.best_iter == 0)
        return fail(ST_USAGE,
                    "the lowest validation loss of %s is that of iteration 0, before training, of "
                    "which there is no checkpoint: leave out --best to use the last one",
                    s->run_dir);
    return fail(
        ST_IO,
        "%s has no %scheckpoint yet: continue with `strobe train %s --init_from=resume`, and "
        "with --max_iters=N if it was trained with --max_iters=0",
        s->run_dir, s->best ? "evaluated " : "", shell_word(s->run_dir, a));
}

/* Whether a folder has a file: false if it is missing or not a folder, an error if unknown. */
static enum status has(const char *folder, const char *name, bool *ret, struct arena *a)
{
    enum status st = file_has(arena_printf(a, "%s/%s", folder, name), ret);
    if (st == ST_FORMAT) *ret = false;
    return st == ST_FORMAT ? ST_OK : st;
}

static enum status open_foreign(struct saved_run *s, const char *word, bool best, struct arena *a)
{
    struct exchange_model m;
    if (best) return fail(ST_USAGE, "%s is a single model: leave out --best", word);
    TRY(exchange_open(&m, word, a));
    *s = (struct saved_run){.run_dir = word, .foreign = word, .config = m.config};
    s->checkpoint.path = arena_strdup(a, m.path);
    s->checkpoint.state.iter = m.iter;
    enum status st = exchange_vocabulary(&m, &s->vocabulary, a);
    exchange_close(&m);
    return st;
}

enum status saved_open(struct saved_run *s, const char *path, bool best, struct arena *a)
{
    bool is_checkpoint, has_config, has_ckpt;
    TRY(has(path, "state.json", &is_checkpoint, a));
    *s = (struct saved_run){.run_dir = is_checkpoint ? arena_printf(a, "%s/../..", path) : path,
                            .searched = !is_checkpoint,
                            .best = best};
    TRY(has(s->run_dir, "config.conf", &has_config, a));
    TRY(has(s->run_dir, "ckpt", &has_ckpt, a));
    if (!has_config && !has_ckpt && exchange_is(path, a)) return open_foreign(s, path, best, a);
    if (!has_config && !has_ckpt)
        return fail(ST_USAGE,
                    "%s is neither a run directory nor a checkpoint in one, nor a model of another "
                    "program (%s, a folder of Hugging Face): `strobe train` creates runs",
                    path, published_names(a));
    if (is_checkpoint && best)
        return fail(ST_USAGE,
                    "%s is a single checkpoint: give the run directory to use the best one", path);
    TRY(is_checkpoint ? checkpoint_open(path, a, &s->checkpoint) : find_checkpoint(s, a));
    TRY(saved_config(s->run_dir, &s->checkpoint, &s->config, a));
    return vocabulary_read(&s->vocabulary, arena_printf(a, "%s/vocabulary.json", s->run_dir), a);
}

enum status saved_override(struct saved_run *s, const struct config *c)
{
    struct config before = s->config;
    s->config = *c;
    device_adapt(&s->config, &before);
    TRY(model_check(&s->config));
    if (s->foreign) return origin_check_keys(s->foreign, &before.model, &s->config);
    return saved_check_keys(&before, &s->config, false, s->run_dir);
}

static enum status load_foreign(const struct saved_run *s, struct engine *e,
                                const struct weights_tensor *tensors, struct arena *a)
{
    struct exchange_model m;
    int64_t iter;
    TRY(exchange_open(&m, s->foreign, a));
    enum status st = origin_load(&m, e, tensors, &iter);
    exchange_close(&m);
    return st;
}

/* A running training may remove the selected checkpoint before it is read; then selects again. */
static enum status load(struct saved_run *s, const struct weights_tensor *tensors, int count,
                        struct arena *a)
{
    enum { LOAD_TRIES = 10 };
    enum status st = checkpoint_load(&s->checkpoint, tensors, count);
    for (int i = 1; i < LOAD_TRIES && s->searched && st == ST_ABSENT; i++) {
        TRY(find_checkpoint(s, a));
        st = checkpoint_load(&s->checkpoint, tensors, count);
    }
    if (st == ST_ABSENT) return fail_in(st, "the checkpoint was removed: try again");
    return st;
}

enum status saved_engine(struct saved_run *s, unsigned kinds, struct engine *ret_engine,
                         struct arena *a)
{
    const struct config *c = &s->config;
    threads_set(c->plan.threads);
    if (!s->foreign) TRY(saved_check_size(&s->checkpoint, c, a));
    TRY(engine_open(ret_engine, c, s->vocabulary.size, kinds, device_backend(c), a));
    const struct weights_tensor *tensors = weights_tensors(ret_engine, a);
    enum status st = s->foreign ? load_foreign(s, ret_engine, tensors, a)
                                : load(s, tensors, ret_engine->program.model.parameters, a);
    if (st == ST_OK && !s->foreign) st = weights_bring(ret_engine, tensors);
    if (st != ST_OK) engine_close(ret_engine);
    return st;
}

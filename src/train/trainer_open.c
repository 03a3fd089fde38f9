/* Starts a run: in an empty directory, in place of an older run, or from the last checkpoint. */
#include "train/trainer.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/shell.h"
#include "base/str.h"
#include "engine/environment.h"
#include "engine/weights.h"
#include "train/disk.h"
#include "train/origin.h"
#include "train/saved.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- the claim -------------------------------------------------------------------------------- */

/* Reads the configuration of the run to continue: from the checkpoint, else from config.conf. */
static enum status read_before(struct trainer *t)
{
    const char *dir = t->run.lock.path;
    bool exists;
    struct config *before = ARENA_NEW(t->arena, struct config, 1);
    if (t->found) {
        TRY(saved_config(dir, &t->last, before, t->arena));
        t->before = before;
        return ST_OK;
    }
    const char *path = arena_printf(t->arena, "%s/config.conf", dir);
    TRY(file_has(path, &exists));
    if (!exists) return ST_OK;
    config_init(before);
    TRY(config_read(before, path, t->arena));
    t->before = before;
    return ST_OK;
}

/* Reports that the directory has a run, and its progress if that can be read. */
static enum status fail_taken(const char *dir, struct arena *a)
{
    const char *state = "", *more = "";
    bool complete;
    int64_t last;
    if (rundir_progress(dir, &complete, &last) == ST_OK) {
        const char *most =
            last < 0 ? "" : arena_printf(a, " after %lld iterations", (long long)last);
        const char *kept =
            last < 0 ? "it has no checkpoint"
                     : arena_printf(a, "its last checkpoint is of iteration %lld", (long long)last);
        state = complete ? arena_printf(a, ", which finished%s", most)
                         : arena_printf(a, ", which did not finish (%s)", kept);
        more = complete ? " --max_iters=MORE" : "";
    }
    return fail(ST_USAGE,
                "%s already contains a run%s: continue it with `strobe train %s "
                "--init_from=resume%s`, choose another --out_dir, or replace it (--overwrite)",
                dir, state, shell_word(dir, a), more);
}

/* Refuses to restart a finished run without checkpoints: that would destroy its other files. */
static enum status check_lost(const struct trainer *t)
{
    bool complete = false;
    if (t->found || !t->before || t->before->train.max_iters == 0) return ST_OK;
    TRY(rundir_is_complete(t->run.lock.path, &complete));
    if (!complete) return ST_OK;
    return fail(ST_FORMAT,
                "the run in %s finished, but its checkpoints are gone, and nothing was changed: "
                "put the folder ckpt back, or replace the run (--overwrite)",
                t->run.lock.path);
}

static enum status look(struct trainer *t, bool resume, bool overwrite)
{
    const char *dir = t->run.lock.path;
    bool has_run;
    TRY(rundir_look(dir, &has_run));
    if (resume && !has_run)
        return fail(ST_USAGE,
                    "%s contains no run to continue: start one without --init_from=resume", dir);
    if (has_run && !resume && !overwrite) return fail_taken(dir, t->arena);
    if (has_run && !resume) return rundir_check_clear(dir);
    if (!resume) return ST_OK;
    TRY(checkpoint_find(dir, false, t->arena, &t->last, &t->found));
    TRY(read_before(t));
    return check_lost(t);
}

enum status trainer_claim(struct trainer *t, const char *out_dir, bool resume, bool overwrite,
                          struct arena *a)
{
    *t = (struct trainer){.arena = a,
                          .saved = -1,
                          .turns = TURN_NONE,
                          .log.fd = -1,
                          .run.lock.fd = -1,
                          .claimed_ns = clock_ns()};
    t->summary = (struct run_summary){
        .final_train_loss = NAN, .final_val_loss = NAN, .best_val_loss = INFINITY, .best_iter = -1};
    size_t n = strlen(out_dir);
    while (n > 1 && out_dir[n - 1] == '/') n--;
    TRY(rundir_claim(&t->run, arena_printf(a, "%.*s", (int)n, out_dir), !resume));
    t->run_word = shell_word(t->run.lock.path, a);
    enum status st = look(t, resume, overwrite);
    if (st == ST_OK)
        rundir_clean(t->run.lock.path, a);
    else
        trainer_close(t);
    return st;
}

/* --- the start -------------------------------------------------------------------------------- */

static void log_change(void *user, const char *key, const char *before, const char *now)
{
    bool *changed = user;
    if (config_key_flags(key) & KEY_PLACE) return;
    *changed = true;
    log_info("goes on with %s = %s; until now it was %s", key, now, before);
}

/* *ret_changed: a key has another value than in the run to continue. */
static enum status check_same_run(const struct trainer *t, bool *ret_changed)
{
    *ret_changed = false;
    if (!t->before) return ST_OK; /* checkpoint_load compares the shapes in any case */
    TRY(saved_check_keys(t->before, t->config, true, t->run.lock.path));
    config_diff(t->before, t->config, log_change, ret_changed);
    return ST_OK;
}

static enum status check_iterations(const struct trainer *t)
{
    if (!t->found || t->last.state.iter <= t->config->train.max_iters) return ST_OK;
    return fail(ST_USAGE,
                "the run in %s has already done %lld iterations: set --max_iters to %lld or more",
                t->run.lock.path, (long long)t->last.state.iter, (long long)t->last.state.iter);
}

static enum status load_last(struct trainer *t, bool changed)
{
    const struct checkpoint_state *s = &t->last.state;
    if (!t->found) {
        log_info("%s has no checkpoint yet: starting from iteration 0", t->run.lock.path);
        return ST_OK;
    }
    TRY(checkpoint_load(&t->last, t->tensors, t->learner.engine.program.model.parameters));
    TRY(ranks_bring_weights(&t->ranks, &t->learner.engine, t->tensors));
    t->iter = t->begun = s->iter;
    t->saved = changed ? -1 : s->iter; /* -1: the next save stores the new configuration */
    t->summary.best_val_loss = s->best_val_loss;
    t->summary.best_iter = s->best_iter;
    log_info("continuing from %s", t->last.path);
    if (t->learner.engine.storage.bytes[STORAGE_AMAX])
        log_info("dtype=float8: checkpoints do not contain the amax history, so "
                 "the results are close to those of an uninterrupted run but not bitwise equal");
    return ST_OK;
}

static const char *in_dir(struct trainer *t, const char *name)
{
    return arena_printf(t->arena, "%s/%s", t->run.lock.path, name);
}

static enum status write_dir(struct trainer *t, const struct environment *environment)
{
    const char *dir = t->run.lock.path;
    TRY(rundir_write_config(dir, &t->stored, t->identity));
    /* the token texts, so that text can be generated without the data set */
    TRY(rundir_write_text(dir, "vocabulary.json", t->learner.dataset.meta));
    TRY(rundir_write_plan(dir, &t->learner.engine.program));
    if (environment) TRY(environment_write(environment, in_dir(t, "env.json")));
    return runlog_open(&t->log, in_dir(t, "log.jsonl"), t->iter);
}

static enum status continue_run(struct trainer *t, bool changed)
{
    TRY(saved_check_data(t->run.lock.path, &t->learner.dataset, false, t->arena));
    TRY(load_last(t, changed));
    if (t->begun == t->config->train.max_iters)
        TRY(rundir_is_complete(t->run.lock.path, &t->finished));
    if (t->finished) return ST_OK; /* change nothing */
    TRY(disk_check(t));
    t->wrote = true;
    /* The last save may have been killed before it removed old checkpoints, and no save follows. */
    if (t->saved == t->config->train.max_iters)
        checkpoint_prune(t->run.lock.path, t->saved, NULL, t->arena);
    return rundir_reopen(t->run.lock.path);
}

/* Loads the weights that init_from names and, if they come from a training, its state. */
static enum status load_origin(struct trainer *t)
{
    struct learner *l = &t->learner;
    struct exchange_model m;
    if (!t->origin) return ST_OK;
    TRY(origin_open(&m, t->origin, t->config, &l->dataset.vocabulary, t->arena));
    enum status st = origin_load(&m, &l->engine, t->tensors, &t->iter);
    exchange_close(&m);
    TRY(st);
    t->begun = t->iter;
    if (t->iter)
        log_info("beginning with the weights and the optimizer's state of %s, at iteration %lld",
                 m.path, (long long)t->iter);
    else
        log_info("beginning with the weights of %s", m.path);
    return ST_OK;
}

static enum status begin(struct trainer *t, bool changed, const struct environment *environment)
{
    const struct config *c = t->config;
    struct learner *l = &t->learner;
    TRY(evaluator_init(&t->evaluator, &l->engine, &l->dataset, &l->hooks, t->arena));
    t->facts = facts_of(&l->engine.program);
    t->tensors = weights_tensors(&l->engine, t->arena);
    if (config_resumes(c)) {
        TRY(continue_run(t, changed));
        if (t->finished) return ST_OK;
        if (!t->found) TRY(load_origin(t));
    } else {
        TRY(load_origin(t));
        TRY(disk_check(t));
        t->wrote = true;
        TRY(rundir_clear(t->run.lock.path));
    }
    if (t->origin) TRY(ranks_bring_weights(&t->ranks, &l->engine, t->tensors));
    int64_t left = c->train.max_iters - t->iter;
    t->step_ms = ARENA_NEW(t->arena, double, (left < TRAINER_TIMED ? left : TRAINER_TIMED) + 1);
    return write_dir(t, environment);
}

static void make_absolute(const char **path, struct arena *a)
{
    char *found = realpath(*path, NULL);
    if (found) *path = arena_strdup(a, found);
    free(found);
}

/* Stores absolute paths of the data and of init_from, so that they work from any folder; a run that
 * is continued keeps its first init_from. */
static void store_places(struct trainer *t)
{
    const char **origin = &t->stored.train.init_from;
    t->stored = *t->config;
    make_absolute(&t->stored.data.data_dir, t->arena);
    if (config_resumes(t->config)) *origin = t->before ? t->before->train.init_from : INIT_SCRATCH;
    if (t->origin) *origin = t->origin;
}

/* Finds the model to start from; a run without a checkpoint starts from its first init_from
 * again. */
static enum status find_origin(struct trainer *t)
{
    const char *dir = t->run.lock.path;
    const char *word = config_origin(t->config);
    if (config_resumes(t->config) && !t->found && t->before) word = config_origin(t->before);
    if (!word) return ST_OK;
    TRY(origin_resolve(word, &t->origin, t->arena));
    char *here = realpath(dir, NULL);
    size_t n = here ? strlen(here) : 0;
    bool inside = n && !strncmp(t->origin, here, n) && t->origin[n] == '/';
    free(here);
    if (!inside) return ST_OK;
    return fail(ST_USAGE,
                "init_from is in %s, which the new run would replace: choose another --out_dir, or "
                "continue the run (--init_from=resume)",
                dir);
}

/* The identity of a run is a digest of its data and its first settings, without max_iters and
 * paths. A resumed run keeps its identity. */
static enum status identify(struct trainer *t)
{
    struct str s = {0};
    struct config c = *t->config;
    char digest[HASH_HEX];
    if (t->found) t->identity = t->last.state.run;
    if (!t->identity && config_resumes(&c))
        TRY(rundir_identity(t->run.lock.path, t->arena, &t->identity));
    if (t->identity) return ST_OK;
    c.train.max_iters = 0;
    c.train.init_from = t->origin ? t->origin : INIT_SCRATCH;
    c.train.out_dir = c.data.data_dir = "";
    config_print(&c, &s);
    for (int i = 0; i < SPLIT_COUNT; i++) str_append(&s, t->learner.dataset.sha256[i]);
    hash_bytes(str_text(&s), s.len, digest);
    t->identity = arena_printf(t->arena, "%.16s", digest);
    str_release(&s);
    return ST_OK;
}

static enum status check_and_begin(struct trainer *t, const struct environment *environment)
{
    const struct config *c = t->config;
    bool changed;
    TRY(model_check_trained(&c->model));
    TRY(check_same_run(t, &changed));
    TRY(check_iterations(t));
    if (t->found) TRY(saved_check_size(&t->last, c, t->arena));
    TRY(find_origin(t));
    store_places(t);
    struct str text = {0};
    config_print(&t->stored, &text);
    t->config_text = arena_strdup(t->arena, str_text(&text));
    str_release(&text);
    TRY(ranks_open(&t->ranks, c));
    unsigned more = 1u << GRAPH_EVAL | 1u << GRAPH_LOGITS | 1u << GRAPH_DECODE;
    TRY(learner_open(&t->learner, c, more, t->ranks.communicator, t->arena));
    TRY(ranks_agree(&t->ranks, &t->learner));
    TRY(identify(t));
    TRY(begin(t, changed, environment));
    if (!t->finished) config_log_ineffective(c, t->begun);
    return ST_OK;
}

enum status trainer_begin(struct trainer *t, const struct config *c,
                          const struct environment *environment)
{
    t->config = c;
    enum status st = check_and_begin(t, environment);
    if (st != ST_OK) trainer_close(t);
    return st;
}

enum status trainer_open(struct trainer *t, const struct config *c, const struct trainer_options *o,
                         struct arena *a)
{
    bool resume = config_resumes(c);
    TRY(trainer_claim(t, c->train.out_dir, resume, o->overwrite, a));
    crew_set_threads(c);
    return trainer_begin(t, c, o->environment);
}

void trainer_close(struct trainer *t)
{
    struct failure kept;
    int64_t iter;
    fail_keep(&kept);
    if (saver_wait(&t->saver, &iter) != ST_OK) log_warning("%s", fail_message());
    if (t->log.fd >= 0) runlog_close(&t->log);
    evaluator_close(&t->evaluator);
    crew_end(&t->ranks);
    learner_close(&t->learner);
    crew_close(&t->ranks);
    rundir_release(&t->run, !t->wrote);
    fail_restore(&kept);
}

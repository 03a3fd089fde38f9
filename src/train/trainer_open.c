/* Starts a run: in an empty directory, in place of an older run, or from the last checkpoint. */
#include "train/trainer.h"

#include "base/file.h"
#include "base/str.h"
#include "base/threads.h"
#include "engine/environment.h"
#include "engine/weights.h"
#include "train/saved.h"

#include <math.h>
#include <unistd.h>

static void log_change(void *, const char *key, const char *before, const char *now)
{
    if (!(config_key_flags(key) & KEY_PLACE))
        log_info("goes on with %s = %s; until now it was %s", key, now, before);
}

static enum status check_same_run(const struct config *c, struct arena *a)
{
    const char *dir = c->train.out_dir, *path = arena_printf(a, "%s/config.conf", dir);
    if (!file_exists(path)) return ST_OK; /* checkpoint_load compares the shapes in any case */
    struct config before;
    config_init(&before);
    TRY(config_read(&before, path, a));
    TRY(saved_check_keys(&before, c, true, dir));
    config_diff(&before, c, log_change, NULL);
    return ST_OK;
}

/* Checks that the contents of the directory match the request; changes nothing. */
static enum status check_dir(const struct config *c, bool overwrite, struct arena *a)
{
    const char *dir = c->train.out_dir;
    bool has_run = rundir_has_run(dir), resumes = c->train.init_from == INIT_RESUME;
    if (has_run && resumes) return check_same_run(c, a);
    if (resumes)
        return fail(ST_USAGE,
                    "%s contains no run to continue: start one without --init_from=resume", dir);
    if (has_run && !overwrite)
        return fail(ST_USAGE,
                    "%s already contains a run: continue it (--init_from=resume), choose another "
                    "--out_dir, or replace it (--overwrite)",
                    dir);
    return ST_OK;
}

static enum status load_last(struct trainer *t)
{
    const struct config_train *c = &t->config->train;
    struct checkpoint found;
    if (!checkpoint_find(c->out_dir, false, t->arena, &found)) {
        if (checkpoint_exists(c->out_dir))
            return fail(ST_FORMAT,
                        "all checkpoints in %s/ckpt are corrupt: replace the run (--overwrite)",
                        c->out_dir);
        log_info("%s has no checkpoint yet: starting from iteration 0", c->out_dir);
        return ST_OK;
    }
    if (found.state.iter > c->max_iters)
        return fail(ST_USAGE,
                    "the run in %s has already done %lld iterations: set --max_iters to no "
                    "less",
                    c->out_dir, (long long)found.state.iter);
    TRY(checkpoint_load(&found, t->tensors, t->learner.engine.program.model.parameters));
    TRY(weights_bring(&t->learner.engine, t->tensors));
    t->iter = t->begun = t->saved = found.state.iter;
    t->summary.best_val_loss = found.state.best_val_loss;
    t->summary.best_iter = found.state.best_iter;
    log_info("continuing from %s", found.path);
    if (t->learner.engine.storage.bytes[STORAGE_AMAX])
        log_info("dtype=float8: checkpoints do not contain the amax history, so "
                 "the results are close to those of an uninterrupted run but not bitwise equal");
    return ST_OK;
}

/* If the data set was recreated from another text, the token ids no longer match the weights. */
static enum status check_same_tokens(const struct trainer *t)
{
    const char *dir = t->config->train.out_dir;
    const char *path = arena_printf(t->arena, "%s/vocabulary.json", dir);
    struct vocabulary before;
    if (!file_exists(path)) return ST_OK;
    TRY(vocabulary_read(&before, path, t->arena));
    return saved_check_vocabulary(&before, &t->learner.dataset, dir);
}

static enum status write_dir(struct trainer *t, const struct environment *environment)
{
    const char *dir = t->config->train.out_dir;
    TRY(rundir_write_config(dir, t->config));
    /* the token texts: text is then generated without the data set */
    TRY(rundir_write_text(dir, "vocabulary.json", t->learner.dataset.meta));
    TRY(rundir_write_plan(dir, &t->learner.engine.program));
    if (environment)
        TRY(environment_write(environment, arena_printf(t->arena, "%s/env.json", dir)));
    return runlog_open(&t->log, arena_printf(t->arena, "%s/log.jsonl", dir), t->iter);
}

static enum status begin(struct trainer *t, const struct environment *environment)
{
    const struct config *c = t->config;
    const char *dir = c->train.out_dir;
    struct learner *l = &t->learner;
    TRY(evaluator_init(&t->evaluator, &l->engine, &l->dataset, &l->hooks, t->arena));
    t->facts = facts_of(&l->engine.program);
    t->tensors = weights_tensors(&l->engine, t->arena);
    enum status made = file_make_dirs(dir);
    if (made != ST_OK)
        return fail_in(made, "cannot create the run directory (choose another --out_dir)");
    TRY(rundir_lock(dir, &t->lock));
    if (c->train.init_from == INIT_RESUME) {
        TRY(check_same_tokens(t));
        TRY(load_last(t));
        t->finished = t->begun == c->train.max_iters && rundir_is_complete(dir);
        if (t->finished) return ST_OK; /* change nothing */
        TRY(rundir_reopen(dir));
    } else {
        TRY(rundir_clear(dir));
    }
    int64_t left = c->train.max_iters - t->iter;
    t->step_ms = ARENA_NEW(t->arena, double, (left < TRAINER_TIMED ? left : TRAINER_TIMED) + 1);
    return write_dir(t, environment);
}

enum status trainer_open(struct trainer *t, const struct config *c, const struct trainer_options *o,
                         struct arena *a)
{
    *t = (struct trainer){.config = c, .arena = a, .saved = -1, .log.fd = -1, .lock = -1};
    t->summary = (struct run_summary){
        .final_train_loss = NAN, .final_val_loss = NAN, .best_val_loss = INFINITY, .best_iter = -1};
    TRY(model_check_trained(&c->model));
    struct str text = {0};
    config_print(c, &text);
    t->config_text = arena_strdup(a, str_text(&text));
    str_release(&text);
    threads_set(c->plan.threads);
    TRY(check_dir(c, o->overwrite, a));
    unsigned more = 1u << GRAPH_EVAL | 1u << GRAPH_LOGITS | 1u << GRAPH_DECODE;
    TRY(learner_open(&t->learner, c, more, a));
    enum status st = begin(t, o->environment);
    if (st != ST_OK) trainer_close(t);
    return st;
}

void trainer_close(struct trainer *t)
{
    if (t->log.fd >= 0) runlog_close(&t->log);
    if (t->lock >= 0) close(t->lock);
    t->lock = -1;
    evaluator_close(&t->evaluator);
    learner_close(&t->learner);
}

#include "train/trainer.h"

#include "base/clock.h"
#include "base/heap.h"
#include "base/interrupt.h"
#include "base/stats.h"
#include "base/str.h"
#include "engine/weights.h"
#include "train/sampler.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { WARM_UP = 5 }; /* initial steps that medians exclude */

/* --- telemetry of the device ------------------------------------------------------------------ */

static void open_gauge(struct trainer *t)
{
    const struct engine *e = &t->learner.engine;
    int64_t interval_ms = t->config->train.sample_interval;
    if (!interval_ms) return;
    if (gauge_open(&t->gauge, e->backend, e->context, interval_ms) != ST_OK)
        log_info("device telemetry (clock, power) is not sampled: %s", fail_message());
}

static void set_working(struct trainer *t, bool working)
{
    if (t->gauge) gauge_work(t->gauge, working);
}

static enum status log_samples(struct trainer *t, bool all)
{
    struct gauge_reading r;
    while (t->gauge && gauge_take(t->gauge, all, &r)) TRY(runlog_sample(&t->log, &r));
    return ST_OK;
}

/* Initial updates without statistics, because they warm caches and compile kernels. */
static int64_t warm_up(int64_t updates)
{
    return updates / 4 < WARM_UP ? updates / 4 : WARM_UP;
}

/* --- the loop --------------------------------------------------------------------------------- */

static bool evaluation_due(const struct trainer *t)
{
    const struct config_train *c = &t->config->train;
    return t->iter % c->eval_interval == 0 || t->iter == c->max_iters;
}

static enum status save(struct trainer *t)
{
    if (t->saved == t->iter) return ST_OK;
    const struct config_train *c = &t->config->train;
    struct checkpoint_state state = {
        .iter = t->iter,
        .seed = c->seed,
        .best_val_loss = t->summary.best_val_loss,
        .best_iter = t->summary.best_iter,
        .train_batches = t->iter * c->gradient_accumulation_steps,
        .eval_batches = t->iter * c->eval_iters,
        .config = t->config_text,
    };
    TRY(weights_fetch(&t->learner.engine, t->tensors));
    TRY(runlog_sync(&t->log)); /* a checkpoint must never be newer than the log on disk */
    TRY(checkpoint_save(c->out_dir, t->tensors, t->learner.engine.program.model.parameters,
                        &state));
    t->saved = t->iter;
    return ST_OK;
}

/* Whether only the data set failed: the weights are whole and can be saved. */
static bool is_of_data(enum status st)
{
    return st == ST_IO || st == ST_FORMAT;
}

/* Saves where no update is in flight, then returns the error that ends the training. */
static enum status save_first(struct trainer *t, enum status st)
{
    struct failure why;
    fail_keep(&why);
    bool saved = t->iter == 0 || save(t) == ST_OK;
    if (!saved) log_warning("%s", fail_message());
    fail_restore(&why);
    return fail_in(st, "stopped after %lld of %lld iterations%s", (long long)t->iter,
                   (long long)t->config->train.max_iters,
                   t->iter && saved ? "; the checkpoint is saved" : "");
}

static enum status evaluate(struct trainer *t)
{
    double loss[SPLIT_COUNT];
    struct run_summary *s = &t->summary;
    if (t->gauge) gauge_at(t->gauge, t->iter);
    enum status st = evaluator_run(&t->evaluator, t->iter, loss);
    if (st != ST_OK) return is_of_data(st) ? save_first(t, st) : st;
    TRY(log_samples(t, true));
    bool best = t->iter > 0 && !(loss[SPLIT_VAL] >= s->best_val_loss);
    if (best) {
        s->best_val_loss = loss[SPLIT_VAL];
        s->best_iter = t->iter;
        /* a checkpoint saved by Ctrl-C during this evaluation lacks the new best loss */
        t->saved = -1;
    }
    s->final_train_loss = loss[SPLIT_TRAIN];
    s->final_val_loss = loss[SPLIT_VAL];
    log_info("iter %lld: train loss %.4f, val loss %.4f%s", (long long)t->iter, loss[SPLIT_TRAIN],
             loss[SPLIT_VAL], best ? ", the best yet" : "");
    struct runlog_eval line = {t->iter, loss[SPLIT_TRAIN], loss[SPLIT_VAL]};
    TRY(runlog_eval(&t->log, &line));
    return t->iter > 0 ? save(t) : ST_OK;
}

static enum status record_step(struct trainer *t, const struct learner_step *s, double ms)
{
    const struct config_train *c = &t->config->train;
    int64_t done = t->iter - t->begun;
    double tokens_per_s = (double)t->facts.tokens / ms * 1e3;
    char detail[160], speed[32], gauges[64] = "";
    if (done < TRAINER_TIMED) t->step_ms[done] = ms;
    if (t->iter % c->log_interval == 0) {
        struct runlog_step line = {t->iter, s->result.loss, s->lr, s->result.grad_norm,
                                   ms,      tokens_per_s};
        TRY(runlog_step(&t->log, &line));
    }
    TRY(log_samples(t, false));
    if (t->gauge) gauge_print_last(t->gauge, gauges, sizeof gauges);
    snprintf(detail, sizeof detail, "loss %.4f  %s tokens/s%s", s->result.loss,
             str_thousands(speed, (int64_t)tokens_per_s), gauges);
    progress_show(&t->progress, t->iter + 1, detail);
    return ST_OK;
}

/* A signal, or the reserve of memory was needed. */
static bool must_stop(void)
{
    return interrupt_noted() || heap_low();
}

static enum status stop_and_save(struct trainer *t)
{
    TRY(save(t));
    const char *dir = t->config->train.out_dir;
    if (heap_low())
        return fail(
            ST_MEMORY,
            "out of host memory after %lld of %lld iterations; the checkpoint is saved. "
            "Close other programs or raise the limit of this one (ulimit -v), then continue "
            "with\n  strobe train %s --init_from=resume",
            (long long)t->iter, (long long)t->config->train.max_iters, dir);
    return fail(ST_INTERRUPTED,
                "stopped after %lld of %lld iterations; the checkpoint is saved. Continue with\n"
                "  strobe train %s --init_from=resume",
                (long long)t->iter, (long long)t->config->train.max_iters, dir);
}

/* Starts updates until enough are in flight. */
static enum status start_more(struct trainer *t, int64_t last, int64_t *started, int64_t *since_ns)
{
    struct learner *l = &t->learner;
    int64_t lookahead = learner_lookahead(l);
    for (; *started < last && *started - t->iter <= lookahead && !must_stop(); ++*started) {
        if (*started == t->iter) *since_ns = clock_ns();
        TRY(learner_start(l, *started));
    }
    return ST_OK;
}

/* Runs updates up to iteration `last` or until Ctrl-C; no update is in flight before and after. If
 * the device runs concurrently with the host, the next update is launched before the previous one
 * is waited for, and a step's time is the interval between two completions. If there is no batch
 * for an update, those in flight are finished and saved. */
static enum status run_to(struct trainer *t, int64_t last)
{
    struct learner *l = &t->learner;
    int64_t started = t->iter, since_ns = clock_ns();
    enum status data = ST_OK;
    struct failure why;
    for (;;) {
        if (data == ST_OK) {
            data = start_more(t, last, &started, &since_ns);
            if (data != ST_OK && !is_of_data(data)) return data;
            if (data != ST_OK) fail_keep(&why);
        }
        if (started == t->iter && data != ST_OK) {
            fail_restore(&why);
            return save_first(t, data);
        }
        if (started == t->iter) return ST_OK;
        struct learner_step s;
        bool warm = t->iter - t->begun >= warm_up(t->config->train.max_iters - t->begun);
        if (t->gauge) gauge_at(t->gauge, t->iter);
        if (warm && !t->working) set_working(t, t->working = true);
        TRY(learner_finish(l, t->iter, &s));
        t->gauged += warm;
        int64_t now_ns = clock_ns();
        TRY(record_step(t, &s, clock_ms(since_ns, now_ns)));
        since_ns = now_ns;
        t->iter++;
    }
}

static enum status advance(struct trainer *t, int64_t last)
{
    enum status st = run_to(t, last);
    if (t->working && st == ST_OK) set_working(t, false); /* an earlier error takes precedence */
    t->working = false;
    return st;
}

static enum status loop(struct trainer *t)
{
    const struct config_train *c = &t->config->train;
    for (;;) {
        enum status st = evaluation_due(t) ? evaluate(t) : ST_OK;
        if (st == ST_OK && t->iter == c->max_iters) return ST_OK;
        if (st == ST_INTERRUPTED || (st == ST_OK && must_stop())) return stop_and_save(t);
        TRY(st);
        if (t->iter == t->begun) progress_start(&t->progress, "train", t->iter, c->max_iters);
        int64_t next = (t->iter / c->eval_interval + 1) * c->eval_interval;
        TRY(advance(t, next < c->max_iters ? next : c->max_iters));
    }
}

/* --- the end of a run ------------------------------------------------------------------------- */

static double others_busy(const struct trainer *t)
{
    double seconds = 1e-3 * clock_ms(t->start_ns, clock_ns());
    return host_others(t->start_work, host_work_now(), seconds) /
           (double)sysconf(_SC_NPROCESSORS_ONLN);
}

static void summarize(struct trainer *t)
{
    struct run_summary *s = &t->summary;
    int64_t done = t->iter - t->begun, n = done < TRAINER_TIMED ? done : TRAINER_TIMED;
    int64_t skip = warm_up(n);
    struct stats ms = stats_of(t->step_ms + skip, (int)(n - skip));
    s->iters = t->iter;
    s->seconds = t->begun ? NAN : (double)(clock_ns() - t->start_ns) * 1e-9;
    s->ms_median = ms.n ? ms.median : NAN;
    s->ms_std = ms.n > 1 ? ms.std : NAN;
    s->tokens_per_s = ms.n ? (double)t->facts.tokens / ms.median * 1e3 : NAN;
    s->others_busy = others_busy(t);
    s->peak_rss = host_peak_bytes();
    s->peak_measured = engine_measured_bytes(&t->learner.engine);
    s->joules_per_token = NAN;
    if (!t->gauge) return;
    s->gauges = gauge_summarize(t->gauge);
    if (s->gauges.energy_j >= 0 && t->gauged)
        s->joules_per_token = s->gauges.energy_j / (double)(t->gauged * t->facts.tokens);
}

/* Generates a text, from the configured prompt if the data set has all of its characters. */
static enum status sample_text(struct trainer *t, struct str *s)
{
    enum { LENGTH = 300 };
    const struct config *c = t->config;
    const struct vocabulary *v = &t->learner.dataset.vocabulary;
    struct sampler_options o = {c->sample.temperature, c->sample.top_k, (uint32_t)c->train.seed,
                                true};
    struct sampler sampler;
    int32_t first = 0, *prompt = &first, token;
    int64_t n = 1;
    if (vocabulary_encode(v, c->sample.start, t->arena, &prompt, &n) != ST_OK || n == 0) {
        prompt = &first;
        n = 1;
    }
    sampler_init(&sampler, &t->learner.engine, &o, t->arena);
    sampler_start(&sampler, 0, prompt, n);
    for (int64_t i = 0; i < n; i++) str_append(s, vocabulary_text(v, prompt[i]));
    enum status st = ST_OK;
    for (int i = 0; i < LENGTH; i++) {
        TRY_OUT(st, sampler_next(&sampler, &token));
        str_append(s, vocabulary_text(v, token));
    }
    str_append(s, "\n");
out:
    sampler_close(&sampler);
    return st;
}

static enum status write_samples(struct trainer *t)
{
    struct str s = {0};
    enum status st = sample_text(t, &s);
    if (st == ST_OK) st = rundir_write_text(t->config->train.out_dir, "samples.txt", str_text(&s));
    str_release(&s);
    return st;
}

/* Returns `st` if it is an error already; its message is kept. */
static enum status write_summary(const struct trainer *t, enum status st)
{
    const char *dir = t->config->train.out_dir;
    if (st == ST_OK) return rundir_write_summary(dir, &t->summary);
    struct failure first;
    fail_keep(&first);
    if (rundir_write_summary(dir, &t->summary) != ST_OK) log_warning("%s", fail_message());
    fail_restore(&first);
    return st;
}

/* What a checkpoint needs while it is written: text for each tensor, buffers of files. */
static void keep_reserve(const struct trainer *t)
{
    enum { RESERVE = 4 << 20, OF_TENSOR = 4096 };
    int64_t tensors = t->learner.engine.program.model.parameters;
    heap_reserve(RESERVE + OF_TENSOR * tensors,
                 arena_printf(t->arena,
                              "checkpoints that were saved before are whole: `strobe train %s "
                              "--init_from=resume` continues from the last",
                              t->config->train.out_dir));
}

/* What a failed device took with it is in the last checkpoint, up to its iteration. */
static enum status advise(const struct trainer *t, enum status st)
{
    struct failure first;
    if ((st != ST_DEVICE && st != ST_MEMORY) || heap_low() || t->saved <= 0) return st;
    fail_keep(&first);
    return fail(st,
                "%s; the checkpoint of iteration %lld is saved: `strobe train %s "
                "--init_from=resume` continues from it",
                first.message, (long long)t->saved, t->config->train.out_dir);
}

enum status trainer_run(struct trainer *t)
{
    keep_reserve(t);
    t->start_ns = clock_ns();
    t->start_work = host_work_now();
    interrupt_catch();
    open_gauge(t);
    enum status st = advise(t, loop(t));
    progress_end(&t->progress);
    summarize(t);
    gauge_close(t->gauge);
    t->gauge = NULL;
    t->summary.complete = st == ST_OK;
    if (st == ST_OK) st = write_samples(t);
    st = write_summary(t, st);
    interrupt_release();
    heap_reserve(0, NULL);
    return st;
}

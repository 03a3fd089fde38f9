#include "train/trainer.h"

#include "base/clock.h"
#include "base/heap.h"
#include "base/interrupt.h"
#include "base/shell.h"
#include "base/stats.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/visible.h"
#include "engine/weights.h"
#include "train/trainer_end.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- telemetry of the device ------------------------------------------------------------------ */

static void open_gauge(struct trainer *t)
{
    const struct engine *e = &t->learner.engine;
    int64_t interval_ms = t->config->train.sample_interval;
    if (!interval_ms) return;
    if (gauge_open(&t->gauge, e->backend, e->context, interval_ms) != ST_OK)
        log_info("device telemetry (clock, power) is not sampled: %s", fail_message());
    const char *why = t->gauge && e->backend->telemetry->no_counters
                          ? e->backend->telemetry->no_counters(e->context)
                          : NULL;
    if (why)
        log_info("hardware counters (SMs, tensor cores, memory) are not sampled: %s; the report "
                 "estimates them from the plan",
                 why);
}

static void set_working(struct trainer *t, bool working)
{
    if (t->gauge) gauge_work(t->gauge, working);
}

/* If a write to the log or of an earlier checkpoint failed, marks the weights as savable; returns
 * `st`. */
static enum status note_write_status(struct trainer *t, enum status st)
{
    t->savable |= st != ST_OK;
    return st;
}

/* If reading the data failed, marks the unchanged weights as savable; returns `st`. */
static enum status note_data_status(struct trainer *t, enum status st)
{
    t->savable |= is_of_files(st);
    return st;
}

static enum status log_samples(struct trainer *t, bool all)
{
    struct gauge_reading r;
    while (t->gauge && gauge_take(t->gauge, all, &r))
        TRY(note_write_status(t, runlog_sample(&t->log, &r)));
    return ST_OK;
}

/* --- wall time, and the checkpoint that is being written -------------------------------------- */

/* Adds the time since `since_ns` to a part of the wall time. */
static void spend(struct trainer *t, enum wall_part part, int64_t since_ns)
{
    t->wall_ns[part] += clock_ns() - since_ns;
}

/* Waits for the checkpoint that is being written, if any. */
static enum status finish_save(struct trainer *t)
{
    int64_t iter;
    enum status st = saver_wait(&t->saver, &iter);
    if (iter < 0 || st != ST_OK) return st;
    t->saved = iter;
    heap_advise(t->advice);
    return ST_OK;
}

/* Returns `st`, the status of a save. If the save failed because the run directory was moved or
 * deleted, fails with that reason instead. */
static enum status explain(const struct trainer *t, enum status st)
{
    struct failure why;
    char now[4096];
    long long iter = t->iter, most = t->config->train.max_iters;
    fail_keep(&why);
    if (st == ST_OK || lock_check(&t->run.lock) == ST_OK) {
        fail_restore(&why);
        return st;
    }
    fail_keep(&why);
    if (!lock_present_path(&t->run.lock, now, sizeof now))
        return fail(ST_ABSENT, "%s: stopped after %lld of %lld iterations; nothing could be saved",
                    why.message, iter, most);
    return fail(ST_ABSENT,
                "%s: stopped after %lld of %lld iterations; nothing was saved there since its last "
                "checkpoint. Continue from that with\n  strobe train %s --init_from=resume",
                why.message, iter, most, shell_word(now, t->arena));
}

/* Between steps: waits for a save, whose failure leaves weights that can be saved. */
static enum status finish_pending(struct trainer *t)
{
    int64_t since_ns = clock_ns();
    enum status st = note_write_status(t, explain(t, finish_save(t)));
    spend(t, WALL_CHECKPOINTS, since_ns);
    return st;
}

/* Waits for a save after an earlier failure, whose message is kept; a failed save is a warning. */
static void finish_save_after(struct trainer *t)
{
    struct failure first;
    fail_keep(&first);
    if (finish_pending(t) != ST_OK) log_warning("%s", fail_message());
    fail_restore(&first);
}

/* --- turns ------------------------------------------------------------------------------------ */

static void start_clock(struct trainer *t)
{
    t->start_ns = clock_ns();
    t->start_work = host_work_now();
}

/* Adds the wall time and processor time of this turn to the sums. */
static void stop_clock(struct trainer *t)
{
    struct host_work now = host_work_now();
    t->work_s += 1e-3 * clock_ms(t->start_ns, clock_ns());
    t->work.all = now.all < 0 ? -1 : t->work.all + now.all - t->start_work.all;
    t->work.own += now.own - t->start_work.own;
}

static bool turn_is_over(const struct trainer *t)
{
    int64_t done = t->iter - t->turn_first;
    bool ends = done > 0 && t->iter == t->config->train.max_iters;
    return t->turns != TURN_NONE && (ends || done >= t->turn.units);
}

/* The median time of the iterations of this turn; NAN if there are none or their times are lost. */
static double turn_ms(const struct trainer *t)
{
    int64_t first = t->turn_first - t->begun, end = t->iter - t->begun;
    return first < end && end <= TRAINER_TIMED
               ? stats_of(t->step_ms + first, (int)(end - first)).median
               : NAN;
}

/* Ends this turn and waits for the next one. The first turn is a warm-up and is not logged. */
static enum status take_turn(struct trainer *t)
{
    double ms = turn_ms(t);
    struct turn_report report = {t->config->train.max_iters - t->iter, isnan(ms) ? 0 : ms};
    struct run_turn line = {t->iter - 1, (double)t->turn.of, (double)t->turn.number,
                            (double)(t->iter - t->turn_first), ms};
    if (t->turn.number > 0 && line.iters > 0)
        TRY(note_write_status(t, runlog_turn(&t->log, &line)));
    TRY(log_samples(t, true));
    TRY(finish_pending(t)); /* a save must not disturb the turns of other processes */
    progress_pause(&t->progress);
    stop_clock(t);
    int64_t since_ns = clock_ns();
    enum status st = turn_wait(t->turns, &report, &t->turn);
    spend(t, WALL_TURNS, since_ns);
    start_clock(t);
    t->turn_first = t->iter;
    return st;
}

/* --- the loop --------------------------------------------------------------------------------- */

static bool evaluation_due(const struct trainer *t)
{
    const struct config_train *c = &t->config->train;
    return t->iter % c->eval_interval == 0 || t->iter == c->max_iters;
}

/* Writes the pending lines of the log and syncs it. */
static enum status flush_log(struct trainer *t)
{
    enum status st = runlog_flush(&t->log);
    if (st == ST_OK) st = runlog_sync(&t->log);
    t->log_failed = st != ST_OK;
    return note_write_status(t, st);
}

/* On a GPU, the host copies of the weights are written while steps continue. On a CPU, steps would
 * change the weights, so this call waits for the write. `now`: it waits in any case. */
static enum status save_here(struct trainer *t, bool now)
{
    const struct config_train *c = &t->config->train;
    struct checkpoint_state state = {
        .iter = t->iter,
        .seed = c->seed,
        .best_val_loss = t->summary.best_val_loss,
        .best_iter = t->summary.best_iter,
        .train_batches = t->iter * c->gradient_accumulation_steps,
        .eval_batches = t->iter * c->eval_iters,
        .config = t->config_text,
        .run = t->identity,
    };
    struct failure lost;
    TRY(finish_save(t));
    TRY(ranks_fetch_weights(&t->ranks, &t->learner.engine, t->tensors));
    /* Sync the log before the checkpoint; if that fails, save the checkpoint anyway. */
    enum status st = flush_log(t);
    fail_keep(&lost);
    saver_start(&t->saver, &t->run.lock, t->tensors, t->learner.engine.program.model.parameters,
                &state, &t->written);
    if (now || t->learner.engine.backend->host_memory) TRY(finish_save(t));
    if (st != ST_OK) fail_restore(&lost);
    return st;
}

static enum status save(struct trainer *t, bool now)
{
    enum status st = finish_save(t);
    if (st != ST_OK && now) { /* the last chance to save these weights, so try again */
        log_warning("%s", fail_message());
        st = ST_OK;
    }
    st = note_write_status(t, st);
    if (st == ST_OK) st = lock_check(&t->run.lock);
    if (st == ST_OK && t->saved != t->iter) st = save_here(t, now);
    return explain(t, st);
}

static enum status save_timed(struct trainer *t, bool now)
{
    int64_t since_ns = clock_ns();
    enum status st = save(t, now);
    spend(t, WALL_CHECKPOINTS, since_ns);
    return st;
}

static enum status check_finite(const struct trainer *t, const double loss[SPLIT_COUNT])
{
    for (int i = 0; i < SPLIT_COUNT; i++)
        if (!isfinite(loss[i]))
            return fail(ST_NUMERIC, "iteration %lld: the %s loss is %s", (long long)t->iter,
                        i == SPLIT_VAL ? "validation" : "training",
                        isnan(loss[i]) ? "NaN" : "infinite");
    return ST_OK;
}

static enum status evaluate(struct trainer *t)
{
    double loss[SPLIT_COUNT];
    struct run_summary *s = &t->summary;
    if (t->gauge) gauge_at(t->gauge, t->iter);
    int64_t since_ns = clock_ns();
    enum status st = note_data_status(t, evaluator_run(&t->evaluator, t->iter, loss));
    spend(t, WALL_EVALUATION, since_ns);
    TRY(st);
    TRY(log_samples(t, true));
    bool best = loss[SPLIT_VAL] < s->best_val_loss; /* false for NaN */
    if (best) {
        s->best_val_loss = loss[SPLIT_VAL];
        s->best_iter = t->iter;
        /* save again: a checkpoint that Ctrl-C saved at this iteration lacks the new best loss */
        t->saved = -1;
    }
    s->final_train_loss = loss[SPLIT_TRAIN];
    s->final_val_loss = loss[SPLIT_VAL];
    struct run_eval line = {t->iter, loss[SPLIT_TRAIN], loss[SPLIT_VAL]};
    st = note_write_status(t, runlog_eval(&t->log, &line));
    if (st == ST_OK) st = check_finite(t, loss);
    if (st == ST_OK && t->iter > 0)
        st = save_timed(t, false); /* before the message, whose reader may be slow */
    char train[32], val[32];
    log_info("iter %lld: train loss %s, val loss %s%s", (long long)t->iter,
             str_loss(train, loss[SPLIT_TRAIN]), str_loss(val, loss[SPLIT_VAL]),
             best && t->iter > 0 ? ", the best yet" : "");
    return st;
}

static enum status record_step(struct trainer *t, const struct learner_step *s, double ms)
{
    const struct config_train *c = &t->config->train;
    int64_t done = t->iter - t->begun;
    double tokens_per_s = t->facts.tokens / ms * 1e3, mfu = trainer_mfu(t, ms);
    char detail[176], speed[32], loss[32], gauges[64] = "", share[48] = "";
    if (done < TRAINER_TIMED) t->step_ms[done] = ms;
    if (t->iter % c->log_interval == 0) {
        struct run_step line = {.iter = t->iter,
                                .loss = s->result.loss,
                                .lr = s->lr,
                                .grad_norm = s->result.grad_norm,
                                .ms = ms,
                                .tokens_per_s = tokens_per_s,
                                .mfu = mfu};
        if (t->peak_flops > 0) line.plan_flops = t->facts.flops / (ms * 1e-3) / t->peak_flops;
        if (t->peak_bytes > 0) line.plan_bytes = t->facts.bytes / (ms * 1e-3) / t->peak_bytes;
        TRY(note_write_status(t, runlog_step(&t->log, &line)));
    }
    TRY(log_samples(t, false));
    if (t->gauge) gauge_print_last(t->gauge, gauges, sizeof gauges);
    if (isfinite(mfu))
        snprintf(share, sizeof share, "  MFU %s %%", str_number(speed, 100 * mfu, 3));
    snprintf(detail, sizeof detail, "loss %s  %s tokens/s%s%s", str_loss(loss, s->result.loss),
             str_thousands(speed, (int64_t)tokens_per_s), share, gauges);
    progress_show(&t->progress, t->iter + 1, detail);
    return ST_OK;
}

/* True after a signal, or if the memory reserve was needed. */
static bool must_stop(void)
{
    return interrupt_noted() || heap_low();
}

/* The bytes of a reason in a message that leave space for the command after it. */
static int reason_bytes(const struct trainer *t)
{
    enum { LEAST = 60, WORDS = 240 };
    int left = (int)sizeof((struct failure *)NULL)->message - WORDS - (int)strlen(t->run_word);
    return left > LEAST ? left : LEAST;
}

static enum status fail_stopped(const struct trainer *t, enum status st, const char *why)
{
    return fail(st,
                "%sstopped after %lld of %lld iterations; the checkpoint is saved. Continue with\n"
                "  strobe train %s --init_from=resume",
                why, (long long)t->iter, (long long)t->config->train.max_iters, t->run_word);
}

static enum status stop_and_save(struct trainer *t)
{
    TRY(save_timed(t, true));
    if (heap_low())
        return fail_stopped(t, ST_MEMORY,
                            "out of host memory; close other programs or raise the limit of this "
                            "one (ulimit -v): ");
    return fail_stopped(t, ST_INTERRUPTED, "");
}

/* After a failure to write the log (for example on a full disk) or to read a batch, tries to save a
 * checkpoint. If the save fails, too, reports the first failure. */
static enum status save_and_fail(struct trainer *t, enum status st)
{
    struct failure first;
    fail_keep(&first);
    if (t->iter == 0) return st;
    enum status saved = save_timed(t, true);
    struct failure why_not;
    fail_keep(&why_not);
    if (saved != ST_OK && lock_check(&t->run.lock) != ST_OK) {
        log_warning("%s", first.message);
        fail_restore(&why_not); /* this message tells where the run directory is now */
        return saved;
    }
    if (saved != ST_OK && t->saved != t->iter) {
        log_warning("%s", why_not.message);
        fail_restore(&first);
        return st;
    }
    char why[sizeof first.message];
    snprintf(why, sizeof why, "%.*s%s: ", reason_bytes(t), first.message,
             t->log_failed ? " (log.jsonl lacks its last lines)" : "");
    return fail_stopped(t, interrupt_noted() ? ST_INTERRUPTED : st, why);
}

/* Runs updates up to iteration `last` or until Ctrl-C; no update is in flight before and after,
 * unless the device failed. If the device runs concurrently with the host, the next update is
 * launched before the previous one ends, and a step's time is the interval between two completions.
 * If a batch cannot be read or the log not be written, the updates in flight are finished. */
static enum status run_to(struct trainer *t, int64_t last)
{
    struct learner *l = &t->learner;
    struct failure first;
    enum status stopped = ST_OK;
    int64_t started = t->iter, lookahead = learner_lookahead(l), since_ns = clock_ns();
    for (;;) {
        if (stopped == ST_OK && saver_done(&t->saver)) {
            stopped = note_write_status(t, explain(t, finish_save(t)));
            if (stopped != ST_OK) fail_keep(&first);
        }
        while (started < last && started - t->iter <= lookahead && stopped == ST_OK &&
               !must_stop()) {
            if (started == t->iter) since_ns = clock_ns();
            stopped = note_data_status(t, learner_start(l, started));
            if (stopped != ST_OK && !t->savable) return stopped;
            if (stopped == ST_OK)
                started++;
            else
                fail_keep(&first);
        }
        if (started == t->iter) break;
        struct learner_step s;
        bool warm = t->iter - t->begun >= warm_up_of(t->config->train.max_iters - t->begun);
        if (t->gauge) gauge_at(t->gauge, t->iter);
        if (warm && !t->working) set_working(t, t->working = true);
        enum status st = learner_finish(l, t->iter, &s);
        t->savable &= st == ST_OK; /* weights with NaN are not saved */
        if (st != ST_OK && stopped != ST_OK) log_warning("%s", first.message);
        TRY(st);
        t->gauged += warm;
        int64_t now_ns = clock_ns();
        st = record_step(t, &s, clock_ms(since_ns, now_ns));
        if (stopped == ST_OK && st != ST_OK) {
            stopped = st;
            fail_keep(&first);
        }
        since_ns = now_ns;
        t->iter++;
    }
    if (stopped != ST_OK) fail_restore(&first);
    return stopped;
}

static enum status advance(struct trainer *t, int64_t last)
{
    int64_t since_ns = clock_ns();
    enum status st = run_to(t, last);
    spend(t, WALL_STEPS, since_ns);
    if (t->working && st == ST_OK) set_working(t, false); /* an earlier error takes precedence */
    t->working = false;
    return st;
}

/* Evaluates if due, then trains up to the next evaluation or the end of the turn. */
static enum status loop_once(struct trainer *t)
{
    const struct config_train *c = &t->config->train;
    enum status st = turn_is_over(t) ? take_turn(t) : ST_OK;
    if (st == ST_OK && evaluation_due(t)) st = evaluate(t);
    if (st == ST_OK && t->iter == c->max_iters) return ST_OK;
    if (st == ST_INTERRUPTED || (st == ST_OK && must_stop())) return stop_and_save(t);
    TRY(st);
    if (t->iter == t->begun) progress_start(&t->progress, "train", t->iter, c->max_iters);
    int64_t next = (t->iter / c->eval_interval + 1) * c->eval_interval;
    if (next > c->max_iters) next = c->max_iters;
    int64_t end = t->turn_first + t->turn.units;
    return advance(t, t->turns != TURN_NONE && end < next ? end : next);
}

/* Records how the run ends; later calls change nothing. */
static void note_end(struct trainer *t, enum status st)
{
    struct run_summary *s = &t->summary;
    if (s->end) return;
    s->end = st == ST_OK            ? "finished"
             : st == ST_NUMERIC     ? "nan"
             : st == ST_INTERRUPTED ? "interrupted"
             : st == ST_MEMORY      ? "no memory"
             : st == ST_FULL        ? "no disk"
                                    : "failed";
    if (st == ST_OK || st == ST_INTERRUPTED) return;
    const char *why = heap_low() ? "the memory of the host ran out" : fail_message();
    snprintf(t->why, sizeof t->why, "%.*s", utf8_fit(why, (int)sizeof t->why - 1), why);
    visible_in_place(t->why, sizeof t->why, false); /* JSON needs valid UTF-8 */
    if (t->why[0]) s->why = t->why;
}

static enum status loop(struct trainer *t)
{
    bool done = false;
    while (!done) {
        bool last = t->iter == t->config->train.max_iters;
        enum status st = loop_once(t);
        if (st != ST_OK) note_end(t, st);
        if (st != ST_OK && t->savable) return save_and_fail(t, st);
        TRY(st);
        done = last;
    }
    return ST_OK;
}

/* --- the end of a run ------------------------------------------------------------------------- */

/* Reserves the host memory for writing a checkpoint: text for each tensor, buffers of files. */
static void keep_reserve(struct trainer *t)
{
    enum { RESERVE = 4 << 20, OF_TENSOR = 4096 };
    int64_t tensors = t->learner.engine.program.model.parameters;
    heap_reserve(RESERVE + OF_TENSOR * tensors);
    t->advice = arena_printf(t->arena,
                             "checkpoints that were saved before are whole: `strobe train %s "
                             "--init_from=resume` continues from the last",
                             t->run_word);
    heap_advise(t->saved > 0 ? t->advice : NULL);
}

/* After a device or memory failure, adds the command that continues from the last checkpoint. */
static enum status advise(const struct trainer *t, enum status st)
{
    struct failure first;
    bool unread = (st == ST_IO || st == ST_FORMAT) && t->config->ranks.count > 1; /* by a rank */
    bool lost = st == ST_DEVICE || st == ST_MEMORY || (unread && t->saved != t->iter);
    if (!lost || heap_low() || t->saved <= 0) return st;
    fail_keep(&first);
    return fail(st,
                "%.*s; the checkpoint of iteration %lld is saved: `strobe train %s "
                "--init_from=resume` continues from it",
                reason_bytes(t), first.message, (long long)t->saved, t->run_word);
}

/* Generates samples while the last checkpoint is written, whose failure takes precedence. */
static enum status finish_run(struct trainer *t)
{
    struct failure why;
    int64_t since_ns = clock_ns();
    enum status sampled = trainer_write_samples(t);
    fail_keep(&why);
    spend(t, WALL_SAMPLES, since_ns);
    TRY(finish_pending(t));
    if (sampled != ST_OK) fail_restore(&why);
    return sampled;
}

enum status trainer_run(struct trainer *t)
{
    spend(t, WALL_STARTUP, t->claimed_ns);
    keep_reserve(t);
    t->turn_first = t->iter;
    start_clock(t);
    interrupt_catch();
    open_gauge(t);
    enum status st = loop(t);
    if (st != ST_OK) finish_save_after(t);
    progress_end(&t->progress);
    stop_clock(t);
    if (st == ST_OK) st = finish_run(t);
    st = advise(t, st);
    trainer_summarize(t);
    gauge_close(t->gauge);
    t->gauge = NULL;
    note_end(t, st);
    t->summary.complete = st == ST_OK;
    trainer_summarize_wall(t);
    st = trainer_write_summary(t, st);
    interrupt_release();
    heap_reserve(0);
    heap_advise(NULL);
    return st;
}

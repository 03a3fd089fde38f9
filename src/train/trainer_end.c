#include "train/trainer_end.h"

#include "base/clock.h"
#include "base/stats.h"
#include "base/str.h"
#include "train/sampler.h"

#include <math.h>
#include <unistd.h>

/* FLOPs of all ranks by nanoGPT's formula, or by the plan for a model without a formula, relative
 * to the measured peaks of all ranks. A result above 1 means that the peak was measured too low. */
double trainer_mfu(const struct trainer *t, double ms)
{
    const struct model *m = &t->learner.engine.program.model;
    double each = model_flops_per_token(m, m->config.block_size);
    double ranks = (double)t->learner.engine.program.config->ranks.count;
    double flops = each > 0 ? each * t->facts.tokens : t->facts.flops * ranks;
    return t->peak_flops > 0 ? flops / (ms * 1e-3) / (t->peak_flops * ranks) : NAN;
}

static double others_busy(const struct trainer *t)
{
    return host_others((struct host_work){0}, t->work, t->work_s) /
           (double)sysconf(_SC_NPROCESSORS_ONLN);
}

void trainer_summarize(struct trainer *t)
{
    struct run_summary *s = &t->summary;
    int64_t done = t->iter - t->begun, n = done < TRAINER_TIMED ? done : TRAINER_TIMED;
    int64_t skip = warm_up_of(n);
    struct stats ms = stats_of(t->step_ms + skip, (int)(n - skip));
    s->iters = t->iter;
    s->seconds = t->begun ? NAN : t->work_s;
    s->ms_median = ms.n ? ms.median : NAN;
    s->ms_std = ms.n > 1 ? ms.std : NAN;
    s->tokens_per_s = ms.n ? t->facts.tokens / ms.median * 1e3 : NAN;
    s->mfu = ms.n ? trainer_mfu(t, ms.median) : NAN;
    s->run_tokens_per_s = ms.n ? t->facts.tokens / ms.mean * 1e3 : NAN;
    s->run_mfu = ms.n ? trainer_mfu(t, ms.mean) : NAN;
    s->others_busy = others_busy(t);
    int64_t measured = engine_measured_bytes(&t->learner.engine);
    s->peak_rss = (double)host_peak_bytes();
    s->peak_measured = measured < 0 ? NAN : (double)measured;
    if (!t->gauge) return;
    s->gauges = gauge_summarize(t->gauge);
    if (!gauge_is_enough(&s->gauges)) s->gauges = (struct gauge_summary){0};
    if (!s->gauges.samples) return;
    if (t->turns != TURN_NONE) s->gauges.others = NAN; /* includes processes that wait for turns */
    if (s->gauges.energy_j >= 0 && t->gauged)
        s->gauges.joules_per_token = s->gauges.energy_j / ((double)t->gauged * t->facts.tokens);
}

void trainer_summarize_wall(struct trainer *t)
{
    int64_t all_ns = clock_ns() - t->claimed_ns;
    for (int i = 0; i < WALL_PARTS; i++) all_ns -= i == WALL_OTHER ? 0 : t->wall_ns[i];
    t->wall_ns[WALL_OTHER] = all_ns;
    struct run_wall line = {.iter = t->iter - 1};
    for (int i = 0; i < WALL_PARTS; i++)
        line.seconds[i] = t->summary.wall_s[i] = (double)t->wall_ns[i] * 1e-9;
    if (t->iter == t->begun) return; /* no iteration to which the line belongs */
    struct failure first;
    fail_keep(&first);
    if (runlog_wall(&t->log, &line) != ST_OK) log_warning("%s", fail_message());
    fail_restore(&first);
}

enum status trainer_write_samples(struct trainer *t)
{
    struct str s = {0};
    struct learner *l = &t->learner;
    enum status st = ranks_sample(&t->ranks, l);
    if (st == ST_OK) st = sampler_write_text(&l->engine, &l->dataset.vocabulary, &s, t->arena);
    if (st == ST_OK) st = lock_check(&t->run.lock);
    if (st == ST_OK) st = rundir_write_text(t->run.lock.path, "samples.txt", str_text(&s));
    str_release(&s);
    return st;
}

static enum status write_summary(const struct trainer *t)
{
    TRY(lock_check(&t->run.lock)); /* another run may have this path now */
    return rundir_write_summary(t->run.lock.path, &t->summary);
}

enum status trainer_write_summary(const struct trainer *t, enum status st)
{
    if (st == ST_OK) return write_summary(t);
    struct failure first;
    fail_keep(&first);
    enum status written = write_summary(t);
    if (written != ST_OK && written != ST_ABSENT) log_warning("%s", fail_message());
    fail_restore(&first);
    return st;
}

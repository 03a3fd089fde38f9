#include "lab/run.h"

#include "base/interrupt.h"
#include "base/threads.h"
#include "lab/ceiling.h"
#include "lab/memory_check.h"
#include "measure/stopwatch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 5, WARMUP = 2 };
static const double DEVICE_SAMPLE_MS = 2; /* launching a captured graph takes some microseconds */
static const double CHECKED = 0.2;        /* share of the progress bar for checks */

struct running;

/* A rung of the trial that is timed, or the ceiling's copy (rung = -1). */
struct timed_rung {
    struct running *r;
    int rung;
    struct stopwatch watch;
};

struct running {
    const struct lab_options *o;
    struct lab_run *ret;
    struct lab_bench bench;
    struct lab_trial trial;
    bool odd; /* odd sizes are being checked: a wrong rung is checked at the other sizes too */
    void *from[TRIAL_SETS], *to[TRIAL_SETS]; /* buffers of the ceiling's copy */
    int64_t copied;                          /* bytes that the ceiling's copy copies */
    int64_t calls;                           /* number of calls; on a GPU only captured calls */
    struct timed_rung timed[LAB_RUNGS + 1];
    struct arena *arena;
};

static void show(const struct running *r, double share, const char *what)
{
    if (r->o->each) r->o->each(r->o->user, share, what);
}

/* --- checks ----------------------------------------------------------------------------------- */

/* Checks a rung. If the rung is wrong at several sizes, left_out describes the size with the
 * smallest share of wrong elements. */
static enum status check_rung(struct running *r, const struct lab_trial *t, int i, int set)
{
    struct lab_result *x = &r->ret->result[i];
    double error, most = r->bench.ladder->tolerance(&t->problem);
    struct lab_where where = {0};
    enum status st = lab_trial_check(t, i, set, &error, &where, r->arena);
    if (st != ST_OK) return fail_in(st, "%s", x->rung->name);
    bool timed = t == &r->trial;
    if (timed && !x->wrong && (isnan(x->error) || error > x->error)) x->error = error;
    if (error <= most || (x->wrong && where.share >= x->wrong_share)) return ST_OK;
    r->ret->wrong += !x->wrong;
    x->error = error;
    x->wrong = true;
    x->wrong_share = where.share;
    x->left_out = arena_printf(r->arena, "wrong at %s: error %.2g, at most %.2g allowed; %s",
                               lab_size_text(r->bench.ladder, t->problem.n, r->arena), error, most,
                               where.words);
    return ST_OK;
}

/* Checks all rungs at one size. With `stops`, Ctrl-C ends the checks. */
static enum status check_all(struct running *r, const struct lab_trial *t, int set, bool stops)
{
    for (int i = 0; i < r->bench.rungs; i++) {
        if (stops && interrupt_noted()) return fail(ST_INTERRUPTED, "interrupted");
        if (r->ret->result[i].left_out && !(r->ret->result[i].wrong && r->odd)) continue;
        if (lab_rung_refuses(&r->bench, i, &t->problem, r->arena)) continue;
        TRY(check_rung(r, t, i, set));
    }
    return ST_OK;
}

static enum status check_odd(struct running *r)
{
    const struct lab_ladder *l = r->bench.ladder;
    r->odd = true;
    for (int k = 0; k < LAB_ODD && l->odd[k][0]; k++) {
        struct lab_trial t;
        enum status st = lab_trial_open(&t, &r->bench, l->odd[k], 1);
        show(r, CHECKED * k / LAB_ODD, "checks");
        if (st == ST_OK) st = check_all(r, &t, 0, true);
        lab_trial_close(&t);
        TRY(st);
    }
    r->odd = false;
    return ST_OK;
}

/* --- times ------------------------------------------------------------------------------------ */

/* Starts a call on the next set. All contenders share one counter of sets, so a call never finds
 * the tensors of the call before it in a cache, even if another contender made that call. */
static enum status start(void *user, int)
{
    const struct timed_rung *t = user;
    struct running *r = t->r;
    int set = (int)(r->calls++ % r->trial.sets);
    if (t->rung >= 0) return lab_trial_start(&r->trial, t->rung, set);
    return ceiling_copy(&r->o->device, r->bench.context, r->to[set], r->from[set], r->copied);
}

/* Replaying a captured graph uses the same sets each time, so the graph must contain all sets. */
static enum status sample(void *user, int calls, double *ret_ms)
{
    struct timed_rung *t = user;
    int sets = t->r->trial.sets;
    bool records = t->r->o->device.backend->recording;
    return stopwatch_time(&t->watch, records && calls < sets ? sets : calls, ret_ms);
}

static void show_times(void *user, double done_ms, double expected_ms)
{
    const struct running *r = user;
    double share = expected_ms > 0 && done_ms < expected_ms ? done_ms / expected_ms : 0;
    show(r, CHECKED + (1 - CHECKED) * share, "timing all variants alternately");
}

static struct contender contender_of(struct running *r, int at, int rung, int n)
{
    struct timed_rung *t = &r->timed[at];
    *t = (struct timed_rung){.r = r, .rung = rung};
    t->watch = (struct stopwatch){
        .backend = r->o->device.backend, .context = r->bench.context, .start = start, .user = t};
    return (struct contender){
        .sample = sample, .user = t, .parts = 1, .budget_ms = r->o->limit_ms / n};
}

static enum status time_all(struct running *r)
{
    struct lab_run *ret = r->ret;
    struct contender c[LAB_RUNGS + 1];
    int of[LAB_RUNGS + 1], n = 0;
    if (ret->copy) of[n++] = -1;
    for (int i = 0; i < ret->results; i++)
        if (!ret->result[i].left_out) of[n++] = i;
    if (!n) return ST_OK;
    for (int k = 0; k < n; k++) c[k] = contender_of(r, k, of[k], n);
    const struct rounds rounds = {.most = r->o->samples,
                                  .least = r->o->samples < LEAST ? r->o->samples : LEAST,
                                  .warmup = WARMUP,
                                  .cold = 1,
                                  .keep = r->arena,
                                  .go_on = r->o->go_on,
                                  .sample_ms =
                                      r->o->device.backend->recording ? DEVICE_SAMPLE_MS : 0,
                                  .each = show_times,
                                  .user = r};
    enum status st = rounds_run(&rounds, c, n);
    for (int k = 0; k < n; k++) stopwatch_release(&r->timed[k].watch);
    TRY(st);
    for (int k = 0; k < n; k++) *(of[k] < 0 ? &ret->copy_time : &ret->result[of[k]].time) = c[k];
    return ST_OK;
}

/* --- hardware counters ------------------------------------------------------------------------ */

/* Reads the counters of one call of a rung. */
static enum status count(struct running *r, int i)
{
    enum { KERNELS = 64 };
    struct kernel_counters of[KERNELS];
    int64_t kernels = 0;
    const struct backend *b = r->o->device.backend;
    struct lab_result *x = &r->ret->result[i];
    const struct lab_problem *p = &r->ret->problem;
    TRY(b->counters->begin(r->bench.context, COUNTERS_OF_BYTES, KERNELS));
    enum status st = lab_trial_start(&r->trial, i, 0);
    if (st == ST_OK) st = b->stream.sync(r->bench.context);
    enum status ended = b->counters->end(r->bench.context, of, &kernels);
    TRY(st);
    TRY(ended);
    x->measured = 0;
    for (int64_t k = 0; k < kernels; k++) {
        double read = x->rung->maps ? of[k].l2_read : of[k].warp_read;
        x->measured +=
            p->flops > 0 ? read + of[k].warp_written : of[k].dram_read + of[k].dram_written;
    }
    if (p->flops > 0 ? x->rung->moved != NULL : !x->rung->own)
        x->counted = x->rung->moved ? x->rung->moved(p) : p->bytes;
    return ST_OK;
}

/* A failure to read counters does not end the run; no_counters holds its message. */
static void count_all(struct running *r)
{
    struct lab_run *ret = r->ret;
    enum status st = ST_OK;
    if (!r->o->counters) return;
    if (!r->o->device.backend->counters) ret->no_counters = "this device has none";
    for (int i = 0; i < ret->results && !ret->no_counters; i++) {
        if (ret->result[i].left_out || ret->result[i].rung->variant) continue;
        st = count(r, i);
        if (st != ST_OK) ret->no_counters = arena_strdup(r->arena, fail_message());
    }
}

/* --- scores and explanations ------------------------------------------------------------------ */

static double least_ms(const struct running *r)
{
    struct device_facts f;
    const struct lab_options *o = r->o;
    double rate = 0;
    if (o->device.backend->texts) {
        if (!r->o->warm && o->device.backend->devices.describe(o->device.number, &f) == ST_OK)
            rate = f.memory_rate;
    } else if (o->machine) {
        rate = machine_copy_fastest(o->machine)->moved;
    }
    return rate > 0 ? r->ret->problem.bytes / rate * 1e3 : 0;
}

static enum status resources_of(struct running *r, int i)
{
    struct lab_result *x = &r->ret->result[i];
    struct device_facts f;
    if (!r->o->device.backend->texts || x->rung->variant) return ST_OK;
    TRY(lab_shape(x->rung, &r->ret->problem, &x->shape));
    TRY(r->o->device.backend->texts->resources(r->bench.context, r->bench.kernel[i], &x->shape,
                                               &x->resources));
    TRY(r->o->device.backend->devices.describe(r->o->device.number, &f));
    double grid = (double)x->shape.grid[0] * x->shape.grid[1] * x->shape.grid[2];
    if (x->resources.blocks > 0) x->waves = grid / ((double)x->resources.blocks * f.processors);
    return ST_OK;
}

static bool has_limits(const struct lab_limits *l)
{
    return l->registers || l->shared_bytes || l->threads || l->blocks;
}

/* Leaves out a rung that uses more than the limits allow. */
static enum status apply_limits(struct running *r, int i)
{
    const struct lab_limits *l = &r->o->limits;
    struct lab_result *x = &r->ret->result[i];
    if (x->left_out || x->rung->variant || !has_limits(l)) return ST_OK;
    TRY(resources_of(r, i));
    const struct kernel_resources *has = &x->resources;
    const unsigned *grid = x->shape.grid, *block = x->shape.block;
    const struct {
        const char *name, *what;
        int64_t limit, used;
    } all[] = {
        {"registers", "registers of a thread", l->registers, has->registers},
        {"shared", "bytes of shared memory of a block", l->shared_bytes, has->shared_bytes},
        {"threads", "threads of a block", l->threads, (int64_t)block[0] * block[1] * block[2]},
        {"blocks", "blocks of the grid", l->blocks, (int64_t)grid[0] * grid[1] * grid[2]},
    };
    for (int k = 0; k < COUNT_OF(all); k++) {
        if (all[k].limit && all[k].used < 0)
            return fail(ST_UNSUPPORTED,
                        "this device does not say how many %s a kernel uses; leave "
                        "--%s out",
                        all[k].what, all[k].name);
        if (all[k].limit && all[k].used > all[k].limit)
            x->left_out =
                arena_printf(r->arena, "uses %lld %s, and --%s allows %lld", (long long)all[k].used,
                             all[k].what, all[k].name, (long long)all[k].limit);
    }
    return ST_OK;
}

/* The time that has a score of 1: that of the ceiling or, with limits, that of the fastest rung. */
static double best_ms(const struct lab_run *r)
{
    double best = 0;
    if (!has_limits(&r->options->limits)) return r->ceiling ? r->ceiling_ms : 0;
    for (int i = 0; i < r->results; i++) {
        const struct lab_result *x = &r->result[i];
        if (x->left_out || x->rung->variant) continue;
        if (best == 0 || x->time.total.median < best) best = x->time.total.median;
    }
    return best;
}

static void find_ceiling(struct running *r)
{
    const struct machine *m = r->o->machine;
    struct lab_run *ret = r->ret;
    double bytes = ret->problem.bytes, rate = 0;
    for (int i = 0; i < ret->results; i++) {
        const struct lab_result *x = &ret->result[i];
        if (!x->rung->ceiling || x->left_out) continue;
        ret->ceiling = x->rung->name;
        ret->ceiling_ms = x->time.total.median;
    }
    if (!ret->copy) return;
    struct ceilings ceilings = m ? machine_ceilings(m) : (struct ceilings){0};
    /* If the run is neither cold nor warm, a cache may hold a part of the tensors; then no copy
     * that `strobe machine` measured is comparable. */
    if (m && ret->cold) rate = machine_copy_large(m)->moved;
    if (m && r->o->warm) rate = floor_copy_rate(&ceilings, bytes);
    ret->ceiling = ret->copy;
    ret->ceiling_ms = ret->copy_time.total.median;
    if (!(rate > 0) || bytes / rate * 1e3 >= ret->ceiling_ms) return;
    ret->ceiling = "a copy, as strobe machine measured it";
    ret->ceiling_ms = bytes / rate * 1e3;
}

/* Whether the timed result before x is that of the rung before x's rung in the whole ladder, which
 * may have rungs of this type that the user did not choose. */
static bool is_next(const struct running *r, const struct lab_result *x)
{
    int n;
    const struct lab_rung *all = lab_rungs(r->o->ladder, &r->o->device, &n), *before = NULL;
    for (int i = 0; i < n && strcmp(all[i].name, x->rung->name) != 0; i++)
        if (lab_has_type(&all[i], r->o->type)) before = &all[i];
    const struct lab_result *y = x - 1;
    while (y > r->ret->result && y->left_out) y--;
    return before && !strcmp(y->rung->name, before->name);
}

/* If a rung is not faster than the rung before it in the ladder, appends the reason. */
static const char *with_no_gain(const struct running *r, const struct lab_result *x, const char *s)
{
    const struct lab_rung *rung = x->rung;
    const struct verdict *v = &x->previous.verdict;
    bool slower = v->kind == VERDICT_SAME || v->kind == VERDICT_SLOWER;
    if (!slower || !rung->no_gain || !is_next(r, x)) return s;
    if (rung->no_gain_at && !rung->no_gain_at(&r->ret->problem)) return s;
    return arena_printf(r->arena, "%s. Not faster than the rung above: %s", s, rung->no_gain);
}

/* "its FLOPs would take 31 % of its time ..., its traffic through shared memory 84 %; limited by
 * ..." The shares assume that shared memory moves 128 bytes per clock in each multiprocessor, at
 * the nominal clock, and that FLOPs run at the peak that `strobe machine` measured. */
static const char *why_slow(const struct running *r, const struct lab_result *x)
{
    static const double LEAST_FLOPS = 1e8; /* smaller problems do not reach any of the limits */
    enum { SHARED_RATE = 128 };
    const struct lab_rung *rung = x->rung;
    const struct lab_problem *p = &r->ret->problem;
    const struct machine_peak *peak =
        r->o->machine
            ? machine_peak(r->o->machine, machine_precision(p->dtype, p->type == LAB_TF32))
            : NULL;
    struct device_facts f = {0};
    double ms = x->time.total.median;
    const char *s = "";
    if (rung->variant || p->flops < LEAST_FLOPS) return NULL;
    bool known = r->o->device.backend->devices.describe(r->o->device.number, &f) == ST_OK;
    if (peak)
        s = arena_printf(r->arena,
                         "its FLOPs would take %.3g %% of its time at this machine's best rate",
                         100 * p->flops / peak->flops * 1e3 / ms);
    if (rung->shared && known && f.clock_mhz > 0)
        s = arena_printf(
            r->arena, "%s%s traffic through shared memory %.3g %%", s, *s ? ", its" : "its",
            100 * rung->shared(p) / (SHARED_RATE * f.processors * f.clock_mhz * 1e3) / ms);
    if (rung->bound)
        s = arena_printf(r->arena, "%s%slimited by %s", s, *s ? "; " : "", rung->bound);
    return *s ? with_no_gain(r, x, s) : NULL;
}

/* "moves 8 times the useful bytes, which takes 94 % of its time at the ceiling's bandwidth; ..."
 * NULL if the tensors are small or may be in a cache, because then memory may not be the limit. */
static const char *why(const struct running *r, const struct lab_result *x)
{
    static const double LEAST_BYTES = 16 << 20, MOST = 1.15; /* of the ceiling's bandwidth */
    const struct lab_rung *rung = x->rung;
    double useful = r->ret->problem.bytes, moved = useful;
    if (r->ret->problem.flops > 0) return why_slow(r, x);
    if (rung->own) return NULL; /* the bytes that a user's kernel moves are unknown */
    if (!r->ret->cold || useful < LEAST_BYTES) return NULL;
    if (rung->moved) moved = rung->moved(&r->ret->problem);
    double share = x->share * moved / useful; /* of the rung's time, at the ceiling's bandwidth */
    const char *s =
        moved > 1.01 * useful
            ? arena_printf(r->arena, "moves %.3g times the useful bytes", moved / useful)
            : "moves only the useful bytes";
    if (share > MOST && moved > 1.01 * useful)
        s = arena_printf(r->arena,
                         "would move %.3g times the useful bytes without caches; they keep a part",
                         moved / useful);
    else if (share >= 0.85)
        s = arena_printf(r->arena,
                         "%s, at %.0f %% of the ceiling's bandwidth: nothing but bytes limits it",
                         s, 100 * share);
    else
        s = arena_printf(r->arena,
                         "%s, which takes %.0f %% of its time at the ceiling's bandwidth; the rest "
                         "is %s",
                         s, 100 * share,
                         rung->bound ? rung->bound : "not explained: its row names no other limit");
    return with_no_gain(r, x, s);
}

static void conclude(struct running *r)
{
    struct lab_run *ret = r->ret;
    const struct lab_result *first = NULL, *previous = NULL;
    double ceiling = ret->ceiling_ms, best = best_ms(ret), least = least_ms(r);
    for (int i = 0; i < ret->results; i++) {
        struct lab_result *x = &ret->result[i];
        double ms = x->time.total.median;
        if (x->left_out) continue;
        if (ms < least) {
            x->left_out = arena_printf(r->arena,
                                       "not believed: %.3g us, but the memory needs %.3g us for "
                                       "its bytes",
                                       1e3 * ms, 1e3 * least);
            continue;
        }
        x->rate = ret->problem.bytes / ms * 1e3;
        x->share = ret->ceiling ? ceiling / ms : NAN;
        struct timed now = rounds_timed(&x->time, r->arena);
        if (previous) {
            struct timed before = rounds_timed(&previous->time, r->arena);
            struct timed begin = rounds_timed(&first->time, r->arena);
            x->previous = judge(&before, &now);
            x->first = judge(&begin, &now);
        }
        if (!first) first = x;
        double way = best > 0 ? log(first->time.total.median / best) : 0;
        x->score = way > 0 ? log(first->time.total.median / ms) / way : NAN;
        x->why = why(r, x);
        previous = x;
    }
}

/* --- the run ---------------------------------------------------------------------------------- */

/* Sets lab_run.sets such that all sets together exceed twice the last cache, if the most sets that
 * a trial can have suffice. */
static void choose_sets(const struct running *r)
{
    struct device_facts f;
    const struct device *d = &r->o->device;
    int64_t bytes = lab_set_bytes(&r->ret->problem);
    r->ret->sets = 1;
    if (d->backend->devices.describe(d->number, &f) != ST_OK) return;
    int64_t sets = 1 + 2 * f.cache_bytes / bytes;
    if (!r->o->warm) r->ret->sets = sets < TRIAL_SETS ? (int)sets : TRIAL_SETS;
    r->ret->cold = f.cache_bytes > 0 && r->ret->sets == sets;
}

static enum status open_ceiling(struct running *r)
{
    const struct backend *b = r->o->device.backend;
    if (!r->ret->copy) return ST_OK;
    for (int s = 0; s < r->ret->sets; s++) {
        TRY(b->memory.alloc(r->bench.context, r->copied, &r->from[s]));
        TRY(b->memory.alloc(r->bench.context, r->copied, &r->to[s]));
        TRY(b->memory.fill(r->bench.context, r->from[s], (uint8_t)(s + 1), r->copied));
    }
    return ST_OK;
}

/* Fails if no rung can run at this size. */
static enum status check_any(const struct running *r)
{
    const struct lab_run *ret = r->ret;
    for (int i = 0; i < ret->results; i++)
        if (!ret->result[i].left_out || ret->result[i].wrong) return ST_OK;
    bool limits = has_limits(&r->o->limits);
    return fail(ST_UNSUPPORTED, "no rung can run: %s; choose another --size%s",
                ret->results ? ret->result[ret->results - 1].left_out
                             : "there is none of this type",
                limits ? " or other limits" : " or --dtype");
}

static enum status run_rungs(struct running *r)
{
    struct lab_run *ret = r->ret;
    const struct lab_options *o = r->o;
    int64_t n[LAB_SIZES];
    TRY(lab_bench_open(&r->bench, o->ladder, &o->device, o->type, o->form, o->only,
                       o->own_left_out ? NULL : o->own));
    memcpy(n, o->n, sizeof n);
    if (!n[0]) memcpy(n, o->device.backend->texts ? o->ladder->gpu : o->ladder->cpu, sizeof n);
    lab_problem_of(&r->bench, n, &ret->problem);
    ret->results = r->bench.rungs;
    for (int i = 0; i < ret->results; i++) {
        ret->result[i] =
            (struct lab_result){.rung = &r->bench.rung[i],
                                .left_out = lab_rung_refuses(&r->bench, i, &ret->problem, r->arena),
                                .error = NAN,
                                .score = NAN,
                                .counted = NAN,
                                .measured = NAN,
                                .resources = {-1, -1, -1, -1, -1, -1, NULL}};
        if (r->bench.rung[i].ceiling) ret->copy = NULL;
        TRY(apply_limits(r, i));
    }
    if (o->own_left_out)
        ret->result[ret->results++] = (struct lab_result){.rung = o->own,
                                                          .left_out = o->own_left_out,
                                                          .error = NAN,
                                                          .score = NAN,
                                                          .counted = NAN,
                                                          .measured = NAN};
    choose_sets(r);
    ret->tolerance = o->ladder->tolerance(&ret->problem);
    r->copied = ret->copy ? (int64_t)(ret->problem.bytes / 2) : 0;
    TRY(memory_check_problem(&r->bench, &ret->problem, ret->sets, 2 * r->copied, r->arena));
    TRY(check_odd(r));
    show(r, CHECKED, "the solution in double precision");
    TRY(lab_trial_open(&r->trial, &r->bench, n, ret->sets));
    TRY(check_all(r, &r->trial, 0, true));
    TRY(check_any(r));
    TRY(open_ceiling(r));
    TRY(time_all(r));
    TRY(check_all(r, &r->trial, ret->sets - 1, false));
    for (int i = 0; i < ret->results; i++)
        if (!ret->result[i].left_out) TRY(resources_of(r, i));
    find_ceiling(r);
    conclude(r);
    count_all(r);
    return ST_OK;
}

enum status lab_run(const struct lab_options *o, struct lab_run *ret, struct arena *a)
{
    struct running *r = ARENA_NEW(a, struct running, 1);
    *ret = (struct lab_run){.options = o};
    *r = (struct running){.o = o, .ret = ret, .arena = a};
    ret->copy = ceiling_copy_name(&o->device, a);
    enum status st = run_rungs(r);
    for (int s = 0; s < ret->sets; s++) {
        if (r->from[s]) o->device.backend->memory.free(r->bench.context, r->from[s]);
        if (r->to[s]) o->device.backend->memory.free(r->bench.context, r->to[s]);
    }
    if (r->trial.bench) lab_trial_close(&r->trial);
    lab_bench_close(&r->bench);
    return st;
}

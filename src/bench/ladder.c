#include "bench/ladder.h"

#include "base/interrupt.h"
#include "base/load.h"
#include "base/log.h"
#include "bench/forecast.h"
#include "bench/product_error.h"
#include "engine/device.h"
#include "measure/random_crew.h"
#include "measure/random_step.h"
#include "measure/rounds.h"

#include <math.h>
#include <string.h>

enum { LEAST = 3, KEYS_MOST = 5, PAD = 64, CPU = 1, GPU = 2, RANKS = 4 };

/* Warm-up runs. A GPU first compiles kernels, then captures the step if replay=true, and then needs
 * time until its clock is stable. */
static const struct {
    int runs, cold;
} warmup_of_host = {3, 0}, warmup_of_device = {10, 2};

/* The rungs, the ladders that contain them, and the keys that each rung changes relative to the
 * rung before it in the same ladder. The first rung of a ladder sets all keys that later rungs
 * change. The CPU and GPU ladders follow published tables (configs/published/gpt2_124m.json has the
 * same names). The CPU ladder has one more rung at the start, and its rung tfloat32 is unsupported.
 * In the ladder of several ranks, "ranks=" gets the number of ranks, and the first rung is one rank
 * that does the work of all ranks. */
/* clang-format off */
static const struct {
    int on;
    const char *name, *key[KEYS_MOST];
} rungs[] = {
    {CPU,       "primitive, slow",   {"dtype=float32", "fusion=primitive", "flash=false", "pad_vocab=0"}},
    {CPU,       "float32, slow",     {"fusion=op"}},
    {GPU,       "float32, slow",     {"dtype=float32", "fusion=op", "flash=false", "pad_vocab=0", "replay=false"}},
    {CPU | GPU, "tfloat32",          {"dtype=tfloat32"}},
    {CPU | GPU, "bfloat16",          {"dtype=bfloat16"}},
    {CPU | GPU, "full fusion",       {"fusion=full"}},
    {CPU | GPU, "flash",             {"flash=true"}},
    {CPU | GPU, "padded vocabulary", {"pad_vocab=64"}},
    {GPU,       "replay",            {"replay=true"}},
    {GPU,       "float8",            {"dtype=float8"}},
    {RANKS,     "one rank",          {"ranks=1", "overlap=none"}},
    {RANKS,     "none",              {"ranks=", "overlap=none"}},
    {RANKS,     "flat",              {"overlap=flat"}},
    {RANKS,     "parameter",         {"overlap=parameter"}},
    {RANKS,     "bucket",            {"overlap=bucket"}},
};
/* clang-format on */

static bool sets(const char *const key[KEYS_MOST], const char *word, int64_t length)
{
    for (int i = 0; i < KEYS_MOST && key[i]; i++)
        if ((int64_t)strcspn(key[i], "=") == length && !strncmp(key[i], word, (size_t)length))
            return true;
    return false;
}

/* The ladder that a configuration uses. */
static int ladder_on(const struct config *c, bool gpu)
{
    return c->ranks.count > 1 ? RANKS : gpu ? GPU : CPU;
}

bool ladder_sets(const struct config *c, const char *key, int64_t length)
{
    if (length == 5 && !strncmp(key, "ranks", 5)) return false; /* it selects the ladder */
    for (int i = 0; i < COUNT_OF(rungs); i++)
        if (!(rungs[i].on & RANKS) == (c->ranks.count == 1) && sets(rungs[i].key, key, length))
            return true;
    return false;
}

/* True if the configuration still has a value of `key` that a row before `i` sets. */
static bool not_made_yet(const struct config *c, int i, const char *key, struct arena *a)
{
    int64_t length = (int64_t)strcspn(key, "=");
    const char *now = config_value_text(c, arena_printf(a, "%.*s", (int)length, key), a);
    if (!strcmp(now, key + length + 1)) return false;
    for (int before = 0; before < i; before++)
        for (int k = 0; k < KEYS_MOST && rungs[before].key[k]; k++) {
            const char *set = rungs[before].key[k];
            if (!strncmp(set, key, (size_t)length + 1) && !strcmp(set + length + 1, now))
                return true;
        }
    return false;
}

bool ladder_next(const struct config *c, bool gpu, int *at, struct ladder_rung *ret,
                 struct arena *a)
{
    for (; *at < COUNT_OF(rungs); ++*at) {
        const char *key = rungs[*at].key[0]; /* only the first rung of a ladder sets several keys */
        if (!(rungs[*at].on & (gpu ? GPU : CPU)) || rungs[*at].key[1]) continue;
        if (!strncmp(key, "pad_vocab", 9) && !model_reads(&c->model, "pad_vocab")) continue;
        if (!not_made_yet(c, *at, key, a)) continue;
        *ret = (struct ladder_rung){.name = rungs[*at].name, .config = *c};
        ret->differs = arena_printf(a, "--%s", key);
        BUG_IF(config_set(&ret->config, key, a) != ST_OK, "the ladder sets %s", key);
        ++*at;
        return true;
    }
    return false;
}

struct trial {
    struct ladder_rung *rung;
    struct random_crew_job job;
    struct crew crew; /* the other ranks */
    struct engine engine;
    struct random_step random_step;
    int iteration;
    bool open;
    struct gauge *gauge; /* telemetry; NULL: not available, or off */
    bool beside;         /* a thread samples the telemetry; else it is sampled between steps */
    int64_t bytes;       /* planned memory of the engine */
    int64_t room;        /* free memory of the device before opening */
    struct arena arena;
};

struct trials {
    const struct ladder_options *o;
    struct ladder *l;
    struct device device;
    struct trial trial[LADDER_RUNGS];
    struct contender contender[LADDER_RUNGS]; /* per trial */
    int begun, trials;                        /* begun: the first rung of those that run now */
    struct arena *a;
};

/* Applies the keys of row `i` to the configuration of the rung before. ST_UNSUPPORTED: the device
 * cannot run the result. */
static enum status configure(struct trials *c, int i, struct ladder_rung *r,
                             const struct config *before, int64_t *ret_bytes)
{
    *r = (struct ladder_rung){.name = rungs[i].name, .differs = "", .config = *before};
    for (int k = 0; k < KEYS_MOST && rungs[i].key[k]; k++) {
        const char *key = rungs[i].key[k];
        if (!strcmp(key, "ranks="))
            key = arena_printf(c->a, "ranks=%lld", (long long)c->o->config->ranks.count);
        TRY(config_set(&r->config, key, c->a));
        r->differs = arena_printf(c->a, "%s%s--%s", r->differs, k ? " " : "", key);
    }
    r->precision = machine_precision(precision_is_mixed(r->config.plan.dtype) ? DT_BF16 : DT_F32,
                                     r->config.plan.dtype == PRECISION_TFLOAT32);
    bool pads = r->config.model.pad_vocab && !(rungs[i].on & RANKS);
    if (pads && !model_reads(&r->config.model, "pad_vocab"))
        return fail(ST_UNSUPPORTED, "the model has no vocabulary");
    if (pads && c->o->vocab % PAD == 0)
        return fail(ST_UNSUPPORTED, "the vocabulary, %lld, is a multiple of %d already",
                    (long long)c->o->vocab, PAD);
    TRY(model_check(&r->config));
    return random_step_bytes(&r->config, c->o->vocab, EXTENT_STEP, ret_bytes);
}

static struct bench_cell step_of(const struct trials *c, const struct config *config)
{
    return (struct bench_cell){
        .config = *config, .vocab = c->o->vocab, .lines = 1u << BENCH_STEP, .steps = 1};
}

/* This rung needs too much memory: lowers batch_that_fits to the batch size with which it fits.
 * Only on a CPU. */
static void find_batch(struct trials *c, const struct config *config)
{
    struct bench_cell cell = step_of(c, config);
    unsigned lines;
    int64_t *least = &c->l->batch_that_fits, *batch = &cell.config.data.batch_size;
    struct failure kept;
    if (!c->device.backend->host_memory) return;
    fail_keep(&kept);
    enum status st = forecast_fit(&cell, c->o->room, true, &lines);
    fail_restore(&kept);
    if (st == ST_OK && lines == cell.lines && (!*least || *batch < *least)) *least = *batch;
}

static enum status find_rungs(struct trials *c)
{
    const struct config *before = c->o->config;
    int ladder = ladder_on(before, !c->device.backend->host_memory);
    for (int i = 0; i < COUNT_OF(rungs); i++) {
        if (!(rungs[i].on & ladder)) continue;
        struct ladder_rung *r = &c->l->rung[c->l->rungs++];
        int64_t bytes;
        enum status st = configure(c, i, r, before, &bytes);
        if (st != ST_OK && (c->l->rungs == 1 || st != ST_UNSUPPORTED)) return st;
        if (st == ST_OK) {
            before = &r->config;
            st = random_step_check_memory(&r->config, c->o->vocab, EXTENT_STEP, bytes, c->o->room);
            if (st != ST_OK) find_batch(c, &r->config);
        }
        if (st == ST_OK)
            c->trial[c->trials++] = (struct trial){.rung = r, .bytes = bytes};
        else
            r->reason = arena_strdup(c->a, fail_message());
    }
    if (c->trials) return ST_OK;
    return fail(ST_UNSUPPORTED, "no rung can be run; the first: %s", c->l->rung[0].reason);
}

/* Opens the telemetry of a rung. If the rung runs alone, a thread samples the telemetry; else it is
 * sampled before and after each step. */
static void open_gauge(const struct trials *c, struct trial *one)
{
    enum { MOST_MS = 100 };
    const struct engine *e = &one->engine;
    int64_t interval_ms = c->o->config->train.sample_interval;
    if (!interval_ms) return;
    one->beside = !c->device.backend->host_memory;
    if (interval_ms > MOST_MS) interval_ms = MOST_MS;
    if (gauge_open(&one->gauge, e->backend, e->context, one->beside ? interval_ms : 0) != ST_OK)
        log_info("device telemetry (clock, power) is not sampled: %s", fail_message());
}

/* Samples the telemetry, but not in the first steps, in which kernels are compiled. */
static void sample_gauge(struct trial *one, bool begins)
{
    if (!one->gauge || one->iteration < warmup_of_device.cold) return;
    if (!one->beside || one->iteration == warmup_of_device.cold) gauge_work(one->gauge, begins);
}

static enum status open_trial(struct trials *c, struct trial *one)
{
    struct ladder_rung *r = one->rung;
    one->room = c->device.backend->devices.free_memory(c->device.number);
    one->job = (struct random_crew_job){.config = &r->config, .vocab = c->o->vocab};
    crew_set_threads(&r->config);
    TRY(random_crew_open(&one->crew, &one->job));
    TRY(random_step_open(&one->engine, &r->config, c->o->vocab, one->crew.communicator,
                         &one->arena));
    one->open = true;
    r->facts = facts_of(&one->engine.program);
    if (!(c->l->parameters > 0)) {
        const struct model *m = &one->engine.program.model;
        c->l->parameters = (double)model_count(m, false);
        c->l->flops_per_token = model_flops_per_token(m, m->config.block_size);
    }
    TRY(random_step_init(&one->random_step, &one->engine, &one->arena));
    one->random_step.lookahead = true;
    open_gauge(c, one);
    return ST_OK;
}

static void close_trial(struct trial *one)
{
    gauge_close(one->gauge);
    one->gauge = NULL;
    crew_close(&one->crew);
    random_step_close(&one->random_step);
    if (one->open) engine_close(&one->engine);
    one->open = false;
    arena_release(&one->arena);
}

static enum status step(void *user, int calls, double *ret_ms)
{
    struct trial *one = user;
    const struct engine *e = &one->engine;
    int64_t before = e->backend->launches ? e->backend->launches->count(e->context) : 0;
    BUG_IF(calls != 1, "%d calls", calls);
    sample_gauge(one, true);
    crew_set_threads(&one->rung->config);
    TRY(random_step_run(&one->random_step, one->iteration, NULL, &ret_ms[0]));
    if (!one->beside) sample_gauge(one, false);
    if (one->iteration++) return ST_OK;
    one->rung->loss = one->random_step.loss;
    if (e->backend->launches) one->rung->started = e->backend->launches->count(e->context) - before;
    return ST_OK;
}

static void show(void *user, double done_ms, double expected_ms)
{
    const struct trials *c = user;
    bool warm = expected_ms > 0;
    double share = warm ? fmin(done_ms / expected_ms, 1) : 0, before = c->begun;
    const char *what =
        c->l->order == LADDER_IN_TURN ? "rungs in turn" : c->trial[c->begun].rung->name;
    if (c->l->order != LADDER_IN_TURN) share = (before + share) / c->trials;
    if (c->o->each) c->o->each(c->o->user, share, warm ? what : "warming up");
}

static void show_opening(const struct trials *c, int at)
{
    double share = c->l->order == LADDER_IN_TURN ? 0 : (double)at / c->trials;
    const char *name = c->trial[at].rung->name;
    if (c->o->each) c->o->each(c->o->user, share, arena_printf(c->a, "opening %s", name));
}

/* Decrease of free device memory since the rung was opened, including captured graphs. */
static int64_t taken(const struct trials *c, const struct trial *one)
{
    const struct backend *b = c->device.backend;
    if (b->host_memory || one->room < 0) return 0;
    int64_t now = b->devices.free_memory(c->device.number);
    return now >= 0 && now < one->room ? one->room - now : 0;
}

static enum status run_trials(struct trials *c, int first, int n)
{
    struct contender *contender = &c->contender[first];
    bool host = c->device.backend->host_memory;
    struct rounds rounds = {
        .most = c->o->steps, .least = LEAST, .keep = c->a, .each = show, .user = c};
    rounds.warmup = (host ? warmup_of_host.runs : warmup_of_device.runs) - 1;
    rounds.cold = host ? warmup_of_host.cold : warmup_of_device.cold;
    if (rounds.least > rounds.most) rounds.least = rounds.most;
    c->begun = first;
    for (int i = 0; i < n; i++) {
        struct trial *one = &c->trial[first + i];
        if (interrupt_noted()) return fail(ST_INTERRUPTED, "interrupted");
        show_opening(c, first + i);
        TRY(open_trial(c, one));
        contender[i] =
            (struct contender){.sample = step, .user = one, .parts = 1, .one_by_one = true};
        contender[i].budget_ms = c->o->limit_ms;
    }
    TRY(rounds_run(&rounds, contender, n));
    for (int i = 0; i < n; i++) {
        struct ladder_rung *r = c->trial[first + i].rung;
        r->ms = contender[i].total;
        r->first_ms = contender[i].first_ms;
        r->taken = taken(c, &c->trial[first + i]);
        struct gauge *gauge = c->trial[first + i].gauge;
        if (!gauge) continue;
        if (c->trial[first + i].beside) gauge_work(gauge, false);
        r->gauges = gauge_summarize(gauge);
    }
    return ST_OK;
}

/* On a GPU each rung runs alone, because the heat of a step lowers the clock of the next step. */
static enum ladder_order order_of(const struct trials *c)
{
    if (!c->device.backend->host_memory) return LADDER_WARM;
    return c->o->room < 0 || c->l->bytes <= c->o->room / 2 ? LADDER_IN_TURN : LADDER_NO_ROOM;
}

/* The predicted time of all rungs with the warm-up and samples of rounds_run; 0: unknown. */
static double expected_ms(const struct trials *c)
{
    const struct machine *m = c->o->machine;
    const double slow_ms = 500;
    double all = 0;
    if (!c->device.backend->host_memory || !m->peaks || !m->copies) return 0;
    for (int i = 0; i < c->trials; i++) {
        struct bench_cell cell = step_of(c, &c->trial[i].rung->config);
        double ms, least = c->o->steps < LEAST ? c->o->steps : LEAST;
        if (forecast_ms(&cell, cell.lines, m, &ms) != ST_OK) return 0;
        double samples = ms > c->o->limit_ms ? 1 : fmax(c->o->limit_ms / fmax(ms, 1e-6), least);
        all += ms * (fmin(samples, c->o->steps) + (ms > slow_ms ? 1 : warmup_of_host.runs));
    }
    return all;
}

static double clock_of(const struct ladder_rung *r)
{
    return r->gauges.value[GAUGE_CLOCK].mean;
}

/* Compares a rung with the preceding rung that ran. All keys of a ladder change facts.work. */
static struct judgement judge_rung(const struct trials *c, int before, int i)
{
    struct timed x = rounds_timed(&c->contender[before], c->a),
                 y = rounds_timed(&c->contender[i], c->a);
    if (c->l->order != LADDER_IN_TURN) x.turn = y.turn = NULL;
    x.plan = c->trial[before].rung->facts.work;
    y.plan = c->trial[i].rung->facts.work;
    if (c->device.backend->host_memory) x.others = y.others = c->l->others;
    return judge(&x, &y);
}

static void conclude(struct trials *c)
{
    const struct ladder_rung *first = NULL;
    int last = -1; /* the last rung that ran */
    for (int i = 0; i < c->trials; i++) {
        struct ladder_rung *r = c->trial[i].rung;
        if (r->reason) continue;
        if (!first) first = r;
        double ms = r->ms.median, seconds = ms * 1e-3;
        const struct machine_peak *peak = machine_peak(c->o->machine, r->precision);
        r->tokens_per_s = r->facts.tokens / seconds;
        if (last >= 0) {
            r->times_before = c->trial[last].rung->ms.median / ms;
            r->speed = judge_rung(c, last, i);
        }
        r->times_first = first->ms.median / ms;
        if (peak) {
            double model = c->l->flops_per_token * r->tokens_per_s,
                   plan = r->facts.flops * (double)r->config.ranks.count / seconds;
            r->mfu = model / peak->flops; /* above 1: the peak was measured too low */
            r->plan_share = plan / peak->flops;
            c->l->peak_exceeded |= r->mfu > 1 || r->plan_share > 1;
        }
        last = i;
    }
}

double ladder_clock_range(const struct ladder *l, const struct ladder_rung **ret_slowest,
                          const struct ladder_rung **ret_fastest)
{
    const struct ladder_rung *slowest = NULL, *fastest = NULL;
    for (int i = 0; i < l->rungs; i++) {
        const struct ladder_rung *r = &l->rung[i];
        if (r->gauges.samples == 0 || !(clock_of(r) > 0)) continue;
        if (!slowest || clock_of(r) < clock_of(slowest)) slowest = r;
        if (!fastest || clock_of(r) > clock_of(fastest)) fastest = r;
    }
    if (!slowest) return 0;
    *ret_slowest = slowest;
    *ret_fastest = fastest;
    return 1 - clock_of(slowest) / clock_of(fastest);
}

/* True if a failure becomes the reason of a rung that runs alone and does not end the ladder: the
 * device lacks a feature (found when opening) or memory (found in a step), or Ctrl-C was pressed
 * after another rung was measured. */
static bool is_of_rung(const struct trials *c, enum status st)
{
    bool measured = false;
    if (c->l->order == LADDER_IN_TURN) return false;
    for (int i = 0; i < c->trials; i++) measured |= c->trial[i].rung->ms.n > 0;
    return st == ST_UNSUPPORTED || st == ST_MEMORY || (st == ST_INTERRUPTED && measured);
}

static const char *reason_of(enum status st, struct arena *a)
{
    if (st == ST_INTERRUPTED) return "not reached: the run was stopped";
    return arena_printf(a, st == ST_MEMORY ? "did not fit: %s" : "%s", fail_message());
}

/* Sets the error of one matmul per precision, before engines use the memory; 0 if that fails. */
static void add_errors(struct trials *c)
{
    double error[MACHINE_PRECISIONS] = {0};
    for (int i = 0; i < c->trials; i++) {
        struct ladder_rung *r = c->trial[i].rung;
        double *known = &error[r->precision];
        if (r->config.plan.dtype == PRECISION_FLOAT8) continue;
        if (*known == 0 && product_error(&c->device, r->precision, known) != ST_OK) *known = NAN;
        if (isfinite(*known)) r->error = *known;
    }
}

enum status ladder_run(const struct ladder_options *o, struct ladder *ret, struct arena *a)
{
    struct trials c = {.o = o, .l = ret, .a = a};
    enum status st = ST_OK;
    *ret = (struct ladder){0};
    TRY(device_of(o->config, &c.device));
    TRY(find_rungs(&c));
    add_errors(&c);
    for (int i = 0; i < c.trials; i++) ret->bytes += c.trial[i].bytes;
    ret->room = o->room;
    ret->order = order_of(&c);
    ret->expected_ms = expected_ms(&c);
    if (o->begin) o->begin(ret);
    int together = ret->order == LADDER_IN_TURN ? c.trials : 1;
    struct load load = load_start();
    for (int i = 0; i < c.trials && st == ST_OK; i += together) {
        st = run_trials(&c, i, together);
        for (int k = i; k < i + together; k++) close_trial(&c.trial[k]);
        if (is_of_rung(&c, st)) {
            c.trial[i].rung->reason = reason_of(st, a);
            st = ST_OK;
        }
    }
    ret->others = load_others(&load);
    if (st == ST_OK) conclude(&c);
    return st;
}

/* cs336-profile: each part of a step by the clock and by the profiler, its longest kernel, the
 * share of matmuls, and softmax compared with the matmuls of attention. */
#include "present/table_cells.h"
#include "suite/announce.h"
#include "suite/kernels.h"
#include "suite/softmax.h"
#include "suite/suites.h"

#include <math.h>
#include <string.h>

enum { LENGTHS_MOST = 8, STEPS = 10, WARMUP = 5, TOP = 5 };
static const double limit_ms = 30e3, small_limit_ms = 2e3;
static const char lengths[] = "128,256,512,1024", small_lengths[] = "32,64,128";
static const struct suite_small smaller[SUITE_SMALLS] = {
    {"size n_layer", "models of 2 to 6 layers"},
    {"size n_embd", "128 to 384 columns"},
    {"block_size", "T 32, 64 and 128 instead of 128 to 1024"},
};

struct profiling {
    const struct suite_request *request;
    const struct suite_size *size;
    int sizes;
    int64_t length[LENGTHS_MOST];
    int lengths;
    int64_t *batch; /* of each size at each length */
    bool small;
    struct sheet_table *phases;
    struct softmax_lines inside;
    struct kernel_lines kernels;
    int rows;
    struct arena *a;
};

/* --- parts of a step -------------------------------------------------------------------------- */

/* Phases of the table: the phases of the profiler, and the line of the clock. */
static const struct {
    unsigned phases;
    enum bench_line line;
} parts[] = {
    {1u << PHASE_FORWARD, BENCH_FORWARD},
    {1u << PHASE_BACKWARD, BENCH_BACKWARD},
    {1u << PHASE_FORWARD | 1u << PHASE_BACKWARD, BENCH_BOTH},
    {1u << PHASE_UPDATE, BENCH_UPDATE},
    {PHASES_ALL, BENCH_STEP},
};

/* clang-format off */
#define COLUMNS(X) \
    X("config", "config", "the model", TEXT, name) \
    X("T", "T", "tokens per sequence", NUMBER, true, 0, (double)T) \
    X("phase", "phase", "phase of a training step", TEXT, p ? bench_line_name(parts[part].line) : NULL) \
    X("clock_ms", "ms, clock", "mean, by the clock of the host", NUMBER, p, 4, ms->mean) \
    X("clock_std", "std", "standard deviation", STD, p, ms) \
    X("profiler_ms", "ms, profiler", "mean of kernels and the idle time between them", NUMBER, p, 4, profile_ms(p, phases)) \
    X("idle_percent", "idle %", "share of the phase in which nothing ran", NUMBER, p, 3, percent_of(p, phases, FAMILY_IDLE)) \
    X("kernel", "longest kernel", "the kernel with the largest total time", TEXT, longest ? arena_strdup(row.arena, longest->name) : NULL) \
    X("kernel_percent", "% of it", "its share of the phase", NUMBER, longest, 3, 100 * longest->share) \
    X("kernel_calls", "calls", "calls of that kernel in the phase", NUMBER, longest, 0, longest->runs) \
    X("products_percent", "matmuls %", "share of the phase", NUMBER, p, 3, percent_of(p, phases, FAMILY_MATMUL)) \
    X("softmax_percent", "softmax %", "share of the phase", NUMBER, p, 3, percent_of(p, phases, FAMILY_SOFTMAX)) \
    X("norms_percent", "norms %", "share of the phase", NUMBER, p, 3, percent_of(p, phases, FAMILY_NORMS)) \
    X("pointwise_percent", "pointwise %", "share of the phase", NUMBER, p, 3, percent_of(p, phases, FAMILY_POINTWISE)) \
    X("note", "note", "why it was not measured", TEXT, reason)
/* clang-format on */

static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

/* Share of the phases; NAN: none of it. */
static double percent_of(const struct profile *p, unsigned phases, enum family family)
{
    double ms = profile_family_ms(p, phases, family);
    return ms > 0 ? 100 * ms / profile_ms(p, phases) : NAN;
}

/* `p`: NULL if there is a reason why it was not measured. */
static void set_part(struct table_row row, const char *name, int64_t T, int part,
                     const struct bench_cell *clock, const struct profile *p, const char *reason)
{
    struct profile_groups g = {0};
    struct arena scratch = {0};
    unsigned phases = parts[part].phases;
    const struct stats *ms = &clock->line[parts[part].line].ms;
    if (p) profile_groups(p, BY_KERNEL, phases, &g, &scratch);
    const struct profile_group *longest = g.groups > 1 ? &g.group[0] : NULL;
    COLUMNS(TABLE_CELL)
    arena_release(&scratch);
}

/* --- one model at one length ------------------------------------------------------------------ */

static enum status clock_cell(const struct profiling *x, const struct config *c,
                              struct bench_cell *ret)
{
    const struct suite_request *r = x->request;
    *ret = (struct bench_cell){.config = *c,
                               .vocab = suite_vocabulary(c, CS336_VOCABULARY),
                               .warmup = x->small ? 1 : WARMUP};
    ret->steps = r->steps ? (int)r->steps : x->small ? VERDICT_PAIRS : STEPS;
    return bench_read_lines(&ret->lines, "backward,update,step");
}

static enum status time_it(const struct profiling *x, const struct config *c,
                           struct bench_cell *ret)
{
    struct bench_options o = {.order = BENCH_ONCE, .limit = x->request->limit};
    TRY(clock_cell(x, c, ret));
    return bench_cells_run(&o, ret, 1, NULL, x->a);
}

static const char *rung_of(const struct config *c, struct arena *a)
{
    return config_value_text(c, "fusion", a);
}

static enum status add_one(struct profiling *x, const char *name, int64_t T, const struct config *c)
{
    struct bench_cell clock;
    struct profiled p;
    TRY(time_it(x, c, &clock));
    const char *reason = clock.reason;
    if (!reason) {
        TRY(profiled_run(&p, x->request, c, clock.vocab, clock.steps,
                         x->small ? small_limit_ms : limit_ms, false));
        if (p.reason) reason = arena_strdup(x->a, p.reason);
    }
    for (int i = 0; i < (reason ? 1 : COUNT_OF(parts)); i++)
        set_part((struct table_row){&x->phases->table, x->rows++, 0, x->a}, name, T, i, &clock,
                 reason ? NULL : &p.profile, reason);
    if (!reason) {
        softmax_add(&x->inside, name, T, rung_of(c, x->a), &p.profile, NULL);
        kernel_lines_add(&x->kernels, name, T, "forward", 1u << PHASE_FORWARD, &p.profile);
        kernel_lines_add(&x->kernels, name, T, "step", PHASES_ALL, &p.profile);
    }
    if (!clock.reason) profiled_close(&p);
    return ST_OK;
}

/* Only what is inside attention, at another rung. */
static enum status add_rung(struct profiling *x, const char *name, int64_t T,
                            const struct config *c, const char *rung)
{
    struct profiled p;
    struct config other = *c;
    const struct suite_request *r = x->request;
    if (suite_stopped()) return ST_OK;
    TRY(config_set(&other, arena_printf(x->a, "fusion=%s", rung), x->a));
    TRY(profiled_run(&p, r, &other, suite_vocabulary(c, CS336_VOCABULARY),
                     r->steps ? (int)r->steps : STEPS, x->small ? small_limit_ms : limit_ms,
                     false));
    const char *reason = p.reason ? arena_strdup(x->a, p.reason) : NULL;
    softmax_add(&x->inside, name, T, rung, &p.profile, reason);
    profiled_close(&p);
    return ST_OK;
}

/* Only at its own rung: the command line names it, or attention is flash. */
static bool has_one_rung(const struct profiling *x, const struct config *c)
{
    const struct suite_request *r = x->request;
    bool one = c->plan.flash;
    for (int i = 0; i < r->words; i++) one |= suite_word_sets(r->word[i], "fusion");
    return one;
}

static enum status add_rungs(struct profiling *x, const char *name, int64_t T,
                             const struct config *c)
{
    const char *own = rung_of(c, x->a);
    bool one = has_one_rung(x, c);
    for (int k = 0; k < SOFTMAX_RUNGS; k++) {
        if (!strcmp(softmax_rung[k], own))
            TRY(add_one(x, name, T, c));
        else if (!one)
            TRY(add_rung(x, name, T, c, softmax_rung[k]));
    }
    return ST_OK;
}

static enum status config_of(const struct profiling *x, int s, int i, struct config *ret)
{
    const char *more =
        arena_printf(x->a, "%s block_size=%lld", x->size[s].words, (long long)x->length[i]);
    TRY(suite_config(x->request, x->size[s].file, cs336_words, more, ret, x->a));
    ret->model.block_size = x->length[i];
    return model_check(ret);
}

/* Steps of profiles: fewer, but a few, beyond the limit of time. */
static enum status announce_profiles(struct announce *n, const char *name,
                                     const struct bench_cell *clock, int rungs, double most_ms)
{
    enum { LEAST = 5 }; /* with the warm-up */
    struct bench_cell step = *clock;
    double before = n->ms;
    step.lines = 1u << BENCH_STEP;
    TRY(announce_cell(n, name, &step, rungs));
    double ms = n->ms - before, least = ms * LEAST / (step.warmup + step.steps);
    n->ms = before + fmin(ms, fmax(least, rungs * most_ms));
    return ST_OK;
}

/* A model at a length is timed by the clock, then profiled at each rung. */
static enum status announce(struct profiling *x, struct sheet *sheet)
{
    struct announce n;
    TRY(announce_open(&n, x->request, sheet, x->a));
    for (int s = 0; s < x->sizes; s++)
        for (int i = 0; i < x->lengths; i++) {
            struct config c;
            struct bench_cell clock;
            const char *name =
                arena_printf(x->a, "%s T %lld", x->size[s].name, (long long)x->length[i]);
            TRY(config_of(x, s, i, &c));
            TRY(clock_cell(x, &c, &clock));
            TRY(announce_cell(&n, name, &clock, 1));
            TRY(announce_profiles(&n, name, &clock, has_one_rung(x, &c) ? 1 : SOFTMAX_RUNGS,
                                  x->small ? small_limit_ms : limit_ms));
            x->batch[s * x->lengths + i] = clock.config.data.batch_size;
        }
    announce_print(&n);
    return ST_OK;
}

static enum status add_all(struct profiling *x)
{
    const struct suite_request *r = x->request;
    for (int s = 0; s < x->sizes; s++) {
        for (int i = 0; i < x->lengths && !suite_stopped(); i++) {
            struct config c;
            suite_show(r, (double)(s * x->lengths + i) / (x->sizes * x->lengths),
                       arena_printf(x->a, "%s T %lld", x->size[s].name, (long long)x->length[i]));
            TRY(config_of(x, s, i, &c));
            c.data.batch_size = x->batch[s * x->lengths + i];
            TRY(add_rungs(x, x->size[s].name, x->length[i], &c));
        }
        softmax_end(&x->inside);
    }
    return ST_OK;
}

enum status suite_run_profile(const struct suite_request *r, struct sheet *ret, struct arena *a)
{
    static const char *const lists[] = {"block_size", NULL};
    struct profiling x = {.request = r, .a = a};
    TRY(suite_check_lists(r, lists));
    TRY(suite_is_small(r, &x.small));
    TRY(suite_sizes(r, x.small ? cs336_small_sizes : cs336_sizes, &x.size, &x.sizes, a));
    TRY(suite_lengths(r, "block_size", x.small ? small_lengths : lengths, LENGTHS_MOST, x.length,
                      &x.lengths, a));
    int most = x.sizes * x.lengths;
    x.phases = sheet_add(ret, NULL, columns, COUNT_OF(columns), most * COUNT_OF(parts), a);
    softmax_open(&x.inside, ret, most * SOFTMAX_RUNGS, a);
    kernel_lines_open(&x.kernels, ret, "The longest kernels", &columns[0], 2 * most, TOP, a);
    x.kernels.table->chart.kind = SHEET_NO_CHART; /* too many bars */
    x.batch = ARENA_NEW(a, int64_t, most);
    TRY(announce(&x, ret));
    TRY(add_all(&x));
    TRY(suite_check_stopped(x.rows > 0));
    kernel_lines_close(&x.kernels);
    x.phases->table.rows = x.rows;
    softmax_close(&x.inside);
    sheet_bars(x.phases, "time by the profiler", "profiler_ms", NULL,
               (const char *[SHEET_LABELS]){"config", "T", "phase"});
    sheet_note(ret,
               "By the clock: each part alone, with the device idle before and after it. By the "
               "profiler: the same kernels within whole steps.");
    if (x.small) suite_say_small(ret, r, smaller, a);
    return ST_OK;
}

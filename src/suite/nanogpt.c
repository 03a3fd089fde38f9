/* nanogpt-attention: the same training with unfused ("slow") and flash attention, each in a
 * separate process: run directories, profiles, and the report on both. */
#include "present/table_cells.h"
#include "report/changes.h"
#include "report/compare.h"
#include "suite/others.h"
#include "suite/parts.h"

#include <math.h>

enum { WORDS_MOST = 64, USER_WORDS = 48, CHANGES = 15 };
enum { ITERS = 6000, SMALL_ITERS = 250, EVALS = 24 };
static const struct suite_small smaller[SUITE_SMALLS] = {
    {"", "the model of configs/shakespeare_char_cpu.conf"},
    {"iters max_iters", "250 iterations instead of 6000"},
};
static const char *const ways[] = {"flash=false", "flash=true"};

/* --- the commands ----------------------------------------------------------------------------- */

struct words {
    char *word[WORDS_MOST];
    int n;
    struct arena *a;
};

static void add(struct words *w, const char *word)
{
    BUG_IF(w->n == WORDS_MOST, "more than %d words", WORDS_MOST);
    w->word[w->n++] = arena_strdup(w->a, word);
}

static void add_number(struct words *w, const char *key, int64_t x)
{
    add(w, arena_printf(w->a, "--%s=%lld", key, (long long)x));
}

/* Adds the configuration, and on a GPU bf16 and graph replay. */
static void add_config(struct words *w, bool small)
{
    add(w, small ? "configs/shakespeare_char_cpu.conf" : "configs/shakespeare_char.conf");
    if (small) return;
    add(w, "--dtype=bfloat16");
    add(w, "--replay=true");
}

/* Adds the user's words last, so that they override the others. out_dir is already used for the
 * folder of the runs, and init_from is only for training. */
static void add_user(struct words *w, const struct suite_request *r, bool trains)
{
    for (int i = 0; i < r->words; i++)
        if (!suite_word_sets(r->word[i], "out_dir") &&
            (trains || !suite_word_sets(r->word[i], "init_from")))
            add(w, r->word[i]);
}

/* Whether the runs of an earlier call are continued; otherwise they are replaced. */
static enum status is_resumed(const struct suite_request *r, bool *ret, struct arena *a)
{
    struct config c;
    TRY(suite_config(r, NULL, "", NULL, &c, a));
    *ret = config_resumes(&c);
    return ST_OK;
}

static enum status check(const struct suite_request *r)
{
    static const char *const none[] = {NULL};
    TRY(suite_check_lists(r, none));
    if (r->words > USER_WORDS) return fail(ST_USAGE, "more than %d keys", USER_WORDS);
    for (int i = 0; i < r->words; i++)
        if (suite_word_sets(r->word[i], "flash"))
            return fail(ST_USAGE,
                        "this suite trains with flash=false and flash=true; leave flash out");
    return ST_OK;
}

/* Runs a command, unless Ctrl-C was noted. */
static enum status command(const struct suite_request *r, const struct words *w, bool quiet)
{
    enum status st = suite_stopped() ? ST_OK : r->command(r->user, w->word, w->n, quiet);
    if (st != ST_INTERRUPTED && !suite_stopped()) return st;
    return fail(ST_INTERRUPTED,
                "stopped: the runs so far are in %s, and strobe report %s/* shows them; add "
                "--init_from=resume to continue",
                r->out_dir, r->out_dir);
}

static enum status train(const struct suite_request *r, bool small, struct arena *a)
{
    struct words w = {.a = a};
    int64_t iters = r->iters ? r->iters : small ? SMALL_ITERS : ITERS;
    bool resumed = false;
    TRY(is_resumed(r, &resumed, a));
    add(&w, "compare");
    add_config(&w, small);
    add(&w, "--flash=false,true");
    if (!resumed) add(&w, "--overwrite");
    add_number(&w, "max_iters", iters);
    add_number(&w, "lr_decay_iters", iters);
    add_number(&w, "eval_interval", iters < EVALS ? 1 : iters / EVALS);
    if (small) add(&w, "--eval_iters=5");
    add_number(&w, "warmup_iters", iters < 1000 ? iters / 10 : 100);
    add(&w, arena_printf(a, "--out_dir=%s", r->out_dir));
    add_user(&w, r, true);
    return command(r, &w, false);
}

/* In turns, too. */
static enum status profile(const struct suite_request *r, bool small, struct arena *a)
{
    struct words w = {.a = a};
    add(&w, "profile");
    add_config(&w, small);
    add(&w, "--flash=false,true");
    add(&w, "--trace-steps=0");
    add_number(&w, "limit", small ? 5 : 60);
    add(&w, arena_printf(a, "--out_dir=%s", r->out_dir));
    add_user(&w, r, false);
    return command(r, &w, true);
}

/* --- results ---------------------------------------------------------------------------------- */

/* clang-format off */
#define COLUMN_LIST(X) \
    X(RUN, "run", "run", "slow: unfused attention; or flash", false) \
    X(MS, "ms_median", "ms/iter", "median time of an iteration", true) \
    X(STD, "ms_std", "std", "standard deviation", true) \
    X(TOKENS, "tokens_per_s", "tokens/s", "tokens per second, from the median", true) \
    X(SPEED, "times_slow", "x slow", "speed per token relative to slow, by the turns of both", true) \
    X(VERDICT, "verdict", "verdict", "whether it is faster than slow, by the rule of docs/MEASURING.md", false) \
    X(TRAIN_LOSS, "train_loss", "train loss", "at the end of the run", true) \
    X(VAL_LOSS, "val_loss", "val loss", "at the end of the run", true) \
    X(BEST, "best_val_loss", "best val", "the lowest validation loss", true) \
    X(APART, "val_apart", "val apart", \
      "largest difference of validation loss from slow, at any evaluation", true) \
    X(BUSY, "utilization", "busy %", "mean utilisation of the device during training", true) \
    X(CLOCK, "clock_mhz", "MHz", "mean clock of the device during training", true) \
    X(POWER, "power_w", "W", "mean power of the device during training", true) \
    X(ENERGY, "joules_per_token", "J/token", "energy per token", true) \
    X(PLANNED, "memory_planned", "planned", "memory of the plan", true) \
    X(PEAK, "memory_peak", "memory", "largest measured memory", true) \
    X(KERNELS, "kernels_per_step", "kernels", "nodes of the plan per step", true)
/* clang-format on */

enum { COLUMN_LIST(TABLE_ID) COLUMNS };
static const struct table_column columns[] = {COLUMN_LIST(TABLE_COLUMN)};

static void set_known(struct table *t, int row, int column, int digits, double x, struct arena *a)
{
    if (isfinite(x)) table_set(t, row, column, digits, x, a);
}

static void set_known_bytes(struct table *t, int row, int column, double x, struct arena *a)
{
    if (isfinite(x)) table_set_bytes(t, row, column, (int64_t)x, a);
}

static double most_apart(const struct run *x, const struct run *y)
{
    double most = NAN;
    for (int i = 0; i < x->evals; i++)
        for (int k = 0; k < y->evals; k++) {
            double d = fabs(x->eval[i].val_loss - y->eval[k].val_loss);
            if (x->eval[i].iter == y->eval[k].iter && !(most >= d)) most = d;
        }
    return most;
}

static void set_run(struct table *t, int row, const struct run *r, const struct run *slow,
                    struct arena *a)
{
    const struct run_summary *f = &r->figures;
    const struct gauge_range *g = f->gauges.value;
    table_set_text(t, row, RUN, r == slow ? "slow" : "flash");
    set_known(t, row, MS, 4, f->ms_median, a);
    set_known(t, row, STD, 2, f->ms_std, a);
    if (isfinite(f->tokens_per_s)) table_set_count(t, row, TOKENS, f->tokens_per_s, a);
    struct judgement speed = compare_speed(slow, r, a);
    if (r != slow && speed.verdict.kind) table_set(t, row, SPEED, 3, speed.verdict.speed, a);
    if (r != slow) table_set_text(t, row, VERDICT, judge_name(&speed));
    set_known(t, row, TRAIN_LOSS, 5, f->final_train_loss, a);
    set_known(t, row, VAL_LOSS, 5, f->final_val_loss, a);
    set_known(t, row, BEST, 5, f->best_val_loss, a);
    if (r != slow) set_known(t, row, APART, 2, most_apart(r, slow), a);
    set_known(t, row, BUSY, 3, g[GAUGE_UTILIZATION].mean, a);
    set_known(t, row, CLOCK, 4, g[GAUGE_CLOCK].mean, a);
    set_known(t, row, POWER, 3, g[GAUGE_POWER].mean, a);
    set_known(t, row, ENERGY, 3, f->gauges.joules_per_token, a);
    set_known_bytes(t, row, PLANNED, r->plan.total, a);
    set_known_bytes(t, row, PEAK, f->peak_measured, a);
    set_known(t, row, KERNELS, 0, r->plan.kernels, a);
}

static enum status read_runs(const struct suite_request *r, struct sheet *ret, struct arena *a)
{
    char *dir[COUNT_OF(ways)];
    struct run *run;
    for (int i = 0; i < COUNT_OF(ways); i++) dir[i] = arena_printf(a, "%s/%s", r->out_dir, ways[i]);
    TRY(runs_read(dir, COUNT_OF(ways), a, &run));
    struct sheet_table *t = sheet_add(ret, NULL, columns, COLUMNS, COUNT_OF(ways), a);
    for (int i = 0; i < COUNT_OF(ways); i++) set_run(&t->table, i, &run[i], &run[0], a);
    sheet_bars(t, "time of an iteration", "ms_median", "ms_std",
               (const char *[SHEET_LABELS]){"run"});
    return ST_OK;
}

/* Adds a table of the kernels of slow attention and those that replace them. */
static enum status read_profiles(const struct suite_request *r, struct sheet *ret, struct arena *a)
{
    struct profile_file *p = ARENA_NEW(a, struct profile_file, COUNT_OF(ways));
    struct changes *c = ARENA_NEW(a, struct changes, 1);
    for (int i = 0; i < COUNT_OF(ways); i++)
        TRY(profile_file_read(arena_printf(a, "%s/%s/profile.json", r->out_dir, ways[i]),
                              i ? "flash" : "slow", a, &p[i]));
    changes_find(&p[0], &p[1], a, c);
    struct table t = changes_table(c, CHANGES, a);
    struct sheet_table *s = sheet_add(ret, changes_words(c, a), t.column, t.columns, t.rows, a);
    s->table = t;
    return ST_OK;
}

enum status suite_run_nanogpt(const struct suite_request *r, struct sheet *ret, struct arena *a)
{
    bool small;
    TRY(check(r));
    TRY(suite_is_small(r, &small));
    suite_show(r, 0, "two trainings");
    TRY(train(r, small, a));
    suite_show(r, 0.9, "profiles");
    TRY(profile(r, small, a));
    TRY(read_runs(r, ret, a));
    TRY(read_profiles(r, ret, a));
    sheet_note(ret, arena_printf(a,
                                 "%s/report.html has both curves, their difference and the "
                                 "telemetry of the device; strobe report %s writes it again.",
                                 r->out_dir, r->out_dir));
    if (small) suite_say_small(ret, r, smaller, a);
    return ST_OK;
}

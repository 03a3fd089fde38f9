/* nanogpt-attention: the same training with unfused ("slow") and flash attention, each in a
 * separate process: run directories, profiles, and the report on both. */
#include "present/table_cells.h"
#include "report/changes.h"
#include "report/compare.h"
#include "suite/parts.h"
#include "suite/suites.h"

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

/* Adds the configuration, on a GPU with bf16 and graph replay: nothing is left to be chosen. */
static void add_config(struct words *w, bool small)
{
    add(w, small ? "configs/shakespeare_char_cpu.conf" : "configs/shakespeare_char.conf");
    add(w, small ? "--dtype=float32" : "--dtype=bfloat16");
    add(w, small ? "--replay=false" : "--replay=true");
    add(w, "--pad_vocab=0");
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
#define COLUMNS(X) \
    X("run", "run", "slow: unfused attention; or flash", TEXT, r == slow ? "slow" : "flash") \
    X("ms_median", "ms/iter", "median time of an iteration", NUMBER, true, 4, f->ms_median) \
    X("ms_std", "std", "standard deviation", NUMBER, true, 2, f->ms_std) \
    X("tokens_per_s", "tokens/s", "tokens per second, from the median", COUNT, true, f->tokens_per_s) \
    X("times_slow", "x slow", "speed per token relative to slow, by the turns of both", NUMBER, r != slow && speed.verdict.kind, 3, speed.verdict.speed) \
    X("verdict", "verdict", "whether it is faster than slow, by the rule of docs/MEASURING.md", TEXT, r != slow ? judge_name(&speed) : NULL) \
    X("train_loss", "train loss", "at the end of the run", NUMBER, true, 5, f->final_train_loss) \
    X("val_loss", "val loss", "at the end of the run", NUMBER, true, 5, f->final_val_loss) \
    X("best_val_loss", "best val", "the lowest validation loss", NUMBER, true, 5, f->best_val_loss) \
    X("val_apart", "val apart", "largest difference of validation loss from slow, at any evaluation", NUMBER, r != slow, 2, most_apart(r, slow)) \
    X("utilization", "busy %", "mean utilization of the device during training", NUMBER, true, 3, g[GAUGE_UTILIZATION].mean) \
    X("clock_mhz", "MHz", "mean clock of the device during training", NUMBER, true, 4, g[GAUGE_CLOCK].mean) \
    X("power_w", "W", "mean power of the device during training", NUMBER, true, 3, g[GAUGE_POWER].mean) \
    X("joules_per_token", "J/token", "energy per token", NUMBER, true, 3, f->gauges.joules_per_token) \
    X("memory_planned", "planned", "memory of the plan", BYTES, true, r->plan.total) \
    X("memory_peak", "memory", "largest measured memory", BYTES, true, f->peak_measured) \
    X("kernels_per_step", "kernels", "nodes of the plan per step", NUMBER, true, 0, r->plan.kernels)
/* clang-format on */

static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

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

/* A cell of a number that is not finite is empty. */
static void set_run(struct table_row row, const struct run *r, const struct run *slow)
{
    const struct run_summary *f = &r->figures;
    const struct gauge_range *g = f->gauges.value;
    struct judgement speed = compare_speed(slow, r, row.arena);
    COLUMNS(TABLE_CELL)
}

static enum status read_runs(const struct suite_request *r, struct sheet *ret, struct arena *a)
{
    char *dir[COUNT_OF(ways)];
    struct run *run;
    for (int i = 0; i < COUNT_OF(ways); i++) dir[i] = arena_printf(a, "%s/%s", r->out_dir, ways[i]);
    TRY(runs_read(dir, COUNT_OF(ways), a, &run));
    struct sheet_table *t = sheet_add(ret, NULL, columns, COUNT_OF(columns), COUNT_OF(ways), a);
    for (int i = 0; i < COUNT_OF(ways); i++)
        set_run((struct table_row){&t->table, i, 0, a}, &run[i], &run[0]);
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
    sheet_add_table(ret, changes_words(c, a), changes_table(c, CHANGES, a));
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

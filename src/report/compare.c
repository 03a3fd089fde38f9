#include "report/compare.h"

#include "base/load.h"
#include "base/str.h"
#include "present/table_cells.h"
#include "report/busy.h"

#include <math.h>
#include <string.h>

/* --- speed ------------------------------------------------------------------------------------ */

/* The plan and the whole environment but its date; NULL: unknown. */
static const char *plan_of(const struct run *r, struct arena *a)
{
    struct str s = {0};
    if (!r->plan.work[0]) return NULL;
    str_append(&s, r->plan.work);
    for (int i = 0; i < r->environments; i++)
        if (strcmp(r->environment[i].key, "date") != 0)
            str_printf(&s, "\n%s=%s", r->environment[i].key, r->environment[i].value);
    const char *text = arena_strdup(a, str_text(&s));
    str_release(&s);
    return text;
}

/* The medians of turns, or the steps that count. */
static struct timed timed_of(const struct run *r, bool turns, struct arena *a)
{
    int first = turns ? 0 : run_warm_steps(r), n = turns ? r->turns : r->steps;
    double *ms = ARENA_NEW(a, double, n + 1);
    struct timed_turn *turn = ARENA_NEW(a, struct timed_turn, n + 1);
    struct timed t = {.ms = ms, .turn = turns ? turn : NULL, .unit = "token"};
    for (int i = first; i < n; i++) {
        if (turns) turn[t.n] = (struct timed_turn){r->turn[i].of, r->turn[i].turn};
        ms[t.n++] = turns ? r->turn[i].ms : r->step[i].ms;
    }
    t.work = r->plan.tokens;
    t.plan = plan_of(r, a);
    t.others = fmax(r->figures.others_busy, r->figures.gauges.others);
    return t;
}

struct judgement compare_speed(const struct run *first, const struct run *r, struct arena *a)
{
    struct timed x = timed_of(first, true, a), y = timed_of(r, true, a);
    struct judgement j = judge(&x, &y);
    if (j.how == JUDGED_SAME_PLAN || j.how == JUDGED_IN_TURNS) return j;
    x = timed_of(first, false, a);
    y = timed_of(r, false, a);
    return judge(&x, &y);
}

/* --- what differs ----------------------------------------------------------------------------- */

/* The date of a run and where its files and data lie are not differences; a note tells of data that
 * differ. */
static bool is_incidental(const char *key)
{
    return strcmp(key, "out_dir") == 0 || strcmp(key, "data_dir") == 0 || strcmp(key, "date") == 0;
}

static const struct run_pair *pairs_of(const struct run *r, bool environment, int *ret_n)
{
    *ret_n = environment ? r->environments : r->settings;
    return environment ? r->environment : r->setting;
}

static int find_differences(const struct run *run, int n, bool environment, struct arena *a,
                            struct difference **ret_difference)
{
    struct difference *list = NULL;
    int count = 0, capacity = 0;
    for (int r = 0; r < n; r++) {
        int pairs, others;
        const struct run_pair *pair = pairs_of(&run[r], environment, &pairs);
        for (int p = 0; p < pairs; p++) {
            bool known = is_incidental(pair[p].key), differs = false;
            for (int d = 0; d < count; d++) known |= strcmp(list[d].key, pair[p].key) == 0;
            if (known) continue;
            const char **value = ARENA_NEW(a, const char *, n);
            for (int i = 0; i < n; i++) {
                const struct run_pair *other = pairs_of(&run[i], environment, &others);
                value[i] = run_pair_find(other, others, pair[p].key);
                /* A run without the file does not count as different. */
                if (others && !str_same(value[i], pair[p].value)) differs = true;
            }
            if (!differs) continue;
            ARENA_GROW(a, list, count, capacity);
            list[count++] = (struct difference){pair[p].key, value};
        }
    }
    *ret_difference = list;
    return count;
}

struct table compare_settings_table(const struct comparison *c, struct arena *a)
{
    struct table_column *column = ARENA_NEW(a, struct table_column, c->runs + 1);
    column[0] = (struct table_column){"key", "differs", "", false};
    for (int r = 0; r < c->runs; r++)
        column[r + 1] = (struct table_column){c->run[r].name, c->run[r].name, "", false};
    struct table t = table_new(column, c->runs + 1, c->settings, a);
    for (int s = 0; s < c->settings; s++) {
        table_at(&t, s, 0)->text = c->setting[s].key;
        for (int r = 0; r < c->runs; r++) table_at(&t, s, r + 1)->text = c->setting[s].value[r];
    }
    return t;
}

/* --- the table of results --------------------------------------------------------------------- */

/* clang-format off */
#define COLUMNS(X) \
    X("run", "run", "name of the run directory", TEXT, run->name) \
    X("iters", "iters", "iterations run", COUNT, true, (double)f->iters) \
    X("tokens", "tokens", "training tokens seen, where iterations differ in them", COUNT, true, alike ? NAN : (double)f->iters * run->plan.tokens) \
    X("end", "end", "how the run ended, if it did not finish", TEXT, end_cell(f, a)) \
    X("final_val_loss", "val loss", "validation loss at the last evaluation", LOSS, f->nan_iter >= 0, f->final_val_loss) \
    X("best_val_loss", "best", "lowest validation loss of all evaluations", LOSS, false, f->best_val_loss) \
    X("ms_median", "ms/iter", "median time of an iteration, without the first ones", KNOWN, f->ms_median, ms_text(x, f->ms_median, a)) \
    X("ms_std", "± std", "standard deviation of the time of an iteration", KNOWN, f->ms_std, ms_text(x, f->ms_median, a)) \
    X("tokens_per_s", "tokens/s", "training tokens per second, by the median iteration", COUNT, true, f->tokens_per_s) \
    X("mfu", "MFU", "model FLOPs (6 N + 12 L C T per token) as a share of the measured matmul peak", KNOWN, f->mfu, percent_text(x, a)) \
    X("run_tokens_per_s", "mean tokens/s", "all tokens over all time, without the first iterations: what slow iterations cost counts", COUNT, true, f->run_tokens_per_s) \
    X("run_mfu", "mean MFU", "MFU of all tokens over all time", KNOWN, f->run_mfu, percent_text(x, a)) \
    X("wall", "wall time", "where the wall time of the process went, in seconds; of a resumed run the last process", TEXT, *run_summary_wall(f, wall) ? arena_strdup(a, wall) : NULL) \
    X("speed", "speed", "speedup over the first run: the median of paired ratios if they trained in turns", SPEED, c, at) \
    X("memory_planned", "memory planned", "memory of the plan", BYTES, true, run->plan.total) \
    X("memory_ratio", "vs first", "planned memory compared with the first run", KNOWN, c->runs > 1 ? run->plan.total / c->run[0].plan.total : NAN, arena_printf(a, "%+.1f %%", (x - 1) * 100)) \
    X("memory_peak", "memory peak", "largest memory measured during the run", BYTES, true, f->peak_measured) \
    X("utilization", "busy", "share of the time in which the device was busy", KNOWN, g->value[GAUGE_UTILIZATION].mean, arena_printf(a, "%.0f %%", x)) \
    X("clock_mhz", "MHz", "mean clock of the device", KNOWN, g->value[GAUGE_CLOCK].mean, arena_printf(a, "%.0f", x)) \
    X("power_w", "W", "mean power of the device", KNOWN, g->value[GAUGE_POWER].mean, arena_printf(a, "%.0f", x)) \
    X("tokens_per_joule", "tokens/J", "training tokens per joule of the device", KNOWN, 1 / g->joules_per_token, arena_printf(a, "%.3g", x)) \
    X("throttled", "slowed", "share of the time in which power, heat or another limit lowered the clock", KNOWN, g->throttled, arena_printf(a, "%.1f %%", x * 100)) \
    X("parameters", "parameters", "trained parameters", COUNT, true, run->plan.parameters)
/* clang-format on */

/* Kinds of columns of this table alone. KNOWN: a number and the text of that number `x`; a number
 * that is not finite is unknown. */
enum { TABLE_IS_KNOWN = true, TABLE_IS_LOSS = true, TABLE_IS_SPEED = true };
#define TABLE_KNOWN(number, text)          \
    do {                                   \
        double x = number;                 \
        TABLE_SHOWN(isfinite(x), text, x); \
    } while (0)
#define TABLE_LOSS(is_nan, number)                           \
    TABLE_KNOWN(number, arena_strdup(a, str_loss(loss, x))); \
    TABLE_SHOWN(is_nan, "NaN", NAN)
#define TABLE_SPEED(c, at) *table_at(TABLE_AT) = speed_cell(c, at, a)

static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

static bool same_tokens_per_step(const struct run *x, const struct run *y)
{
    double m = x->plan.tokens, n = y->plan.tokens;
    return m == n || !(m > 0) || !(n > 0);
}

/* A time with the digits that suit `scale`, so that a spread has the precision of its median. */
static const char *ms_text(double ms, double scale, struct arena *a)
{
    int digits = scale < 10 ? 3 : scale < 100 ? 2 : scale < 1000 ? 1 : 0;
    return arena_printf(a, "%.*f", digits, ms);
}

static const char *percent_text(double share, struct arena *a)
{
    char buffer[32];
    return arena_printf(a, "%s %%", str_number(buffer, 100 * share, 3));
}

static const char *end_cell(const struct run_summary *f, struct arena *a)
{
    if (f->nan_iter >= 0) return arena_printf(a, "NaN at %lld", (long long)f->nan_iter);
    if (f->complete) return NULL;
    return f->end ? f->end : "no record";
}

static struct table_cell speed_cell(const struct comparison *c, int at, struct arena *a)
{
    const struct judgement *speed = &c->speed[at];
    if (c->runs == 1) return (struct table_cell){};
    if (at == 0) return (struct table_cell){"1.00 x", 1};
    bool named = speed->verdict.kind > VERDICT_UNCERTAIN;
    return (struct table_cell){judge_cell(speed, a), named ? speed->verdict.speed : NAN};
}

static void set_row(struct table_row row, const struct comparison *c, int at)
{
    const struct run *run = &c->run[at];
    const struct run_summary *f = &run->figures;
    const struct gauge_summary *g = &f->gauges;
    struct arena *a = row.arena;
    char loss[32], wall[WALL_TEXT];
    bool alike = true;
    for (int r = 1; r < c->runs; r++) alike &= same_tokens_per_step(&c->run[0], &c->run[r]);
    COLUMNS(TABLE_CELL)
}

/* --- in words --------------------------------------------------------------------------------- */

/* What makes losses of two runs measures of different things. */
static const struct {
    const char *key, *what;
} evaluation[] = {
    {"dataset", "data sets"},
    {"block_size", "lengths of context"},
    {"eval_iters", "numbers of evaluation batches"},
    {"seed", "seeds, hence other evaluation batches"},
};

const char *compare_why_not(const struct run *x, const struct run *y, struct arena *a)
{
    if (x->figures.nan_iter >= 0 || y->figures.nan_iter >= 0)
        return arena_printf(a, "the loss of %s became NaN",
                            y->figures.nan_iter >= 0 ? y->name : x->name);
    if (x->vocabulary_sha256 && y->vocabulary_sha256 &&
        strcmp(x->vocabulary_sha256, y->vocabulary_sha256) != 0)
        return "they have different vocabularies";
    bool known = x->val_sha256 && y->val_sha256;
    if (known && strcmp(x->val_sha256, y->val_sha256) != 0)
        return "they were evaluated on different texts";
    for (int i = known; i < COUNT_OF(evaluation); i++) { /* equal texts may have two names */
        const char *key = evaluation[i].key, *v = run_pair_find(x->setting, x->settings, key);
        const char *w = run_pair_find(y->setting, y->settings, key);
        if (v && w && strcmp(v, w) != 0)
            return arena_printf(a, "they have different %s (%s = %s and %s)", evaluation[i].what,
                                key, v, w);
    }
    return NULL;
}

int compare_val_loss(const struct run *a, const struct run *b, double *ret_largest,
                     double *ret_last)
{
    int shared = 0;
    bool by_iter = same_tokens_per_step(a, b);
    double of_a = by_iter ? 1 : a->plan.tokens, of_b = by_iter ? 1 : b->plan.tokens;
    *ret_largest = *ret_last = 0;
    for (int i = 0, j = 0; i < a->evals && j < b->evals;) {
        double x = of_a * (double)a->eval[i].iter, y = of_b * (double)b->eval[j].iter;
        double d = b->eval[j].val_loss - a->eval[i].val_loss;
        i += x <= y;
        j += y <= x;
        if (x != y || !isfinite(d) || (!by_iter && x == 0)) continue;
        shared++;
        *ret_last = d;
        *ret_largest = fmax(*ret_largest, fabs(d));
    }
    return shared;
}

static const char *memory_words(const struct run *first, const struct run *r, struct arena *a)
{
    double more = r->plan.total / first->plan.total - 1;
    if (!isfinite(more)) return NULL;
    if (fabs(more) < 5e-4) return "with the same memory";
    return arena_printf(a, "with %.1f %% %s memory", fabs(more) * 100, more < 0 ? "less" : "more");
}

static const char *loss_words(const struct run *first, const struct run *r, struct arena *a)
{
    double largest, last;
    const char *why = compare_why_not(first, r, a);
    if (why) return arena_printf(a, "losses are not compared, because %s", why);
    int shared = compare_val_loss(first, r, &largest, &last);
    bool by_iter = same_tokens_per_step(first, r);
    if (!shared && !by_iter && first->evals && r->evals)
        return "losses are not compared, because the two were never evaluated after equally many "
               "training tokens";
    if (!shared) return NULL;
    const char *count = shared == 1 ? "at the one evaluation they share"
                                    : arena_printf(a, "over %d evaluations", shared);
    if (!by_iter) count = arena_printf(a, "%s after equally many tokens", count);
    const char *batch = run_pair_find(first->setting, first->settings, "batch_size");
    if (!str_same(batch, run_pair_find(r->setting, r->settings, "batch_size")))
        count = arena_printf(a, "%s, each on batches of its own batch_size", count);
    if (largest == 0) return arena_printf(a, "validation losses are equal %s", count);
    return arena_printf(a, "validation losses differ by at most %.2g %s (%+.2g at the last)",
                        largest, count, last);
}

static const char *verdict_of(const struct comparison *c, int n, struct arena *a)
{
    const struct run *first = &c->run[0], *r = &c->run[n];
    bool same_work = c->speed[n].how == JUDGED_SAME_PLAN; /* hence the same memory */
    const char *part[] = {judge_words(&c->speed[n], first->name, a),
                          same_work ? NULL : memory_words(first, r, a), loss_words(first, r, a)};
    static const char *const begin[] = {" ", " runs ", ": "}, *const between[] = {"", ", ", "; "};
    const char *text = r->name;
    for (int i = 0; i < COUNT_OF(part); i++)
        if (part[i])
            text =
                arena_printf(a, "%s%s%s", text, text == r->name ? begin[i] : between[i], part[i]);
    return text == r->name ? NULL : arena_printf(a, "%s.", text);
}

void compare_note(struct comparison *c, const char *text, struct arena *a)
{
    const char **all = ARENA_NEW(a, const char *, c->notes + 1);
    for (int i = 0; i < c->notes; i++) all[i] = c->note[i];
    all[c->notes++] = text;
    c->note = all;
}

const char *compare_end(const struct run *r, struct arena *a)
{
    const struct run_summary *f = &r->figures;
    const char *why = f->why ? arena_printf(a, ": %s", f->why) : "";
    if (f->nan_iter >= 0 && f->why) return arena_printf(a, "%s diverged%s.", r->name, why);
    if (f->nan_iter >= 0)
        return arena_printf(a, "%s diverged: its loss is NaN or infinite at iteration %lld.",
                            r->name, (long long)f->nan_iter);
    if (f->complete) return NULL;
    return arena_printf(
        a, "%s is not finished: it ends at iteration %lld: %s%s.", r->name, (long long)f->iters,
        f->end
            ? f->end
            : "its end is not on record (it still runs, was killed, or an older version wrote it)",
        why);
}

static bool differs(const struct difference *list, int n, const char *key)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].key, key) == 0) return true;
    return false;
}

/* What lowered the clock; a clock set on purpose does not count. NULL: nothing, or unknown. */
static const char *lowered_by(const struct gauge_summary *g, struct arena *a)
{
    const char *text = NULL;
    for (int i = 0; i < g->reasons; i++)
        if (strcmp(g->by[i].name, "set clock") != 0)
            text = text ? arena_printf(a, "%s, %s", text, g->by[i].name) : g->by[i].name;
    return text;
}

/* Notes about clocks, because they change the times. */
#define NOTE(...) compare_note(c, arena_printf(a, __VA_ARGS__), a)
static void add_gauge_notes(struct comparison *c, struct arena *a)
{
    static const double slowed = 0.05, other_clock = 0.02;
    const struct run *first = &c->run[0];
    bool same_device = !differs(c->environment, c->environments, "device") &&
                       !differs(c->environment, c->environments, "cpu");
    for (int r = 0; r < c->runs; r++) {
        const struct run *run = &c->run[r];
        const struct gauge_summary *g = &run->figures.gauges;
        const char *by = lowered_by(g, a);
        double change =
            g->value[GAUGE_CLOCK].mean / first->figures.gauges.value[GAUGE_CLOCK].mean - 1;
        if (g->throttled > slowed)
            NOTE("While %s ran, the clock of its device was lowered %.0f %% of the time%s%s.",
                 run->name, g->throttled * 100, by ? ": " : "", by ? by : "");
        if (fabs(change) > other_clock && same_device)
            NOTE("%s ran at a clock %.0f %% %s than %s, which explains part of the difference in "
                 "time.",
                 run->name, fabs(change) * 100, change < 0 ? "lower" : "higher", first->name);
    }
}

static void add_notes(struct comparison *c, struct arena *a)
{
    for (int r = 0; r < c->runs; r++) {
        const struct run *run = &c->run[r];
        const char *end = compare_end(run, a);
        if (end) compare_note(c, end, a);
        if (run->figures.mfu > 1)
            NOTE("The MFU of %s is above 100 %%: the peak was measured too low, perhaps on a busy "
                 "machine; `strobe machine` measures it again.",
                 run->name);
        if (run->figures.others_busy > LOAD_BUSY)
            NOTE("Other programs used %.0f %% of the processors while %s ran, so its times are "
                 "long.",
                 run->figures.others_busy * 100, run->name);
        if (run->figures.gauges.others > LOAD_BUSY)
            NOTE("Other programs were on the GPU for %.0f %% of the time while %s ran.",
                 run->figures.gauges.others * 100, run->name);
    }
    const char *busy = busy_words(c->run, c->runs, a);
    if (busy) compare_note(c, busy, a);
    add_gauge_notes(c, a);
    static const char *const keys[] = {"cpu", "device", "commit", "compiler", "mode"};
    static const char *const words[] = {"processors", "devices", "versions of the program",
                                        "compilers", "builds"};
    for (int k = 0; k < COUNT_OF(keys); k++)
        if (differs(c->environment, c->environments, keys[k]))
            NOTE("The runs used different %s, so not only the settings differ.", words[k]);
    if (differs(c->environment, c->environments, "threads") &&
        !differs(c->setting, c->settings, "threads"))
        compare_note(c, "The runs had different numbers of threads.", a);
}

void compare_runs(const struct run *run, int n, struct arena *a, struct comparison *ret_comparison)
{
    struct comparison c = {.run = run, .runs = n};
    c.settings = find_differences(run, n, false, a, &c.setting);
    c.environments = find_differences(run, n, true, a, &c.environment);
    c.table = table_new(columns, COUNT_OF(columns), n, a);
    c.verdict = ARENA_NEW(a, const char *, n);
    c.speed = ARENA_NEW(a, struct judgement, n);
    for (int r = 1; r < n; r++) c.speed[r] = compare_speed(&run[0], &run[r], a);
    for (int r = 0; r < n; r++) {
        set_row((struct table_row){&c.table, r, 0, a}, &c, r);
        const char *verdict = r ? verdict_of(&c, r, a) : NULL;
        if (verdict) c.verdict[c.verdicts++] = verdict;
    }
    add_notes(&c, a);
    *ret_comparison = c;
}

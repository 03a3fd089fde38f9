#include "base/stats.h"
#include "suite/warmup.h"

#include <math.h>
#include <string.h>

/* clang-format off */
#define COLUMNS(X) \
    X("config", "config", "the model", TEXT, size) \
    X("warmup", "warm-up", "steps before the measured ones", NUMBER, true, 0, warmup) \
    X("phase", "phase", "part of a training step", TEXT, phase) \
    X("mean_ms", "mean ms", "mean over the steps after the warm-up, of all processes", NUMBER, s.n, 4, ms.mean) \
    X("std_ms", "std", "standard deviation of these steps", STD, s.n, &ms) \
    X("std_percent", "std %", "standard deviation / mean", NUMBER, ms.n > 1 && ms.mean > 0, 2, 100 * ms.std / ms.mean) \
    X("median_ms", "median", "milliseconds", NUMBER, s.n, 4, ms.median) \
    X("min_ms", "min", "milliseconds", NUMBER, s.n, 4, ms.min) \
    X("p95_ms", "p95", "95th percentile", NUMBER, s.n, 4, ms.p95) \
    X("first_ms", "step 0", "the first step of the process, mean of all processes", NUMBER, s.n && strcmp(phase, bench_line_name(BENCH_DIFFERENCE)) != 0, 4, stats_of(s.first, s.processes).mean) \
    X("samples", "n", "measured steps of all processes", NUMBER, s.n, 0, ms.n) \
    X("processes", "processes", "that measured this row", NUMBER, s.n, 0, s.processes) \
    X("between_percent", "between %", "standard deviation of the means of the processes / mean", NUMBER, s.processes > 1 && means.mean > 0, 2, 100 * means.std / means.mean) \
    X("note", "note", "why it was not measured", TEXT, note)
/* clang-format on */

static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

/* --- what the processes measured -------------------------------------------------------------- */

static bool is_of(const struct warmup_process *p, const char *size, int warmup)
{
    return !strcmp(p->size, size) && (warmup < 0 || p->warmup == warmup);
}

/* What one model and warm-up (below 0: any) took in one phase. */
struct series {
    double *ms; /* of the steps after the warm-up */
    int n;
    double *mean, *first; /* of each process: of these steps, and of step 0 */
    int processes;
};

static int rows_of_steps(const struct warmup_runs *x)
{
    int n = 0;
    for (int i = 0; i < x->n; i++) n += x->process[i].sheet.table[WARMUP_STEPS].table.rows;
    return n;
}

static void add_process(struct series *s, const struct warmup_process *p, const char *phase)
{
    const struct table *t = &p->sheet.table[WARMUP_STEPS].table;
    double first = NAN;
    int begun = s->n;
    for (int row = 0; row < t->rows; row++) {
        double step = table_at(t, row, STEP_NUMBER)->number, ms = table_at(t, row, STEP_MS)->number;
        if (strcmp(table_text_of(t, row, "phase"), phase) != 0) continue;
        if (step == 0) first = ms;
        if (step >= p->warmup) s->ms[s->n++] = ms;
    }
    if (s->n == begun) return;
    s->mean[s->processes] = stats_of(s->ms + begun, s->n - begun).mean;
    s->first[s->processes++] = first;
}

static struct series series_of(const struct warmup_runs *x, const char *size, int warmup,
                               const char *phase)
{
    int most = rows_of_steps(x);
    struct series s = {.ms = ARENA_NEW(x->a, double, most + 1)};
    s.mean = ARENA_NEW(x->a, double, x->n);
    s.first = ARENA_NEW(x->a, double, x->n);
    for (int i = 0; i < x->n; i++)
        if (is_of(&x->process[i], size, warmup)) add_process(&s, &x->process[i], phase);
    return s;
}

/* --- tables ----------------------------------------------------------------------------------- */

static void set_row(struct table_row row, const struct warmup_runs *x, const char *size, int warmup,
                    const char *phase, const char *note)
{
    struct series s = series_of(x, size, warmup, phase);
    struct stats ms = stats_of(s.ms, s.n), means = stats_of(s.mean, s.processes);
    COLUMNS(TABLE_CELL)
}

/* Phase i of a process, or the note of a process that measured nothing; NULL after the last. */
static const char *phase_at(const struct warmup_process *p, int i, const char **ret_note)
{
    const struct table *t = &p->sheet.table[WARMUP_CELL].table;
    const char *note = i < t->rows ? table_text_of(t, i, "note") : "";
    *ret_note = *note ? note : NULL;
    return i < t->rows ? table_text_of(t, i, "phase") : NULL;
}

static void add_statistics(const struct warmup_runs *x, struct sheet *ret)
{
    int most = x->sizes * x->warmups * BENCH_LINES;
    struct sheet_table *sheet = sheet_add(ret, NULL, columns, COUNT_OF(columns), most, x->a);
    struct table *t = &sheet->table;
    int row = 0;
    for (int k = 0; k < x->sizes * x->warmups; k++) {
        const char *size = x->size[k / x->warmups], *phase, *note;
        int warmup = x->warmup[k % x->warmups], of = 0;
        while (of < x->n && !is_of(&x->process[of], size, warmup)) of++;
        if (of == x->n) continue; /* the suite was stopped before */
        for (int i = 0; (phase = phase_at(&x->process[of], i, &note)); i++)
            set_row((struct table_row){t, row++, 0, x->a}, x, size, warmup, phase, note);
    }
    t->rows = row;
    sheet_bars(sheet, "mean time", "mean_ms", "std_ms",
               (const char *[SHEET_LABELS]){"config", "warmup", "phase"});
}

/* All processes of a model begin with the same steps, whatever their warm-up. Returns how many have
 * the step; *ret_ms: the median of all. `ms` has room for one number per process. */
static int median_of_step(const struct warmup_runs *x, const char *size, const char *phase,
                          int step, double *ms, double *ret_ms)
{
    int n = 0;
    for (int i = 0; i < x->n; i++) {
        const struct table *t = &x->process[i].sheet.table[WARMUP_STEPS].table;
        if (!is_of(&x->process[i], size, -1)) continue;
        for (int row = 0; row < t->rows; row++)
            if ((int)table_at(t, row, STEP_NUMBER)->number == step && n < x->n &&
                !strcmp(table_text_of(t, row, "phase"), phase))
                ms[n++] = table_at(t, row, STEP_MS)->number;
    }
    *ret_ms = stats_of(ms, n).median;
    return n;
}

static void add_steps(const struct warmup_runs *x, struct sheet *ret)
{
    struct arena *a = x->a;
    double *ms = ARENA_NEW(a, double, x->n), median;
    struct sheet_table *sheet =
        sheet_add(ret, "Each step from the first of its process, median of all processes",
                  step_columns, STEP_COLUMNS, rows_of_steps(x), a);
    struct table *t = &sheet->table;
    int row = 0;
    for (int k = 0; k < x->sizes * BENCH_LINES; k++) {
        const char *size = x->size[k / BENCH_LINES];
        const char *phase = bench_line_name((enum bench_line)(k % BENCH_LINES));
        for (int step = 0; median_of_step(x, size, phase, step, ms, &median); step++)
            grid_step_set((struct table_row){t, row++, 0, a}, size, phase, step, median);
    }
    t->rows = row;
    grid_steps_draw(sheet);
}

/* The first process of a model may find no compiled kernels in the cache; later ones find its. */
enum which { FIRST_PROCESS, LATER_PROCESSES, WHICH };

/* The mean of row `part` of the starts of these processes; returns their number. */
static int mean_start(const struct warmup_runs *x, const char *size, enum which which, int part,
                      double *ret_ms, struct kernel_setup *ret)
{
    int n = 0, seen = 0;
    *ret = (struct kernel_setup){0};
    *ret_ms = 0;
    for (int i = 0; i < x->n; i++) {
        const struct table *t = &x->process[i].sheet.table[WARMUP_START].table;
        if (!is_of(&x->process[i], size, -1) || part >= t->rows) continue;
        if ((seen++ > 0) != (which == LATER_PROCESSES)) continue;
        *ret_ms += table_at(t, part, START_MS)->number;
        ret->compile_ms += table_at(t, part, START_COMPILE)->number;
        ret->load_ms += table_at(t, part, START_LOAD)->number;
        ret->choose_ms += table_at(t, part, START_CHOOSE)->number;
        n++;
    }
    if (!n) return 0;
    *ret_ms /= n;
    ret->compile_ms /= n, ret->load_ms /= n, ret->choose_ms /= n;
    return n;
}

static void add_starts(const struct warmup_runs *x, struct sheet *ret)
{
    static const char *const part[WHICH][BENCH_STARTS] = {
        {"opening, first process", "first step, first process"},
        {"opening, later processes", "first step, later processes"}};
    struct sheet_table *sheet = sheet_add(ret, "Before the second step", start_columns,
                                          START_COLUMNS, x->sizes * WHICH * BENCH_STARTS, x->a);
    struct table *t = &sheet->table;
    struct kernel_setup setup;
    double ms;
    int row = 0;
    for (int k = 0; k < x->sizes * WHICH * BENCH_STARTS; k++) {
        const char *size = x->size[k / (WHICH * BENCH_STARTS)];
        int which = k / BENCH_STARTS % WHICH, at = k % BENCH_STARTS;
        if (mean_start(x, size, (enum which)which, at, &ms, &setup))
            grid_start_set((struct table_row){t, row++, 0, x->a}, size, part[which][at], ms,
                           &setup);
    }
    t->rows = row;
}

/* --- the sentences ---------------------------------------------------------------------------- */

/* The first or the last phase that the processes measured; NULL: none measured anything. */
static const char *phase_of(const struct warmup_runs *x, const char *size, bool last)
{
    for (int i = 0; i < x->n; i++) {
        const struct table *t = &x->process[i].sheet.table[WARMUP_STEPS].table;
        if (is_of(&x->process[i], size, -1) && t->rows)
            return table_text_of(t, last ? t->rows - 1 : 0, "phase");
    }
    return NULL;
}

/* "; the mean is without warm-up 9.5 % higher, after 1 step 1.2 % lower": each but the longest. */
static const char *against_longest(const struct warmup_runs *x, const char *size, const char *phase,
                                   int longest, double mean)
{
    const char *words = "";
    for (int i = 0; i < x->warmups; i++) {
        struct series s = series_of(x, size, x->warmup[i], phase);
        if (x->warmup[i] == longest || !s.n) continue;
        double more = 100 * (stats_of(s.ms, s.n).mean / mean - 1);
        const char *after = x->warmup[i] ? arena_printf(x->a, "after %d step%s", x->warmup[i],
                                                        x->warmup[i] == 1 ? "" : "s")
                                         : "without warm-up";
        const char *by = more > 100 ? arena_printf(x->a, "%.3g times as high", 1 + more / 100)
                                    : arena_printf(x->a, "%.3g %% %s", fabs(more),
                                                   more < 0 ? "lower" : "higher");
        words = arena_printf(x->a, "%s%s%s %s", words, *words ? ", " : "; the mean is ", after, by);
    }
    return words;
}

/* The largest spread of the means of processes that had the same warm-up, in percent. */
static double spread_of_processes(const struct warmup_runs *x, const char *size, const char *phase)
{
    double most = 0;
    for (int i = 0; i < x->warmups; i++) {
        struct series s = series_of(x, size, x->warmup[i], phase);
        struct stats means = stats_of(s.mean, s.processes);
        if (means.n > 1 && means.min > 0) most = fmax(most, 100 * (means.max / means.min - 1));
    }
    return most;
}

/* What the first process spent on kernels until the end of step 0; "": nothing, as on a CPU. */
static const char *setup_words(const struct warmup_runs *x, const char *size)
{
    struct kernel_setup open, step;
    double open_ms, step_ms;
    if (!mean_start(x, size, FIRST_PROCESS, BENCH_OPENING, &open_ms, &open)) return "";
    (void)mean_start(x, size, FIRST_PROCESS, BENCH_FIRST_STEP, &step_ms, &step);
    double compile = open.compile_ms + step.compile_ms, load = open.load_ms + step.load_ms;
    double choose = open.choose_ms + step.choose_ms;
    if (!(compile + load + choose > 0)) return "";
    return arena_printf(x->a,
                        " Until the end of step 0 of the first process, kernels took %.3g ms to "
                        "compile (or to read from the cache), %.3g ms to load and %.3g ms to "
                        "choose.",
                        compile, load, choose);
}

/* "step: step 0 takes 25.6 ms, ..."; "": nothing was measured. */
static const char *phase_words(const struct warmup_runs *x, const char *size, const char *phase)
{
    struct arena *a = x->a;
    int longest = 0;
    for (int i = 0; i < x->warmups; i++) longest = (int)fmax(longest, x->warmup[i]);
    struct series all = series_of(x, size, -1, phase), warm = series_of(x, size, longest, phase);
    double mean = stats_of(warm.ms, warm.n).mean, first = stats_of(all.first, all.processes).median;
    if (!(mean > 0 && first > 0)) return "";
    double spread = spread_of_processes(x, size, phase);
    const char *differ =
        spread > 0
            ? arena_printf(a, "; processes with the same warm-up differ by up to %.3g %%", spread)
            : "";
    return arena_printf(a,
                        "%s: step 0 takes %.3g ms, %.2f times as long as a step after %d warm-up "
                        "step%s (%.3g ms)%s%s.",
                        phase, first, first / mean, longest, longest == 1 ? "" : "s", mean,
                        against_longest(x, size, phase, longest, mean), differ);
}

/* The first phase has the one-time work of the process, the last is the whole step. */
static void add_sentence(const struct warmup_runs *x, const char *size, struct sheet *ret)
{
    const char *first = phase_of(x, size, false), *last = phase_of(x, size, true);
    if (!first) return;
    bool one = !strcmp(first, last);
    sheet_note(ret, arena_printf(x->a, "%s, %s%s%s%s", size, phase_words(x, size, first),
                                 one ? "" : " And ", one ? "" : phase_words(x, size, last),
                                 setup_words(x, size)));
}

void warmup_view(const struct warmup_runs *x, struct sheet *ret)
{
    add_statistics(x, ret);
    add_steps(x, ret);
    add_starts(x, ret);
    for (int i = 0; i < x->sizes; i++) add_sentence(x, x->size[i], ret);
}

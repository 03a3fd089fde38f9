/* Two tables of the same lines, for they are wider than a screen together: the times, in the columns of
 * Nsight Systems, and the work. Programs get one table. */
#include "cli/profile_table.h"

#include "base/str.h"
#include "cli/ceilings.h"
#include "profile/words.h"

#include <stdio.h>
#include <string.h>

static const double LEAST_SHOWN = 1e-4, MOST_SHOWN = 9999;

enum { NAME_MOST = 48, TEXT_WIDTH = 110, ABOUT_WIDTH = 12 };

enum {
    COLUMN_SHARE,
    COLUMN_TOTAL,
    COLUMN_RUNS,
    COLUMN_AVERAGE,
    COLUMN_MEDIAN,
    COLUMN_MIN,
    COLUMN_MAX,
    COLUMN_STD,
    COLUMN_FLOPS,
    COLUMN_BYTES,
    COLUMN_INTENSITY,
    COLUMN_GFLOPS,
    COLUMN_GBYTES,
    COLUMN_BOUND,
    COLUMN_FLOOR,
    COLUMN_GAP,
    COLUMN_THREADS,
    COLUMN_NAME,
    COLUMNS
};

static const struct table_column columns[COLUMNS] = {
    [COLUMN_SHARE] = {"time_percent", "time %", "of the measured time", true},
    [COLUMN_TOTAL] = {"ms_per_step", "ms/step", "of a step, the mean of all", true},
    [COLUMN_RUNS] = {"runs_per_step", "runs", "executions in a step", true},
    [COLUMN_AVERAGE] = {"us_average", "avg µs", "of one execution", true},
    [COLUMN_MEDIAN] = {"us_median", "med µs", "of one execution", true},
    [COLUMN_MIN] = {"us_min", "min µs", "of one execution", true},
    [COLUMN_MAX] = {"us_max", "max µs", "of one execution", true},
    [COLUMN_STD] = {"us_std", "std µs", "standard deviation of the executions", true},
    [COLUMN_FLOPS] = {"mflop_per_step", "MFLOP", "arithmetic of a step, as the plan counts it",
                      true},
    [COLUMN_BYTES] = {"mb_per_step", "MB", "every input and output once, of a step", true},
    [COLUMN_INTENSITY] = {"flop_per_byte", "FLOP/B", "arithmetic intensity", true},
    [COLUMN_GFLOPS] = {"gflop_per_s", "GFLOP/s", "achieved", true},
    [COLUMN_GBYTES] = {"gb_per_s", "GB/s", "achieved", true},
    [COLUMN_BOUND] = {"bound", "bound by", "what keeps it from being faster", false},
    [COLUMN_FLOOR] = {"floor_ms", "floor ms", "of a step, at the measured ceilings", true},
    [COLUMN_GAP] = {"times_floor", "x floor", "how many times as long as its floor", true},
    [COLUMN_THREADS] = {"threads_percent", "threads %",
                        "of its time that a thread works, on average", true},
    [COLUMN_NAME] = {"name", "name", "what it is", false},
};

static const int time_columns[] = {COLUMN_SHARE,   COLUMN_TOTAL,  COLUMN_RUNS,
                                   COLUMN_AVERAGE, COLUMN_MEDIAN, COLUMN_MIN,
                                   COLUMN_MAX,     COLUMN_STD,    COLUMN_NAME};
static const int work_columns[] = {COLUMN_FLOPS,   COLUMN_BYTES, COLUMN_INTENSITY, COLUMN_GFLOPS,
                                   COLUMN_GBYTES,  COLUMN_BOUND, COLUMN_FLOOR,     COLUMN_GAP,
                                   COLUMN_THREADS, COLUMN_NAME};

/* As table_set, but what is next to nothing is not written with all its zeros. */
static void set(struct table *t, int at, int column, int digits, double x, struct arena *a)
{
    table_set(t, at, column, digits, x, a);
    if (x > 0 && x < LEAST_SHOWN) table_at(t, at, column)->text = "<0.0001";
    if (column == COLUMN_GAP && x > MOST_SHOWN) table_at(t, at, column)->text = ">9999";
}

static void set_percent(struct table *t, int at, int column, double share, struct arena *a)
{
    *table_at(t, at, column) =
        (struct table_cell){arena_printf(a, "%.2f", 100 * share), 100 * share};
}

static void set_times(struct table *t, int at, const struct profile_group *g, struct arena *a)
{
    set_percent(t, at, COLUMN_SHARE, g->share, a);
    set(t, at, COLUMN_TOTAL, 4, g->ms, a);
    if (g->runs) table_set(t, at, COLUMN_RUNS, 0, g->runs, a);
    if (!g->run_ms.n) return;
    table_set(t, at, COLUMN_AVERAGE, 4, 1e3 * g->run_ms.mean, a);
    table_set(t, at, COLUMN_MEDIAN, 4, 1e3 * g->run_ms.median, a);
    table_set(t, at, COLUMN_MIN, 4, 1e3 * g->run_ms.min, a);
    table_set(t, at, COLUMN_MAX, 4, 1e3 * g->run_ms.max, a);
    if (g->run_ms.n > 1) table_set(t, at, COLUMN_STD, 3, 1e3 * g->run_ms.std, a);
}

static void set_work(struct table *t, int at, const struct profile_group *g, struct arena *a)
{
    double seconds = 1e-3 * g->ms;
    if (!g->run_ms.n || !(g->bytes > 0)) return;
    set(t, at, COLUMN_FLOPS, 4, 1e-6 * g->flops, a);
    set(t, at, COLUMN_BYTES, 3, 1e-6 * g->bytes, a);
    table_set(t, at, COLUMN_INTENSITY, 3, g->flops / g->bytes, a);
    if (seconds > 0) {
        table_form_set_flops(t, at, COLUMN_GFLOPS, g->flops / seconds, a);
        table_set(t, at, COLUMN_GBYTES, 3, 1e-9 * g->bytes / seconds, a);
    }
    table_set_text(t, at, COLUMN_BOUND, bound_name(g->bound));
    set(t, at, COLUMN_FLOOR, 3, g->floor_ms, a);
    if (g->floor_ms > 0) set(t, at, COLUMN_GAP, 3, g->ms / g->floor_ms, a);
    if (g->seen_ms > 0) set_percent(t, at, COLUMN_THREADS, g->busy_ms / g->seen_ms, a);
}

static const char *shown_name(const struct profile_group *g, bool cut, struct arena *a)
{
    int room = NAME_MOST - 2 * g->depth, length = (int)strlen(g->name);
    if (!cut || length <= room) return arena_printf(a, "%*s%s", 2 * g->depth, "", g->name);
    return arena_printf(a, "%*s%.*s...", 2 * g->depth, "", room - 3, g->name);
}

/* What is left of the lines that are not shown, as one; idle time is always shown. */
static struct profile_group rest_of(const struct profile_groups *g, int from, struct arena *a)
{
    struct profile_group rest = {.name = ""};
    for (int i = from; i < g->groups - 1; i++) {
        const struct profile_group *x = &g->group[i];
        rest.ms += x->ms;
        rest.share += x->share;
        rest.runs += x->runs;
    }
    rest.name = arena_printf(a, "%d more (--rows=0 shows all)", g->groups - 1 - from);
    return rest;
}

static struct profile_groups shown_groups(const struct profile_groups *g, int rows, struct arena *a)
{
    bool flat = g->by != BY_RANGE;
    struct profile_groups shown = *g;
    if (!flat || !rows || g->groups - 1 <= rows) return shown;
    shown.group = ARENA_NEW(a, struct profile_group, rows + 2);
    memcpy(shown.group, g->group, (size_t)rows * sizeof *g->group);
    shown.group[rows] = rest_of(g, rows, a);
    shown.group[rows + 1] = g->group[g->groups - 1];
    shown.groups = rows + 2;
    return shown;
}

static struct table make_table(const struct profile_groups *g, bool cut, bool gpu, struct arena *a)
{
    struct table t = {.column = columns, .columns = COLUMNS, .rows = g->groups};
    if (gpu) table_form_tera(&t, a);
    t.cell = ARENA_NEW(a, struct table_cell, t.rows * t.columns);
    for (int i = 0; i < t.rows; i++) {
        set_times(&t, i, &g->group[i], a);
        set_work(&t, i, &g->group[i], a);
        table_set_text(&t, i, COLUMN_NAME, shown_name(&g->group[i], cut, a));
    }
    return t;
}

static struct table some_columns(const struct table *t, const int *column, int n, struct arena *a)
{
    struct table some = {.columns = n, .rows = t->rows};
    struct table_column *of = ARENA_NEW(a, struct table_column, n);
    some.cell = ARENA_NEW(a, struct table_cell, t->rows * n);
    for (int k = 0; k < n; k++) {
        of[k] = t->column[column[k]];
        for (int row = 0; row < t->rows; row++)
            *table_at(&some, row, k) = *table_at(t, row, column[k]);
    }
    some.column = of;
    return some;
}

static void print_two(const struct table *t, const struct table_form *f, struct str *s,
                      struct arena *a)
{
    struct table times = some_columns(t, time_columns, COUNT_OF(time_columns), a);
    struct table work = some_columns(t, work_columns, COUNT_OF(work_columns), a);
    table_form_print(f, &times, s);
    str_append(s, "\n");
    table_form_print(f, &work, s);
}

/* Breaks a text at blanks, so that a line has at most TEXT_WIDTH columns; `indent` before all but the first. */
static void print_wrapped(const char *text, int indent, struct str *s)
{
    int at = indent;
    for (const char *word = text; *word;) {
        int bytes = (int)strcspn(word, " \n");
        char one[128];
        snprintf(one, sizeof one, "%.*s", bytes, word);
        int width = table_width(one);
        if (at > indent && at + 1 + width > TEXT_WIDTH) {
            str_printf(s, "\n%*s", indent, "");
            at = indent;
        }
        str_printf(s, "%s%.*s", at > indent ? " " : "", bytes, word);
        at += width + (at > indent);
        word += bytes + (word[bytes] != '\0');
    }
    str_append(s, "\n");
}

static void print_words(const struct profile *p, const struct table_form *f, const char *words,
                        struct str *s, struct arena *a)
{
    struct profile_words w;
    if (f->csv) return;
    words_of(p, &w, a);
    str_append(s, "\n");
    for (int i = 0; i < w.words; i++) {
        str_printf(s, "%s%-*s", f->markdown ? "- " : "", ABOUT_WIDTH, w.word[i].about);
        print_wrapped(w.word[i].text, ABOUT_WIDTH, s);
    }
    str_append(s, "\n");
    print_wrapped(words, 0, s);
    print_wrapped(ceilings_words(p->machine, a), 0, s);
}

void profile_table_print(const struct profile *p, const struct profile_table *how,
                         const struct table_form *f, const char *words, struct str *s,
                         struct arena *a)
{
    struct profile_groups all, shown;
    profile_groups(p, how->by, how->phases, &all, a);
    shown = f->csv ? all : shown_groups(&all, how->rows, a);
    struct table t = make_table(&shown, !f->csv && !f->markdown, p->machine->gpu, a);
    if (f->csv)
        table_form_print(f, &t, s);
    else
        print_two(&t, f, s, a);
    print_words(p, f, words, s, a);
}

/* Prints the columns as several tables with the same lines, because one table would be wider than a
 * screen: times, with the columns of Nsight Systems, then work, counters and occupancy. CSV has one
 * table. With several ranks, a table of collectives is printed, too, which has lines of its own. */
#include "view/profile_table.h"

#include "base/str.h"
#include "profile/words.h"
#include "view/ceilings.h"
#include "view/communication_view.h"
#include "view/launches_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const double LEAST_SHOWN = 1e-4, MOST_SHOWN = 9999;

enum { NAME_LEAST = 24, NAME_MOST = 48, ABOUT_WIDTH = 12, USUAL = 100 };

/* In printed text, FLOPs and bytes use the unit (M, G, T) that fits the largest number. */
struct scale {
    double flops, bytes; /* factors of MFLOP and of MB */
};

/* clang-format off */
#define SHARE_COLUMN(X, share, id, title, help) X(id "_percent", title, help, PERCENT, counted, c->share)
#define SHARE_ID(suffix, share, id, ...) id suffix,
#define COLUMNS(X) \
    X("time_percent", "time %", "share of the measured time", PERCENT, true, g->share) \
    X("ms_per_step", "ms/step", "mean time in a step", SHORT, true, 4, g->ms) \
    X("runs_per_step", "runs", "executions per step", NUMBER, g->runs, 0, g->runs) \
    X("us_average", "avg µs", "mean of one execution", NUMBER, ms->n, 4, 1e3 * ms->mean) \
    X("us_median", "med µs", "median of one execution", NUMBER, ms->n, 4, 1e3 * ms->median) \
    X("us_min", "min µs", "shortest execution", NUMBER, ms->n, 4, 1e3 * ms->min) \
    X("us_max", "max µs", "longest execution", NUMBER, ms->n, 4, 1e3 * ms->max) \
    X("us_std", "std µs", "standard deviation of the executions", NUMBER, ms->n > 1, 3, 1e3 * ms->std) \
    X("mflop_per_step", "MFLOP", "FLOPs of a step, from the plan", SHORT, works, 4, 1e-6 * g->flops / scale.flops) \
    X("mb_per_step", "MB", "bytes of a step: every input and output once", SHORT, works, 3, 1e-6 * g->bytes / scale.bytes) \
    X("flop_per_byte", "FLOP/B", "arithmetic intensity", NUMBER, works, 3, g->flops / g->bytes) \
    X("gflop_per_s", "GFLOP/s", "achieved", FLOPS, works && seconds > 0, g->flops / seconds) \
    X("gb_per_s", "GB/s", "achieved", NUMBER, works && seconds > 0, 3, 1e-9 * g->bytes / seconds) \
    X("bound", "bound by", "the resource that limits the line", TEXT, works ? bound_name(g->bound) : NULL) \
    X("floor_ms", "floor ms", "lower bound on the line's time in a step, at the measured peaks", SHORT, works, 3, g->floor_ms) \
    X("times_floor", "x floor", "time / lower bound, over all kernels of an operator", GAP, works && g->floor_ms > 0 && g->bound != BOUND_LATENCY, 3, g->work_ms / g->floor_ms) \
    X("threads_percent", "threads %", "mean share of the time in which a thread works", PERCENT, works && g->seen_ms > 0, g->busy_ms / g->seen_ms) \
    X("dram_read_mb_per_step", "read MB", "bytes of a step read from DRAM, counted", SHORT, counted, 3, 1e-6 * c->dram_read / scale.bytes) \
    X("dram_written_mb_per_step", "written MB", "bytes of a step written to DRAM, counted", SHORT, counted, 3, 1e-6 * c->dram_written / scale.bytes) \
    X("dram_times_plan", "x plan", "DRAM bytes / the plan's, over all kernels of an operator", SHORT, counted && g->planned_dram > 0, 3, g->work_dram / g->planned_dram) \
    COUNTER_SHARES(SHARE_COLUMN, X) \
    LAUNCH_COLUMNS(X) \
    X("name", "name", "name of the line", TEXT, arena_printf(row.arena, "%*s%s", 2 * g->depth, "", g->name))
/* clang-format on */

/* Kinds of columns of this table alone. SHORT: a number, printed as <0.0001 if it is smaller. GAP:
 * like SHORT, and printed as >9999 if it is larger. */
enum { TABLE_IS_PERCENT = true, TABLE_IS_SHORT = true, TABLE_IS_GAP = true };
#define TABLE_PERCENT(known, x) \
    TABLE_SHOWN(known, arena_printf(row.arena, "%.2f", 100 * (x)), 100 * (x))
#define TABLE_SHORT(known, digits, x) TABLE_IF(known, set_short(TABLE_AT, digits, x, row.arena))
#define TABLE_GAP(known, digits, x) \
    TABLE_SHORT(known, digits, x);  \
    if ((known) && (x) > MOST_SHOWN) table_at(TABLE_AT)->text = ">9999"

static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

/* The columns of each printed table, ended by NULL. */
static const char *const time_columns[] = {
    "time_percent", "ms_per_step", "runs_per_step", "us_average", "us_median",
    "us_min",       "us_max",      "us_std",        "name",       NULL};
static const char *const work_columns[] = {
    "mflop_per_step", "mb_per_step", "flop_per_byte",   "gflop_per_s", "gb_per_s", "bound",
    "floor_ms",       "times_floor", "threads_percent", "name",        NULL};
static const char *const counter_columns[] = {"time_percent",
                                              "mb_per_step",
                                              "dram_read_mb_per_step",
                                              "dram_written_mb_per_step",
                                              "dram_times_plan",
                                              COUNTER_SHARES(SHARE_ID, "_percent") "name",
                                              NULL};
static const char *const launch_columns[] = {"time_percent", "grid_block",   "sm_warps", "limit",
                                             "waves",        "tail_percent", "name",     NULL};

static void set_short(struct table *t, int at, int column, int digits, double x, struct arena *a)
{
    table_set(t, at, column, digits, x, a);
    if (x > 0 && x < LEAST_SHOWN) table_at(t, at, column)->text = "<0.0001";
}

static void set_group(struct table_row row, const struct profile_group *g, struct scale scale)
{
    const struct stats *ms = &g->run_ms;
    const struct kernel_counters *c = &g->counters;
    const struct step_launch *x = g->launch;
    double seconds = 1e-3 * g->work_ms;
    bool works = ms->n && g->bytes > 0, counted = g->counted_ms > 0;
    COLUMNS(TABLE_CELL)
}

static double scale_of_most(double most)
{
    double scale = 1;
    while (most / scale > MOST_SHOWN && scale < 1e6) scale *= 1e3;
    return scale;
}

static struct scale scale_of(const struct profile_groups *g)
{
    double flops = 0, bytes = 0;
    for (int i = 0; i < g->groups; i++) {
        flops = fmax(flops, 1e-6 * g->group[i].flops);
        const struct kernel_counters *c = &g->group[i].counters;
        double most = fmax(g->group[i].bytes, fmax(c->dram_read, c->dram_written));
        bytes = fmax(bytes, 1e-6 * most);
    }
    return (struct scale){scale_of_most(flops), scale_of_most(bytes)};
}

static void set_units(struct table *t, const struct scale *scale, struct arena *a)
{
    struct table_column *column = ARENA_NEW(a, struct table_column, t->columns);
    memcpy(column, t->column, (size_t)t->columns * sizeof *column);
    double flops = scale->flops, bytes = scale->bytes;
    const char *unit = bytes > 1e3 ? "TB" : bytes > 1 ? "GB" : "MB";
    column[table_find(t, "mflop_per_step")].title = flops > 1e3 ? "TFLOP"
                                                    : flops > 1 ? "GFLOP"
                                                                : "MFLOP";
    column[table_find(t, "mb_per_step")].title = unit;
    column[table_find(t, "dram_read_mb_per_step")].title = arena_printf(a, "read %s", unit);
    column[table_find(t, "dram_written_mb_per_step")].title = arena_printf(a, "written %s", unit);
    t->column = column;
}

/* One line with the sums of the lines that are not shown. Idle time (the last group) is always
 * shown. */
static struct profile_group rest_of(const struct profile_groups *g, int from, struct arena *a)
{
    int n = g->groups - 1 - from;
    struct profile_group rest = {.name = arena_printf(a, "%d more (--rows=0 shows all)", n)};
    for (const struct profile_group *x = &g->group[from]; x < &g->group[from + n]; x++) {
        rest.ms += x->ms;
        rest.share += x->share;
        rest.runs += x->runs;
    }
    return rest;
}

static struct profile_groups shown_groups(const struct profile_groups *g, int rows, struct arena *a)
{
    struct profile_groups shown = *g;
    if (g->by == BY_RANGE || !rows || g->groups - 1 <= rows) return shown;
    shown.group = ARENA_NEW(a, struct profile_group, rows + 2);
    memcpy(shown.group, g->group, (size_t)rows * sizeof *g->group);
    shown.group[rows] = rest_of(g, rows, a);
    shown.group[rows + 1] = g->group[g->groups - 1];
    shown.groups = rows + 2;
    return shown;
}

static struct table make_table(const struct profile_groups *g, bool text, bool gpu, struct arena *a)
{
    struct table t = table_new(columns, COUNT_OF(columns), g->groups, a);
    if (gpu) table_form_tera(&t, a);
    struct scale scale = text ? scale_of(g) : (struct scale){1, 1};
    if (text) set_units(&t, &scale, a);
    for (int i = 0; i < t.rows; i++)
        set_group((struct table_row){&t, i, 0, a}, &g->group[i], scale);
    return t;
}

static struct table some_columns(const struct table *t, const char *const *id, struct arena *a)
{
    int n = 0;
    while (id[n]) n++;
    struct table_column *of = ARENA_NEW(a, struct table_column, n);
    struct table some = table_new(of, n, t->rows, a);
    for (int k = 0; k < n; k++) {
        int column = table_find(t, id[k]);
        of[k] = t->column[column];
        for (int row = 0; row < t->rows; row++)
            *table_at(&some, row, k) = *table_at(t, row, column);
    }
    return some;
}

/* Width of a line: of the terminal, otherwise $COLUMNS; 0: unknown. */
static int width_of_terminal(void)
{
    enum { LEAST = 60, MOST = 400 };
    struct winsize size;
    const char *given = getenv("COLUMNS");
    int width = given ? atoi(given) : 0;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        width = size.ws_col;
    if (width <= 0) return 0;
    return width < LEAST ? LEAST : width > MOST ? MOST : width;
}

/* Wraps a text at blanks to the width of the terminal. All lines except the first are indented. */
static void print_wrapped(const char *text, int indent, struct str *s)
{
    int at = indent, most = width_of_terminal() ? width_of_terminal() : USUAL;
    for (const char *word = text; *word;) {
        int bytes = (int)strcspn(word, " \n");
        char one[128];
        snprintf(one, sizeof one, "%.*s", bytes, word);
        int width = table_width(one);
        if (at > indent && at + 1 + width > most) {
            str_printf(s, "\n%*s", indent, "");
            at = indent;
        }
        str_printf(s, "%s%.*s", at > indent ? " " : "", bytes, word);
        at += width + (at > indent);
        word += bytes + (word[bytes] != '\0');
    }
    str_append(s, "\n");
}

/* Cuts names to the width that the other columns leave on a line of the terminal. */
static void cut_names(struct table *t, const struct table_form *f, struct arena *a)
{
    int last = t->columns - 1, left = width_of_terminal();
    for (int k = 0; k < last; k++) left -= table_column_width(t, k) + 2;
    if (!width_of_terminal() || left > NAME_MOST) left = NAME_MOST;
    if (left < NAME_LEAST) left = NAME_LEAST;
    for (int row = 0; row < t->rows && !f->markdown; row++) {
        struct table_cell *cell = table_at(t, row, last);
        if ((int)strlen(cell->text) > left)
            cell->text = arena_printf(a, "%.*s...", left - 3, cell->text);
    }
}

/* A further table with the same lines, below a text. */
static void print_more(const struct table *t, const char *const *id, const char *text,
                       const struct table_form *f, struct str *s, struct arena *a)
{
    struct table some = some_columns(t, id, a);
    cut_names(&some, f, a);
    str_append(s, "\n");
    print_wrapped(text, 0, s);
    str_append(s, "\n");
    table_form_print(f, &some, s);
}

static const char *occupancy_words(const struct profile *p, struct arena *a)
{
    return arena_printf(a,
                        "occupancy of Strobe's own kernels, as in strobe plan --occupancy; a line "
                        "of several nodes shows the one that takes longest. %s",
                        launches_limits(p->engine->program.target, a));
}

static void print_tables(const struct profile *p, const struct table *t,
                         const struct profile_table *how, const struct table_form *f, struct str *s,
                         struct arena *a)
{
    struct table times = some_columns(t, time_columns, a);
    cut_names(&times, f, a);
    print_wrapped("Columns up to `runs` are per step (mean); columns in µs are of one execution.",
                  0, s);
    str_append(s, "\n");
    table_form_print(f, &times, s);
    print_more(t, work_columns, "FLOPs, bytes, floor ms and x floor are per step.", f, s, a);
    if (p->counted)
        print_more(t, counter_columns,
                   "Hardware counters of one more step, whose kernels ran one at a time. x plan: "
                   "DRAM bytes of an operator divided by its bytes in the plan; below 1 if L2 "
                   "served part of them.",
                   f, s, a);
    if (p->communication) {
        struct table ranks = communication_table(p->communication, how->rows, a);
        str_append(s, "\n");
        print_wrapped("Collectives of rank 0 in the order of a step; times are means over steps.",
                      0, s);
        str_append(s, "\n");
        table_form_print(f, &ranks, s);
    }
    if (how->occupancy) print_more(t, launch_columns, occupancy_words(p, a), f, s, a);
}

static void print_words(const struct profile *p, const struct table_form *f, const char *words,
                        struct str *s, struct arena *a)
{
    if (f->csv) return;
    struct profile_words w = words_of(p, a);
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
        print_tables(p, &t, how, f, s, a);
    print_words(p, f, words, s, a);
}

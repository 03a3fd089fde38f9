#include "view/formula_view.h"

#include "base/str.h"
#include "graph/chain.h"
#include "lab/ceiling.h"
#include "present/table_cells.h"

#include <math.h>

/* clang-format off */
#define COLUMN_LIST(X) \
    X(COLUMN_PASS, "pass", "pass", "what runs", false) \
    X(COLUMN_VARIANT, "variant", "variant", \
      "separate: a kernel for each operator; fused: chains; copy: as many bytes by the device itself", false) \
    X(COLUMN_SIZE, "size", "elements", "of each tensor", true) \
    X(COLUMN_BYTES, "useful_bytes", "useful bytes", "each tensor and result of a pass once", true) \
    X(COLUMN_KERNELS, "kernels", "kernels", "launched", true) \
    X(COLUMN_MOVED, "bytes_per_element", "B/element", "bytes that the kernels read and write, by count", true) \
    X(COLUMN_MS, "ms_median", "µs", "median time", true) \
    X(COLUMN_STD, "ms_std", "std", "standard deviation of the samples", true) \
    X(COLUMN_SAMPLES, "samples", "n", "number of samples", true) \
    X(COLUMN_RATE, "gb_per_s", "GB/s", "useful bytes per second", true) \
    X(COLUMN_TIMES, "times_separate", "x", "speed of the fused kernels relative to the separate ones, in turns", true) \
    X(COLUMN_VERDICT, "verdict", "fused beside separate", "by the rule of docs/MEASURING.md", false) \
    X(COLUMN_SHARE, "copy_percent", "% of copy", "time of the copy / time of the variant", true) \
    X(COLUMN_ERROR, "error", "error", "relative to double precision, by norm: the largest of value and gradients", true) \
    X(COLUMN_NOTE, "note", "note", "why there is no time", false)
/* clang-format on */
enum { COLUMN_LIST(TABLE_ID) COLUMNS };
static const struct table_column columns[] = {COLUMN_LIST(TABLE_COLUMN)};
enum { ROWS_OF_PASS = FORMULA_VARIANTS + 1, COPY = FORMULA_VARIANTS, BAR = 40 };

/* The times of a row: a variant, or the copy. */
static const struct contender *contender_at(const struct formula_run *r, int pass, int row)
{
    return row == COPY ? &r->copy[pass] : &r->result[pass][row].time;
}

static const char *name_at(int row)
{
    return row == COPY ? "copy" : formula_variant_name((enum formula_variant)row);
}

static double useful(const struct formula_run *r, int pass)
{
    return r->useful[pass] * (double)r->options->n;
}

/* Useful GB/s; 0 if the row has no time. */
static double rate_at(const struct formula_run *r, int pass, int row)
{
    double ms = contender_at(r, pass, row)->total.median;
    return ms > 0 ? useful(r, pass) / ms * 1e-6 : 0;
}

/* Sets a cell: its number is in milliseconds, its text in microseconds. */
static void set_us(struct table *t, int row, int column, int digits, double ms, struct arena *a)
{
    char text[32];
    *table_at(t, row, column) =
        (struct table_cell){arena_strdup(a, str_number(text, 1e3 * ms, digits)), ms};
}

static void set_result(struct table *t, int row, const struct formula_run *r, int pass, int variant,
                       struct arena *a)
{
    const struct formula_result *x = &r->result[pass][variant];
    table_set(t, row, COLUMN_KERNELS, 0, x->kernels, a);
    table_set(t, row, COLUMN_MOVED, 3, x->moved, a);
    if (isfinite(x->error)) table_set_error(t, row, COLUMN_ERROR, x->error, a);
    if (x->wrong) table_set_text(t, row, COLUMN_NOTE, x->wrong);
    if (!x->beside.verdict.kind) return;
    table_set(t, row, COLUMN_TIMES, 3, x->beside.verdict.speed, a);
    table_set_text(t, row, COLUMN_VERDICT, judge_name(&x->beside));
}

static void set_row(struct table *t, int row, const struct formula_run *r, int pass, int at,
                    struct arena *a)
{
    const struct stats *ms = &contender_at(r, pass, at)->total;
    table_set_text(t, row, COLUMN_PASS, formula_pass_name((enum formula_pass)pass));
    table_set_text(t, row, COLUMN_VARIANT, name_at(at));
    table_set_count(t, row, COLUMN_SIZE, (double)r->options->n, a);
    table_set_bytes(t, row, COLUMN_BYTES, (int64_t)useful(r, pass), a);
    if (at != COPY) set_result(t, row, r, pass, at, a);
    if (at == COPY) table_set(t, row, COLUMN_MOVED, 3, r->useful[pass], a);
    if (!ms->n) return;
    set_us(t, row, COLUMN_MS, 4, ms->median, a);
    if (ms->n > 1) set_us(t, row, COLUMN_STD, 2, ms->std, a);
    table_set(t, row, COLUMN_SAMPLES, 0, ms->n, a);
    table_set(t, row, COLUMN_RATE, 4, rate_at(r, pass, at), a);
    table_set(t, row, COLUMN_SHARE, 3, 100 * r->copy[pass].total.median / ms->median, a);
}

/* --- bars of text ----------------------------------------------------------------------------- */

static const char *bar_of(double share, struct arena *a)
{
    struct str s = {0};
    for (int i = 0; i < (int)lround(share * BAR); i++) str_append(&s, "█");
    const char *bar = arena_strdup(a, str_text(&s));
    str_release(&s);
    return bar;
}

static void add_bars(const struct formula_run *const *r, int runs, struct sheet *s, struct arena *a)
{
    static const struct table_column of_bar[] = {
        {"pass", "pass", "what runs", false},
        {"variant", "variant", "how", false},
        {"size", "elements", "of each tensor", true},
        {"gb_per_s", "GB/s", "useful bytes per second", true},
        {"bar", "", "the same as a bar", false},
    };
    double most = 0;
    int row = 0;
    for (int k = 0; k < runs; k++)
        for (int p = 0; p < r[k]->passes; p++)
            for (int i = 0; i < ROWS_OF_PASS; i++) most = fmax(most, rate_at(r[k], p, i));
    if (!(most > 0)) return;
    struct table *t = &sheet_add(s, "useful GB/s over sizes", of_bar, COUNT_OF(of_bar),
                                 runs * r[0]->passes * ROWS_OF_PASS, a)
                           ->table;
    for (int p = 0; p < r[0]->passes; p++)
        for (int i = 0; i < ROWS_OF_PASS; i++)
            for (int k = 0; k < runs; k++, row++) {
                double rate = rate_at(r[k], p, i);
                if (k == 0) table_set_text(t, row, 0, formula_pass_name((enum formula_pass)p));
                if (k == 0) table_set_text(t, row, 1, name_at(i));
                table_set_count(t, row, 2, (double)r[k]->options->n, a);
                if (rate > 0) table_set(t, row, 3, 4, rate, a);
                table_set_text(t, row, 4, bar_of(rate / most, a));
            }
}

/* --- samples ---------------------------------------------------------------------------------- */

static void add_samples(const struct formula_run *const *r, int runs, struct sheet *s,
                        struct arena *a)
{
    static const struct table_column of_sample[] = {
        {"size", "elements", "of each tensor", true},
        {"pass", "pass", "what runs", false},
        {"variant", "variant", "how", false},
        {"turn", "turn", "samples of one turn are neighbours in time", true},
        {"ms", "ms", "of a call", true},
    };
    int rows = 0, row = 0;
    for (int k = 0; k < runs; k++)
        for (int p = 0; p < r[k]->passes; p++)
            for (int i = 0; i < ROWS_OF_PASS; i++) rows += contender_at(r[k], p, i)->taken;
    if (!rows) return;
    struct sheet_table *all = sheet_add(s, "samples", of_sample, COUNT_OF(of_sample), rows, a);
    all->drawn_only = true;
    for (int k = 0; k < runs; k++)
        for (int p = 0; p < r[k]->passes; p++)
            for (int i = 0; i < ROWS_OF_PASS; i++) {
                const struct contender *c = contender_at(r[k], p, i);
                for (int n = 0; n < c->taken; n++, row++) {
                    table_set_count(&all->table, row, 0, (double)r[k]->options->n, a);
                    table_set_text(&all->table, row, 1, formula_pass_name((enum formula_pass)p));
                    table_set_text(&all->table, row, 2, name_at(i));
                    table_set(&all->table, row, 3, 0, c->round[n], a);
                    table_set(&all->table, row, 4, 6, c->series[n], a);
                }
            }
}

/* --- the sheet -------------------------------------------------------------------------------- */

static void add_notes(const struct formula_run *const *r, int runs, struct sheet *s,
                      struct arena *a)
{
    const struct formula_run *last = r[runs - 1];
    int fused = last->result[last->passes - 1][FORMULA_FUSED].kernels;
    int warm = 0;
    double unjudged = 0;
    for (int k = 0; k < runs; k++) {
        warm += !r[k]->cold;
        unjudged = fmax(unjudged, r[k]->unjudged);
    }
    sheet_note(s, arena_printf(a,
                               "copy: %s of the useful bytes, in turns with the variants; cold "
                               "caches: calls go through sets of tensors of twice the last cache",
                               ceiling_copy_name(&last->options->device, a)));
    if (warm)
        sheet_note(s, arena_printf(a, "%d of the sizes %s so small that the caches may have them",
                                   warm, warm == 1 ? "is" : "are"));
    if (fused > last->passes)
        sheet_note(s, arena_printf(a,
                                   "the fused variant has %d kernels: a chain has at most %d "
                                   "operators, and %d results",
                                   fused, CHAIN_STEPS, CHAIN_OUTPUTS));
    if (last->passes == 1)
        sheet_note(s, "no gradient: the formula depends on its tensors only by comparisons");
    if (unjudged > 0)
        sheet_note(s, arena_printf(a,
                                   "%.2g %% of the elements were not compared: their result is "
                                   "not finite, or rounding may decide a comparison",
                                   100 * unjudged));
    sheet_note(s, "values and gradients were compared with double precision at every size and at "
                  "odd sizes, before and after the timing; tensors are standard normal");
}

void formula_sheet(const struct formula_run *const *r, int runs, struct sheet *s, struct arena *a)
{
    int rows = 0, row = 0;
    *s = (struct sheet){.name = "lab-kernel"};
    s->title = arena_printf(a, "lab kernel, %s: %s", dtype_name(r[0]->options->dtype),
                            r[0]->options->formula->text);
    for (int k = 0; k < runs; k++) rows += r[k]->passes * ROWS_OF_PASS;
    struct sheet_table *t = sheet_add(s, NULL, columns, COLUMNS, rows, a);
    for (int k = 0; k < runs; k++)
        for (int p = 0; p < r[k]->passes; p++)
            for (int i = 0; i < ROWS_OF_PASS; i++, row++) set_row(&t->table, row, r[k], p, i, a);
    t->chart = (struct sheet_chart){.kind = runs > 1 ? SHEET_LINES : SHEET_BARS,
                                    .title = "useful bytes per second",
                                    .label = {"pass", "variant"},
                                    .labels = 2,
                                    .y = "gb_per_s",
                                    .x = runs > 1 ? "size" : NULL,
                                    .unit = SHEET_GB_PER_S};
    if (runs > 1) add_bars(r, runs, s, a);
    add_notes(r, runs, s, a);
    add_samples(r, runs, s, a);
}

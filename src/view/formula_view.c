#include "view/formula_view.h"

#include "base/str.h"
#include "graph/chain.h"
#include "lab/ceiling.h"
#include "present/table_cells.h"

#include <math.h>

/* clang-format off */
#define COLUMNS(X) \
    X("pass", "pass", "what runs", TEXT, formula_pass_name((enum formula_pass)pass)) \
    X("variant", "variant", "separate: a kernel for each operator; fused: chains; copy: as many bytes by the device itself", TEXT, name_at(at)) \
    X("size", "elements", "of each tensor", COUNT, true, (double)r->options->n) \
    X("useful_bytes", "useful bytes", "each tensor and result of a pass once", BYTES, true, (int64_t)useful(r, pass)) \
    X("kernels", "kernels", "launched", NUMBER, x, 0, x->kernels) \
    X("bytes_per_element", "B/element", "bytes that the kernels read and write, by count", NUMBER, true, 3, x ? x->moved : r->useful[pass]) \
    X("ms_median", "µs", "median time", US, ms->n, 4, ms->median) \
    X("ms_std", "std", "standard deviation of the samples", US, ms->n > 1, 2, ms->std) \
    X("samples", "n", "number of samples", NUMBER, ms->n, 0, ms->n) \
    X("gb_per_s", "GB/s", "useful bytes per second", NUMBER, ms->n, 4, rate_at(r, pass, at)) \
    X("times_separate", "x", "speed of the fused kernels relative to the separate ones, in turns", NUMBER, judged, 3, x->beside.verdict.speed) \
    X("verdict", "fused beside separate", "by the rule of docs/MEASURING.md", TEXT, judged ? judge_name(&x->beside) : NULL) \
    X("copy_percent", "% of copy", "time of the copy / time of the variant", NUMBER, ms->n, 3, 100 * r->copy[pass].total.median / ms->median) \
    X("error", "error", "relative to double precision, by norm: the largest of value and gradients", ERROR, x && isfinite(x->error), x->error) \
    X("note", "note", "why there is no time", TEXT, x ? x->wrong : NULL)
#define BAR_COLUMNS(X) \
    X("pass", "pass", "what runs", TEXT, k == 0 ? formula_pass_name((enum formula_pass)p) : NULL) \
    X("variant", "variant", "how", TEXT, k == 0 ? name_at(i) : NULL) \
    X("size", "elements", "of each tensor", COUNT, true, (double)r[k]->options->n) \
    X("gb_per_s", "GB/s", "useful bytes per second", NUMBER, rate > 0, 4, rate) \
    X("bar", "", "the same as a bar", TEXT, bar_of(rate / most, a))
#define SAMPLE(X) \
    X("size", "elements", "of each tensor", COUNT, true, (double)r[k]->options->n) \
    X("pass", "pass", "what runs", TEXT, formula_pass_name((enum formula_pass)p)) \
    X("variant", "variant", "how", TEXT, name_at(i)) \
    X("turn", "turn", "samples of one turn are neighbors in time", NUMBER, true, 0, c->round[n]) \
    X("ms", "ms", "of a call", NUMBER, true, 6, c->series[n])
/* clang-format on */
static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};
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

static void set_row(struct table_row row, const struct formula_run *r, int pass, int at)
{
    const struct formula_result *x = at == COPY ? NULL : &r->result[pass][at];
    const struct stats *ms = &contender_at(r, pass, at)->total;
    bool judged = x && x->beside.verdict.kind;
    COLUMNS(TABLE_CELL)
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
    static const struct table_column of_bar[] = {BAR_COLUMNS(TABLE_COLUMN)};
    struct table_row row = {.arena = a};
    double most = 0;
    for (int k = 0; k < runs; k++)
        for (int p = 0; p < r[k]->passes; p++)
            for (int i = 0; i < ROWS_OF_PASS; i++) most = fmax(most, rate_at(r[k], p, i));
    if (!(most > 0)) return;
    row.table = &sheet_add(s, "useful GB/s over sizes", of_bar, COUNT_OF(of_bar),
                           runs * r[0]->passes * ROWS_OF_PASS, a)
                     ->table;
    for (int p = 0; p < r[0]->passes; p++)
        for (int i = 0; i < ROWS_OF_PASS; i++)
            for (int k = 0; k < runs; k++) {
                double rate = rate_at(r[k], p, i);
                BAR_COLUMNS(TABLE_CELL)
                table_next_row(&row);
            }
}

/* --- samples ---------------------------------------------------------------------------------- */

static void add_samples(const struct formula_run *const *r, int runs, struct sheet *s,
                        struct arena *a)
{
    static const struct table_column of_sample[] = {SAMPLE(TABLE_COLUMN)};
    struct table_row row = {.arena = a};
    int rows = 0;
    for (int k = 0; k < runs; k++)
        for (int p = 0; p < r[k]->passes; p++)
            for (int i = 0; i < ROWS_OF_PASS; i++) rows += contender_at(r[k], p, i)->taken;
    if (!rows) return;
    struct sheet_table *all = sheet_add(s, "samples", of_sample, COUNT_OF(of_sample), rows, a);
    all->drawn_only = true;
    row.table = &all->table;
    for (int k = 0; k < runs; k++)
        for (int p = 0; p < r[k]->passes; p++)
            for (int i = 0; i < ROWS_OF_PASS; i++) {
                const struct contender *c = contender_at(r[k], p, i);
                for (int n = 0; n < c->taken; n++) {
                    SAMPLE(TABLE_CELL)
                    table_next_row(&row);
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
    struct sheet_table *t = sheet_add(s, NULL, columns, COUNT_OF(columns), rows, a);
    for (int k = 0; k < runs; k++)
        for (int p = 0; p < r[k]->passes; p++)
            for (int i = 0; i < ROWS_OF_PASS; i++, row++)
                set_row((struct table_row){&t->table, row, 0, a}, r[k], p, i);
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

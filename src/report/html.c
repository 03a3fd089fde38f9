#include "report/html.h"

#include "base/json.h"
#include "base/own.h"
#include "base/record.h"
#include "base/str.h"
#include "present/page.h"

#include <math.h>

/* --- the data --------------------------------------------------------------------------------- */

static json_t *pairs(const struct run_pair *pair, int n)
{
    json_t *array = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(array, json_pack("[s, s]", pair[i].key, pair[i].value));
    return array;
}

static json_t *differences(const struct difference *list, int n, int runs)
{
    json_t *array = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(array, json_pack("{s:s, s:o}", "key", list[i].key, "values",
                                               texts_json(list[i].value, runs)));
    return array;
}

/* Seconds of training up to each step, the mean of the losses since the step kept before, and the
 * number of these losses: sums over all steps, also over those that thinning leaves out. */
static void add_sums(json_t *o, const struct run *r, const int *index, int kept)
{
    json_t *seconds = json_array(), *mean = json_array(), *of = json_array();
    double time = 0;
    for (int k = 0, i = 0; k < kept; k++) {
        double sum = 0;
        int n = 0;
        for (; i <= index[k]; i++) {
            const struct run_step *s = &r->step[i];
            /* It stands for the steps before it that were not logged. */
            if (isfinite(s->ms)) time += s->ms * 1e-3 * (double)(i ? s->iter - s[-1].iter : 1);
            if (!isfinite(s->loss)) continue;
            sum += s->loss;
            n++;
        }
        json_array_append_new(seconds, number_or_null(time));
        json_array_append_new(mean, number_or_null(sum / n));
        json_array_append_new(of, json_integer(n));
    }
    json_object_set_new(o, "seconds", seconds);
    if (kept < r->steps) json_object_set(o, "mean", mean);
    if (kept < r->steps) json_object_set(o, "of", of);
    json_decref(mean);
    json_decref(of);
}

/* The curves of a run. */
static const size_t step_columns[] = {offsetof(struct run_step, loss),
                                      offsetof(struct run_step, ms), offsetof(struct run_step, lr),
                                      offsetof(struct run_step, grad_norm)};

static double value_at(const struct run_step *s, int column)
{
    return *(const double *)((const char *)s + step_columns[column]);
}

/* Keeps the steps first to end - 1 with the lowest and the highest value and the first that is not
 * a number. */
static void keep_extremes(const struct run_step *s, int column, int first, int end, bool *kept)
{
    int low = -1, high = -1, none = -1;
    for (int i = first; i < end; i++) {
        double x = value_at(&s[i], column);
        if (!isfinite(x))
            none = none < 0 ? i : none;
        else {
            if (low < 0 || x < value_at(&s[low], column)) low = i;
            if (high < 0 || x > value_at(&s[high], column)) high = i;
        }
    }
    if (low >= 0) kept[low] = kept[high] = true;
    if (none >= 0) kept[none] = true;
}

/* Steps as they were logged; of each part of a long run the first, the last and the extremes. */
static json_t *steps_json(const struct run *r, struct arena *a)
{
    enum { OF_A_PART = 3 * COUNT_OF(step_columns) + 2 };
    int n = r->steps, *index = ARENA_NEW(a, int, n + 1), kept = 0;
    int part = n <= HTML_STEPS ? 1 : ceil_div(n, HTML_STEPS / OF_A_PART);
    bool *keep = ARENA_NEW(a, bool, n + 1);
    for (int first = 0; first < n; first += part) {
        int end = first + part < n ? first + part : n;
        keep[first] = keep[end - 1] = true;
        for (int c = 0; c < COUNT_OF(step_columns); c++)
            keep_extremes(r->step, c, first, end, keep);
    }
    for (int i = 0; i < n; i++)
        if (keep[i]) index[kept++] = i;
    struct run_step *step = ARENA_NEW(a, struct run_step, n + 1);
    for (int k = 0; k < kept; k++) step[k] = r->step[index[k]];
    json_t *o = record_columns(run_step_record, step, kept);
    static const char *const unused[] = {"tokens_per_s", "mfu", "plan_flops", "plan_bytes"};
    for (int i = 0; i < COUNT_OF(unused); i++) json_object_del(o, unused[i]);
    json_object_set_new(o, "logged", json_integer(n));
    add_sums(o, r, index, kept);
    return o;
}

/* {"seconds": [], "iter": [], "utilization": [] ...}: all readings. */
static json_t *gauges_json(const struct gauges *g)
{
    json_t *o = record_columns(gauge_reading_record, g->point, g->points), *seconds = json_array();
    for (int i = 0; i < g->points; i++)
        json_array_append_new(seconds, number_or_null(g->point[i].seconds));
    json_object_set_new(o, "seconds", seconds);
    json_object_set_new(o, "clock_max", number_or_null(g->points ? g->clock_max_mhz : NAN));
    json_object_set_new(o, "power_limit", number_or_null(g->points ? g->power_limit_w : NAN));
    return o;
}

static json_t *run_json(const struct run *r, const struct run *first, struct arena *a)
{
    return json_pack(
        "{s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o}",
        "incomparable", text_or_null(compare_why_not(first, r, a)), "name", r->name, "dir", r->dir,
        "settings", pairs(r->setting, r->settings), "environment",
        pairs(r->environment, r->environments), "steps", steps_json(r, a), "evals",
        record_columns(run_eval_record, r->eval, r->evals), "plan",
        record_json(facts_record, &r->plan), "samples", text_or_null(r->samples), "complete",
        r->figures.complete, "ms_median", number_or_null(r->figures.ms_median), "ms_std",
        number_or_null(r->figures.ms_std), "tokens_per_s", number_or_null(r->figures.tokens_per_s),
        "plan_bytes", number_or_null(r->figures.plan_bytes), "plan_flops",
        number_or_null(r->figures.plan_flops), "seconds", number_or_null(r->figures.seconds),
        "gauges", gauges_json(&r->gauges), "peak", number_or_null(r->figures.peak_measured));
}

/* A result as in its file, with the curves of its tables. */
static json_t *bench_json(const struct sheet *x, struct arena *a)
{
    json_t *j = sheet_json(x), *tables = json_object_get(j, "tables");
    json_object_set_new(j, "path", text_or_null(x->path));
    for (int i = 0; i < x->tables; i++) {
        struct markup curves = {0};
        if (x->table[i].chart.kind != SHEET_LINES) continue;
        sheet_print_curves(&x->table[i], &curves, a);
        json_object_set_new(json_array_get(tables, (size_t)i), "curves",
                            json_string(markup_text(&curves)));
        markup_release(&curves);
    }
    return j;
}

json_t *html_data(const struct html_page *p, struct arena *a)
{
    const struct comparison *c = p->runs;
    json_t *runs = json_array(), *benches = json_array();
    for (int r = 0; r < c->runs; r++)
        json_array_append_new(runs, run_json(&c->run[r], &c->run[0], a));
    for (int i = 0; i < p->sheets; i++) json_array_append_new(benches, bench_json(&p->sheet[i], a));
    json_t *data = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "runs", runs, "table",
                             sheet_table_json(&c->table), "settings",
                             differences(c->setting, c->settings, c->runs), "environment",
                             differences(c->environment, c->environments, c->runs), "verdict",
                             texts_json(c->verdict, c->verdicts), "notes",
                             texts_json(c->note, c->notes), "benches", benches);
    json_t *more = profile_page_json(p->profiles, a);
    json_object_update(data, more);
    json_decref(more);
    return data;
}

/* --- the page --------------------------------------------------------------------------------- */

/* Name of subject i; NULL for a profile of a run, which has the run's name. */
static const char *name_of(const struct html_page *p, int i)
{
    if (i < p->runs->runs) return p->runs->run[i].name;
    i -= p->runs->runs;
    if (i >= p->profiles->n) return p->sheet[i - p->profiles->n].name;
    return p->profiles->profile[i].run < 0 ? p->profiles->profile[i].name : NULL;
}

static void print_title(const struct html_page *p, struct str *s)
{
    int n = 0;
    for (int i = 0; i < p->runs->runs + p->profiles->n + p->sheets; i++) {
        const char *name = name_of(p, i);
        if (!name || n++ >= 4) continue;
        if (n > 1) str_append(s, ", ");
        str_append(s, name);
    }
    if (n > 4) str_printf(s, " and %d more", n - 4);
}

enum status html_write(const struct html_page *p, const char *path, struct arena *a)
{
    struct str title = {0};
    struct markup m = {0};
    json_t *data = html_data(p, a);
    print_title(p, &title);
    enum status st = page_print(str_text(&title), data, a, &m);
    if (st == ST_OK) st = own_write(path, OWN_PAGE, markup_text(&m), markup_bytes(&m));
    json_decref(data);
    str_release(&title);
    markup_release(&m);
    return st;
}

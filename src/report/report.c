#include "report/report.h"

#include "base/json.h"
#include "base/own.h"
#include "base/str.h"
#include "base/visible.h"
#include "present/markup.h"
#include "present/table_form.h"
#include "report/html.h"
#include "report/roofline.h"

#include <jansson.h>

enum { CHANGES_MOST = 15 };

static void find_changes(struct report *x, struct arena *a)
{
    struct profile_set *p = &x->of.profiles;
    p->change = ARENA_NEW(a, struct changes, p->n + 1);
    for (; p->changes + 1 < p->n; p->changes++)
        changes_find(&p->profile[0], &p->profile[p->changes + 1], a, &p->change[p->changes]);
}

/* --- whether runs and profiles agree ---------------------------------------------------------- */

static const double APART = 1.1;

/* A note if the step of a run takes another time in its profile, by a tenth or more. */
static void compare_times(struct comparison *runs, const struct profile_file *p, struct arena *a)
{
    const struct run *r = &runs->run[p->run];
    double clock = r->figures.ms_median, ratio = p->plain_step_ms.median / clock;
    if (!(ratio > APART || ratio < 1 / APART)) return;
    compare_note(
        runs,
        arena_printf(a,
                     "The clock of %s gives %.4g ms for a step, its profile %.4g ms (without "
                     "profiling, on random tokens): they disagree; the machine was probably busier "
                     "or slower during one of them.",
                     r->name, clock, p->plain_step_ms.median),
        a);
}

/* Their intervals have no speed in common. */
static bool disagree(const struct judgement *x, const struct judgement *y)
{
    if (x->how < JUDGED_APART || y->how < JUDGED_APART) return false;
    return x->verdict.low > y->verdict.high || y->verdict.low > x->verdict.high;
}

/* Notes where the clock of the runs and their profiles disagree. */
static void note_disagreement(struct comparison *runs, const struct profile_file *profile,
                              int profiles, const struct changes *change, struct arena *a)
{
    for (int i = 0; i < profiles; i++)
        if (profile[i].run >= 0) compare_times(runs, &profile[i], a);
    for (int i = 1; i < profiles; i++) {
        int run = profile[i].run;
        if (profile[0].run != 0 || run < 1) continue;
        const struct judgement *x = &runs->speed[run], *y = &change[i - 1].speed;
        if (!disagree(x, y)) continue;
        const char *first = runs->run[0].name;
        compare_note(
            runs,
            arena_printf(a,
                         "By the clock of the runs %s %s; by the profiles it %s. They disagree; "
                         "believe neither before both are measured in turns.",
                         runs->run[run].name, judge_words(x, first, a), judge_words(y, first, a)),
            a);
    }
}

/* --- printing --------------------------------------------------------------------------------- */

/* How tables and the lines below them are printed. */
struct style {
    void (*table)(const struct table *t, struct str *s);
    void (*text)(struct str *s, const char *sentence); /* has names of runs and kernels in it */
    const char *line, *next_line, *note, *next_note; /* prefixes of the first and the other lines */
};
static const struct style
    plain = {table_print_text, visible_append, "\n", "", "\nNote: ", "Note: "},
    markdown = {table_print_markdown, table_markdown_text, "\n", "\n", "\n> ", "\n> "};

static void print_line(const struct style *style, const char *before, const char *sentence,
                       struct str *s)
{
    str_append(s, before);
    style->text(s, sentence);
    str_append(s, "\n");
}

static void print_changes(const struct report *x, const struct style *style, struct arena *a,
                          struct str *s)
{
    for (int i = 0; i < x->of.profiles.changes; i++) {
        struct table t = changes_table(&x->of.profiles.change[i], CHANGES_MOST, a);
        print_line(style, i || x->runs.runs ? "\n" : "",
                   changes_words(&x->of.profiles.change[i], a), s);
        str_append(s, "\n");
        style->table(&t, s);
    }
}

static void print_profiles(const struct report *x, const struct style *style, struct arena *a,
                           struct str *s)
{
    const struct profile_set *p = &x->of.profiles;
    const char *before = x->runs.runs ? "\n" : "";
    for (int i = 0; i < p->n; i++, before = style->next_line)
        print_line(style, before, profile_file_words(&p->profile[i], a), s);
}

static void print_gate(const struct gate *g, const struct style *style, struct str *s)
{
    str_append(s, "\n");
    for (int i = 0; i < g->n; i++) {
        const struct gate_case *c = &g->one[i];
        str_printf(s, "%-12s %-14s ", gate_outcome_name(c->outcome), c->what);
        print_line(style, "", c->text, s);
    }
}

static void print_tables(const struct report *x, const struct style *style, struct arena *a,
                         struct str *s)
{
    const struct comparison *c = &x->runs;
    if (c->settings) {
        struct table differs = compare_settings_table(c, a);
        style->table(&differs, s);
        str_append(s, "\n");
    }
    if (c->runs) style->table(&c->table, s);
    for (int i = 0; i < c->verdicts; i++)
        print_line(style, i ? style->next_line : style->line, c->verdict[i], s);
    print_profiles(x, style, a, s);
    print_changes(x, style, a, s);
    for (int i = 0; i < x->of.sheets; i++) {
        if (s->len) str_append(s, "\n");
        sheet_print(&x->of.sheet[i], style->table, style->text, s);
    }
    for (int i = 0; i < c->notes; i++)
        print_line(style, i ? style->next_note : style->note, c->note[i], s);
    if (x->gate) print_gate(x->gate, style, s);
}

static json_t *changes_json(const struct report *x, struct arena *a)
{
    json_t *all = json_array();
    for (int i = 0; i < x->of.profiles.changes; i++) {
        const struct changes *c = &x->of.profiles.change[i];
        struct table t = changes_table(c, 0, a);
        json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:o}", "before", c->before->name,
                                             "after", c->after->name, "words", changes_words(c, a),
                                             "rows", table_json(&t)));
    }
    return all;
}

static json_t *profiles_json(const struct profile_set *set)
{
    json_t *all = json_array();
    for (int i = 0; i < set->n; i++) {
        const struct profile_file *p = &set->profile[i];
        json_t *families = json_object();
        double ms[PROFILE_FILE_FAMILIES] = {0};
        for (int k = 0; k < p->rows; k++) ms[p->row[k].family] += p->row[k].ms;
        for (int k = 0; k < PROFILE_FILE_FAMILIES; k++)
            if (ms[k] > 0)
                json_object_set_new(families, profile_file_family_name(k), number_or_null(ms[k]));
        json_array_append_new(all, json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "name", p->name,
                                             "path", p->path, "step_ms_mean",
                                             number_or_null(p->step_ms.mean), "step_ms_median",
                                             number_or_null(p->step_ms.median), "floor_ms",
                                             number_or_null(profile_file_floor(p)), "idle_ms",
                                             number_or_null(p->idle_ms), "families_ms", families));
    }
    return all;
}

static void print_json(const struct report *x, struct arena *a, struct str *s)
{
    const struct comparison *c = &x->runs;
    struct table differs = compare_settings_table(c, a);
    json_t *benches = json_array();
    for (int i = 0; i < x->of.sheets; i++)
        json_array_append_new(benches, sheet_json(&x->of.sheet[i]));
    json_t *object =
        json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "v", 1, "runs", table_json(&c->table),
                  "differs", table_json(&differs), "verdict", texts_json(c->verdict, c->verdicts),
                  "notes", texts_json(c->note, c->notes), "changes", changes_json(x, a), "profiles",
                  profiles_json(&x->of.profiles), "benches", benches);
    if (x->gate) json_object_set_new(object, "gate", gate_json(x->gate));
    json_print_with(object, JSON_INDENT(2) | JSON_REAL_PRECISION(10), s);
}

enum status report_write_svg(const struct report *x, const char *path)
{
    const struct profile_set *p = &x->of.profiles;
    struct markup m = {0};
    if (!p->n)
        return fail(ST_USAGE, "--svg needs a profile, and there is none: write one with `strobe "
                              "profile CONFIG --out_dir=RUN`");
    roofline_print_file(p->profile, p->n, &m);
    enum status st = own_write(path, OWN_PICTURE, markup_text(&m), markup_bytes(&m));
    markup_release(&m);
    return st;
}

static enum status print_csv(const struct report *x, struct str *s)
{
    if (!x->runs.runs && !x->of.sheets)
        return fail(ST_USAGE, "--csv needs a run or a result of `strobe bench`; for the rows of a "
                              "profile use `strobe profile CONFIG --csv`");
    if (x->runs.runs) table_print_csv(&x->runs.table, s);
    for (int i = 0; i < x->of.sheets; i++) {
        if (s->len) str_append(s, "\n");
        sheet_print(&x->of.sheet[i], table_print_csv, NULL, s);
    }
    return ST_OK;
}

/* Whatever is named after the baseline must have something in common with it. */
static enum status check_gate(const struct subjects *s)
{
    const struct profile_set *p = &s->profiles;
    for (int r = 0; r < s->runs && !s->first_run; r++) {
        bool has_profile = false;
        for (int i = 0; i < p->n; i++) has_profile |= p->profile[i].run == r;
        if (!has_profile)
            return fail(ST_USAGE,
                        "%s has no profile, and the baseline has no run: write one with `strobe "
                        "profile CONFIG --out_dir=RUN`, or name a run as the baseline",
                        s->run[r].name);
    }
    for (int i = 0; i < p->n && !s->first_profile; i++)
        if (p->profile[i].run < 0)
            return fail(ST_USAGE,
                        "%s is a profile, and the baseline has none: write one with `strobe "
                        "profile CONFIG --out_dir=RUN`, or name a profile as the baseline",
                        p->profile[i].name);
    return ST_OK;
}

enum status report_gate(struct report *x, struct arena *a)
{
    struct gate *g = ARENA_NEW(a, struct gate, 1);
    const struct comparison none = {0};
    TRY(check_gate(&x->of));
    *g = gate_of(x->of.first_run ? &x->runs : &none, x->of.profiles.change,
                 x->of.first_profile ? x->of.profiles.changes : 0, a);
    if (!g->n)
        return fail(ST_USAGE, "--baseline needs something to hold against it: name another run or "
                              "profile, strobe report --baseline=A B");
    x->gate = g;
    return ST_OK;
}

enum status report_write_junit(const struct report *x, const char *path)
{
    struct markup m = {0};
    gate_junit(x->gate, &m);
    enum status st = own_write(path, OWN_JUNIT, markup_text(&m), markup_bytes(&m));
    markup_release(&m);
    return st;
}

enum status report_write_page(const struct report *x, const char *path, struct arena *a)
{
    struct html_page page = {&x->runs, &x->of.profiles, x->of.sheet, x->of.sheets};
    return html_write(&page, path, a);
}

enum status report_read(struct report *ret, char *const *words, int n, struct arena *a)
{
    *ret = (struct report){0};
    TRY(subjects_read(words, n, a, &ret->of));
    compare_runs(ret->of.run, ret->of.runs, a, &ret->runs);
    find_changes(ret, a);
    note_disagreement(&ret->runs, ret->of.profiles.profile, ret->of.profiles.n,
                      ret->of.profiles.change, a);
    return ST_OK;
}

enum status report_print(const struct report *x, enum report_form form, struct str *s,
                         struct arena *a)
{
    if (form == REPORT_CSV) return print_csv(x, s);
    if (form == REPORT_JSON)
        print_json(x, a, s);
    else
        print_tables(x, form == REPORT_MARKDOWN ? &markdown : &plain, a, s);
    return ST_OK;
}

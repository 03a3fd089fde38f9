#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/str.h"
#include "cli/command.h"
#include "report/changes.h"
#include "report/compare.h"
#include "report/html.h"
#include "report/roofline.h"
#include "report/subjects.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHANGES_MOST = 15 };

struct options {
    const char *html, *csv, *svg;
    bool markdown, json;
};

struct shown {
    struct comparison runs;
    const struct profile_set *profiles;
    const struct sheet *sheet;
    int sheets;
    struct changes *change; /* of each profile behind the first */
    int changes;
};

static void find_changes(struct shown *x, struct arena *a)
{
    const struct profile_set *p = x->profiles;
    x->changes = p->n > 1 ? p->n - 1 : 0;
    x->change = ARENA_NEW(a, struct changes, x->changes + 1);
    for (int i = 0; i < x->changes; i++)
        changes_find(&p->profile[0], &p->profile[i + 1], a, &x->change[i]);
}

/* How a table and what stands below it are printed. */
struct style {
    void (*table)(const struct table *t, struct str *s);
    const char *line, *next_line, *note,
        *next_note; /* what stands before the first and the others */
};
static const struct style plain = {table_print_text, "\n", "", "\nNote: ", "Note: "},
                          markdown = {table_print_markdown, "\n", "\n", "\n> ", "\n> "};

static void print_changes(const struct shown *x, const struct style *style, struct arena *a,
                          struct str *s)
{
    for (int i = 0; i < x->changes; i++) {
        struct table t = changes_table(&x->change[i], CHANGES_MOST, a);
        str_printf(s, "%s%s\n\n", i || x->runs.runs ? "\n" : "", changes_words(&x->change[i], a));
        style->table(&t, s);
    }
}

static void print_profiles(const struct shown *x, const struct style *style, struct arena *a,
                           struct str *s)
{
    const struct profile_set *p = x->profiles;
    for (int i = 0; i < p->n; i++)
        str_printf(s, "%s%s\n",
                   i              ? style->next_line
                   : x->runs.runs ? "\n"
                                  : "",
                   profile_file_words(&p->profile[i], a));
}

static void print_tables(const struct shown *x, const struct style *style, struct arena *a,
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
        str_printf(s, "%s%s\n", i ? style->next_line : style->line, c->verdict[i]);
    print_profiles(x, style, a, s);
    print_changes(x, style, a, s);
    for (int i = 0; i < x->sheets; i++) {
        if (s->len) str_append(s, "\n");
        sheet_print(&x->sheet[i], style->table, true, s);
    }
    for (int i = 0; i < c->notes; i++)
        str_printf(s, "%s%s\n", i ? style->next_note : style->note, c->note[i]);
}

static json_t *texts_json(const char **text, int n)
{
    json_t *array = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(array, json_string(text[i]));
    return array;
}

static json_t *changes_json(const struct shown *x, struct arena *a)
{
    json_t *all = json_array();
    for (int i = 0; i < x->changes; i++) {
        const struct changes *c = &x->change[i];
        struct table t = changes_table(c, 0, a);
        json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:o}", "before", c->before->name,
                                             "after", c->after->name, "words", changes_words(c, a),
                                             "rows", table_json(&t)));
    }
    return all;
}

static json_t *json_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
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
                json_object_set_new(families, profile_file_family_name(k), json_real(ms[k]));
        json_array_append_new(
            all, json_pack("{s:s, s:s, s:o, s:o, s:f, s:f, s:o}", "name", p->name, "path", p->path,
                           "step_ms_mean", json_number(p->step_ms.mean), "step_ms_median",
                           json_number(p->step_ms.median), "floor_ms", profile_file_floor(p),
                           "idle_ms", p->idle_ms, "families_ms", families));
    }
    return all;
}

static json_t *benches_json(const struct shown *x)
{
    json_t *all = json_array();
    for (int i = 0; i < x->sheets; i++) json_array_append_new(all, sheet_json(&x->sheet[i]));
    return all;
}

static void print_json(const struct shown *x, struct arena *a, struct str *s)
{
    const struct comparison *c = &x->runs;
    struct table differs = compare_settings_table(c, a);
    json_t *object =
        json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "v", 1, "runs", table_json(&c->table),
                  "differs", table_json(&differs), "verdict", texts_json(c->verdict, c->verdicts),
                  "notes", texts_json(c->note, c->notes), "changes", changes_json(x, a), "profiles",
                  profiles_json(x->profiles), "benches", benches_json(x));
    char *printed = json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
    BUG_IF(!printed, "the report is not JSON");
    str_printf(s, "%s\n", printed);
    free(printed);
    json_decref(object);
}

/* The roofline of each profile, in one picture. */
static enum status write_svg(const struct profile_set *p, const char *path)
{
    struct str s = {0};
    if (!p->n)
        return fail(ST_USAGE, "--svg draws profiles, and none of these has one: `strobe profile "
                              "CONFIG --out_dir=RUN` writes it");
    roofline_print_file(p->profile, p->n, &s);
    enum status st = file_write(path, str_text(&s), s.len);
    str_release(&s);
    return st;
}

/* The tables as CSV, an empty line between two: of runs, of results of `strobe bench`. */
static enum status write_csv(const struct shown *x, const char *path, struct str *s)
{
    if (!x->runs.runs && !x->sheets)
        return fail(ST_USAGE, "--csv is of runs and of results of `strobe bench`; none of these is "
                              "one: `strobe profile CONFIG --csv` has a profile's rows");
    if (x->runs.runs) table_print_csv(&x->runs.table, s);
    for (int i = 0; i < x->sheets; i++) {
        if (s->len) str_append(s, "\n");
        sheet_print(&x->sheet[i], table_print_csv, false, s);
    }
    enum status st = file_write(path, str_text(s), s->len);
    str_clear(s);
    return st;
}

static enum status report(char *const *words, int n, const struct options *o, struct arena *a,
                          struct str *s)
{
    struct subjects subjects;
    TRY(subjects_read(words, n, a, &subjects));
    struct shown shown = {
        .profiles = &subjects.profiles, .sheet = subjects.sheet, .sheets = subjects.sheets};
    compare_runs(subjects.run, subjects.runs, a, &shown.runs);
    find_changes(&shown, a);

    if (o->csv) TRY(write_csv(&shown, o->csv, s));
    if (o->json)
        print_json(&shown, a, s);
    else
        print_tables(&shown, o->markdown ? &markdown : &plain, a, s);
    fputs(str_text(s), stdout);
    fflush(stdout);

    const char *path = o->html ? o->html : subjects_page_path(&subjects, a);
    if (o->svg) TRY(write_svg(&subjects.profiles, o->svg));
    struct html_page page = {&shown.runs, &subjects.profiles, subjects.sheet, subjects.sheets};
    TRY(html_write(&page, path, a));
    if (o->csv) log_info("table: %s", o->csv);
    if (o->svg) log_info("roofline: %s", o->svg);
    log_info("page: %s (open it in a browser)", path);
    return ST_OK;
}

enum status cmd_report(int argc, char **argv)
{
    struct options o = {0};
    const struct opt table[] = {
        {"html", OPT_TEXT, &o.html, "FILE",
         "write the page here; else RUN/report.html, or beside several runs"},
        {"csv", OPT_TEXT, &o.csv, "FILE", "write the tables here as CSV too"},
        {"svg", OPT_TEXT, &o.svg, "FILE", "write the roofline of the profiles here"},
        {"markdown", OPT_FLAG, &o.markdown, NULL, "print the table as Markdown"},
        {"json", OPT_FLAG, &o.json, NULL, "print the table as JSON"},
        {0},
    };
    TRY(opt_parse(table, &argc, argv, NULL));
    if (argc == 0)
        return fail(ST_USAGE,
                    "name one or more run directories, profiles or results: strobe report "
                    "runs/NAME ...");
    if (o.json && o.markdown)
        return fail(ST_USAGE, "--json and --markdown exclude each other: leave one out");
    struct arena a = {0};
    struct str s = {0};
    enum status st = report(argv, argc, &o, &a, &s);
    str_release(&s);
    arena_release(&a);
    return st;
}

/* strobe report RUN...: tables, verdicts and a page about runs, profiles and benchmark results. */
#include "cli/command.h"
#include "present/table_form.h"
#include "report/report.h"

#include <stdio.h>

struct options {
    const char *html, *svg, *baseline, *junit;
    struct table_form form;
};

static enum status print(const struct report *r, const struct options *o, struct arena *a)
{
    const struct table_form *f = &o->form;
    struct str s = {0};
    enum status st = report_print(r,
                                  f->json       ? REPORT_JSON
                                  : f->csv      ? REPORT_CSV
                                  : f->markdown ? REPORT_MARKDOWN
                                                : REPORT_TEXT,
                                  &s, a);
    command_print(&s);
    fflush(stdout);
    return st;
}

/* The exit code of a gate: "cannot tell" is not a failure, but is said. */
static enum status conclude(const struct gate *g)
{
    if (g->outcome == GATE_UNCERTAIN)
        log_warning("the rule cannot tell whether there is a regression: measure in turns (`strobe "
                    "compare`), longer, or on a quiet machine");
    if (g->outcome != GATE_REGRESSION) return ST_OK;
    for (int i = 0; i < g->n; i++)
        if (g->one[i].outcome == GATE_REGRESSION)
            return fail(ST_REGRESSION, "regression: %s", g->one[i].text);
    return ST_OK;
}

static enum status run(char *const *words, int n, const struct options *o, struct arena *a)
{
    struct report r;
    TRY(report_read(&r, words, n, a));
    if (o->baseline) TRY(report_gate(&r, a));
    const char *page = o->html ? o->html : subjects_page_path(&r.of, a);
    TRY(print(&r, o, a));
    if (o->svg) TRY(report_write_svg(&r, o->svg));
    if (o->junit) TRY(report_write_junit(&r, o->junit));
    TRY(report_write_page(&r, page, a));
    if (o->svg) log_info("roofline: %s", o->svg);
    if (o->junit) log_info("JUnit: %s", o->junit);
    log_info("page: %s (open it in a browser)", page);
    return o->baseline ? conclude(r.gate) : ST_OK;
}

enum status cmd_report(int argc, char **argv, struct arena *a)
{
    struct options o = {0};
    const struct opt table[] = {
        {"html", OPT_TEXT, &o.html, "FILE",
         "path of the page (default: RUN/report.html; of several runs, in the folder above them)"},
        {"svg", OPT_TEXT, &o.svg, "FILE", "also write the roofline of the profiles as a picture"},
        {"baseline", OPT_TEXT, &o.baseline, "RUN",
         "hold the others against this run or profile: exit code 3 if one is slower or larger"},
        {"junit", OPT_TEXT, &o.junit, "FILE", "with --baseline: write the result as JUnit XML"},
        TABLE_FORM_OPTIONS(&o.form),
        {0},
    };
    TRY(opt_parse(table, &argc, argv, NULL));
    if (argc == 0)
        return fail(ST_USAGE,
                    "nothing to report; name one or more run directories, profiles or benchmark "
                    "results: strobe report runs/NAME ...");
    TRY(table_form_check(&o.form));
    if (o.junit && !o.baseline)
        return fail(ST_USAGE, "--junit needs --baseline=RUN, which the others are held against");
    char **words = ARENA_NEW(a, char *, argc + 1);
    int n = 0;
    if (o.baseline) words[n++] = arena_strdup(a, o.baseline);
    for (int i = 0; i < argc; i++) words[n++] = argv[i];
    return run(words, n, &o, a);
}

/* strobe report RUN...: tables, verdicts and a page about runs, profiles and benchmark results. */
#include "base/log.h"
#include "base/opt.h"
#include "base/str.h"
#include "cli/command.h"
#include "present/table_form.h"
#include "report/report.h"

#include <stdio.h>

struct options {
    const char *html, *svg;
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

static enum status run(char *const *words, int n, const struct options *o, struct arena *a)
{
    struct report r;
    TRY(report_read(&r, words, n, a));
    const char *page = o->html ? o->html : subjects_page_path(&r.of, a);
    TRY(print(&r, o, a));
    if (o->svg) TRY(report_write_svg(&r, o->svg));
    TRY(report_write_page(&r, page, a));
    if (o->svg) log_info("roofline: %s", o->svg);
    log_info("page: %s (open it in a browser)", page);
    return ST_OK;
}

enum status cmd_report(int argc, char **argv)
{
    struct options o = {0};
    const struct opt table[] = {
        {"html", OPT_TEXT, &o.html, "FILE",
         "path of the page (RUN/report.html; of several runs, in the folder above them)"},
        {"svg", OPT_TEXT, &o.svg, "FILE", "also write the roofline of the profiles as a picture"},
        TABLE_FORM_OPTIONS(&o.form),
        {0},
    };
    TRY(opt_parse(table, &argc, argv, NULL));
    if (argc == 0)
        return fail(ST_USAGE,
                    "nothing to report; name one or more run directories, profiles or benchmark "
                    "results: strobe report runs/NAME ...");
    TRY(table_form_check(&o.form));
    struct arena a = {0};
    enum status st = run(argv, argc, &o, &a);
    arena_release(&a);
    return st;
}

/* report.h - the tables, verdicts, CSV, picture and page of `strobe report`. */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "report/compare.h"
#include "report/gate.h"
#include "report/subjects.h"

struct str;

struct report {
    struct subjects of;
    struct comparison runs;
    const struct gate *gate; /* NULL: the report is no gate */
};

enum report_form { REPORT_TEXT, REPORT_MARKDOWN, REPORT_CSV, REPORT_JSON };

/* Reads the runs, profiles and results that the words name. */
enum status report_read(struct report *ret, char *const *words, int n, struct arena *a);
/* Holds all against the first. ST_USAGE if there is nothing to compare. */
enum status report_gate(struct report *x, struct arena *a);
/* Writes the gate as JUnit XML. */
enum status report_write_junit(const struct report *x, const char *path);
/* REPORT_CSV: the tables of runs and of results of `strobe bench`, separated by empty lines;
 * ST_USAGE if there are none. The other forms do not fail. */
enum status report_print(const struct report *x, enum report_form form, struct str *s,
                         struct arena *a);
/* Writes the roofline of each profile, in one picture. */
enum status report_write_svg(const struct report *x, const char *path);
enum status report_write_page(const struct report *x, const char *path, struct arena *a);

#endif

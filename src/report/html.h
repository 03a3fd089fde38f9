/* html.h - one self-contained page about runs: it opens offline and asks nothing of any server.
 *
 * The page is a frame (web/page.html) with the style, the scripts, the chart library and one JSON
 * object in it; web/page.js builds everything that is seen from that object. */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include "present/sheet.h"
#include "report/compare.h"
#include "report/profile_page.h"

struct str;

/* There may be runs, profiles, results of `strobe bench`, or some of each. */
struct html_page {
    const struct comparison *runs;
    const struct profile_set *profiles;
    const struct sheet *sheet;
    int sheets;
};

/* Writes the page to `path`. */
enum status html_write(const struct html_page *p, const char *path, struct arena *a);
/* The object that the page is made from: JSON that may stand inside a <script> element. */
void html_print_data(const struct html_page *p, struct arena *a, struct str *s);

#endif

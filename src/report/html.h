/* html.h - one self-contained page about runs, which opens offline and sends no requests.
 *
 * The page is a frame (web/page.html) with the style, the scripts, the chart library and one JSON
 * object in it; web/page.js builds everything visible from that object. */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include "present/sheet.h"
#include "report/compare.h"
#include "report/profile_page.h"

struct str;

/* Runs, profiles and results of `strobe bench`; any of them may be absent. */
struct html_page {
    const struct comparison *runs;
    const struct profile_set *profiles;
    const struct sheet *sheet;
    int sheets;
};

/* Writes the page to `path`. */
enum status html_write(const struct html_page *p, const char *path, struct arena *a);
/* Appends the object that the page is made from, as JSON that is safe inside a <script> element. */
void html_print_data(const struct html_page *p, struct arena *a, struct str *s);

#endif

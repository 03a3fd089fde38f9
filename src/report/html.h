/* html.h - one self-contained page about runs, which opens offline and sends no requests.
 *
 * The page is a frame (present/page.h) with the style, the scripts, the chart library and one JSON
 * object in it; web/page.js builds everything visible from that object. */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include "present/sheet.h"
#include "report/compare.h"
#include "report/profile_page.h"

struct json_t;

/* Runs, profiles and results of `strobe bench`; any of them may be absent. */
struct html_page {
    const struct comparison *runs;
    const struct profile_set *profiles;
    const struct sheet *sheet;
    int sheets;
};

/* The most steps of a curve: more than a screen can show only make the page slow. */
enum { HTML_STEPS = 12000 };

/* Writes the page to `path`. */
enum status html_write(const struct html_page *p, const char *path, struct arena *a);
/* The object that the page is made from; the caller releases it with json_decref. */
struct json_t *html_data(const struct html_page *p, struct arena *a);

#endif

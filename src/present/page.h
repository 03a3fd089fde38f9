/* page.h - the HTML page as one file with its styles, its scripts and the chart library.
 *
 * Its content security policy names the page's own scripts and styles by their hashes and forbids
 * everything else: other scripts, styles and event handlers in the markup, every request. */
#ifndef PRESENT_PAGE_H
#define PRESENT_PAGE_H

#include "present/markup.h"

/* `data`: the object that web/page.js reads. ST_UNSUPPORTED: the chart library is missing. */
enum status page_print(const char *title, const struct json_t *data, struct arena *a,
                       struct markup *m);

#endif

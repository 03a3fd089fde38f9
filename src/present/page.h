/* page.h - writes the HTML page as one file with its styles, its scripts and the chart library.
 *
 * The content security policy allows only the page's own scripts and styles, by their hashes. It
 * forbids other scripts and styles, event handlers in the markup, and all requests. */
#ifndef PRESENT_PAGE_H
#define PRESENT_PAGE_H

#include "present/markup.h"

/* `data`: the object that web/page.js reads. ST_UNSUPPORTED: the chart library is missing. */
enum status page_print(const char *title, const struct json_t *data, struct arena *a,
                       struct markup *m);

#endif

/* page.h - the HTML page as one file: web/page.html with styles, scripts and the chart library. */
#ifndef PRESENT_PAGE_H
#define PRESENT_PAGE_H

#include "base/arena.h"

struct json_t;
struct str;

/* Appends JSON that is safe inside a <script> element. */
void page_print_data(const struct json_t *data, struct str *s);
/* `title`: escaped text; `data`: as page_print_data prints it. */
enum status page_print(const char *title, const char *data, struct arena *a, struct str *s);

#endif

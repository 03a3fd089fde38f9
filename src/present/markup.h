/* markup.h - writes HTML and SVG; all text is escaped.
 *
 * Only markup.c appends to a struct markup. No function takes raw bytes, and a struct markup is not
 * a struct str, so unescaped text does not compile. Tags come only from literals in the source and
 * from the files of web/.
 *
 * & < > " and ' are escaped. Characters that XML forbids or that are invisible (control characters,
 * bytes that are not UTF-8, overrides of direction) are shown as in visible.h, because browsers do
 * not draw an SVG with such a byte. The owner calls markup_release. */
#ifndef PRESENT_MARKUP_H
#define PRESENT_MARKUP_H

#include "base/str.h"

struct arena;
struct json_t;

struct markup {
    struct str written; /* private to markup.c */
};

/* The format must be a literal. It may have %s, which is escaped, %d, %lld, %%, and %f, %e and %g
 * with a precision. A number that is not finite becomes 0, since it would be an invalid
 * coordinate. */
#define markup_printf(m, ...) markup_format(m, "" __VA_ARGS__)
void markup_format(struct markup *m, const char *format, ...) PRINTF_LIKE(2, 3);
/* Appends text, escaped, for `<pre>` or a tooltip: line breaks and tabs are kept. */
void markup_lines(struct markup *m, const char *text);
/* Appends JSON for a <script> element; < > & and characters that are not ASCII are \u escapes. */
void markup_json(struct markup *m, const struct json_t *data);
/* Appends a file of web/ or of the chart library (assets.h). */
enum status markup_asset(struct markup *m, const char *name, struct arena *a);
/* Appends other markup. */
void markup_join(struct markup *m, const struct markup *part);

const char *markup_text(const struct markup *m);
int64_t markup_bytes(const struct markup *m);
void markup_release(struct markup *m);

#endif

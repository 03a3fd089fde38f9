/* markup.h - HTML and SVG while they are written. Text gets in only escaped.
 *
 * Only markup.c appends to a struct markup: there is no function that takes raw bytes, and no
 * struct markup is a struct str, so a text that somebody forgot to escape does not compile. Markup
 * itself is written as literals of this program's source and as the files of web/.
 *
 * Escaped are & < > " and '. What XML forbids or a reader would not see (control characters, bytes
 * that are not UTF-8, overrides of direction) is shown as visible.h does, because an SVG with such
 * a byte is not drawn at all. The owner calls markup_release. */
#ifndef PRESENT_MARKUP_H
#define PRESENT_MARKUP_H

#include "base/str.h"

struct arena;
struct json_t;

struct markup {
    struct str written; /* private to markup.c */
};

/* The format must be a literal. It may have %s, which is escaped, %d, %lld, %%, and %f, %e and %g
 * with a precision; a number that is not finite becomes 0, as no coordinate may be one. */
#define markup_printf(m, ...) markup_format(m, "" __VA_ARGS__)
void markup_format(struct markup *m, const char *format, ...) PRINTF_LIKE(2, 3);
/* Text as `<pre>` or a tooltip shows it: line breaks and tabs stay. */
void markup_lines(struct markup *m, const char *text);
/* JSON for a <script> element of data: < > & and all that is not ASCII are \u escapes. */
void markup_json(struct markup *m, const struct json_t *data);
/* A file of web/ or of the chart library, as assets.h finds it. */
enum status markup_asset(struct markup *m, const char *name, struct arena *a);
/* Other markup. */
void markup_join(struct markup *m, const struct markup *part);

const char *markup_text(const struct markup *m);
int64_t markup_bytes(const struct markup *m);
void markup_release(struct markup *m);

#endif

/* svg.h - the elements of an SVG picture, and the frame around them.
 *
 * A picture that is a file brings its colours along: no script, font or file beside it, and it follows the reader's
 * choice of a light or a dark page. A picture inside of a page takes the colours of the page. All colours are in
 * web/colors.css, all other styles of pictures in web/chart.css. */
#ifndef PRESENT_SVG_H
#define PRESENT_SVG_H

#include "base/base.h"

struct str;

/* `top` is the y coordinate of the upper edge. `title`: of a file; NULL: the picture is part of a page. */
void svg_open(struct str *s, int top, int width, int height, const char *title);
void svg_close(struct str *s);
/* Text that stays text. */
void svg_escape(struct str *s, const char *text);
/* `classes`: "", "chart-soft", "chart-head", ...; `anchor`: "start", "middle" or "end". */
void svg_text(struct str *s, const char *classes, double x, double y, const char *anchor,
              const char *text);

#endif

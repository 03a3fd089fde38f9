/* svg.h - the elements of an SVG picture, and the frame around them.
 *
 * A picture in a file contains its colors, needs no script, font or other file, and follows the
 * reader's choice of light or dark. A picture inside a page uses the colors of the page. All
 * colors are in web/colors.css, all other styles of pictures in web/chart.css. */
#ifndef PRESENT_SVG_H
#define PRESENT_SVG_H

struct str;

/* `top`: y of the upper edge. `title`: of a file; NULL: the picture is part of a page. */
void svg_open(struct str *s, int top, int width, int height, const char *title);
void svg_close(struct str *s);
/* Appends text with markup characters escaped. */
void svg_escape(struct str *s, const char *text);
/* `classes`: "", "chart-soft", "chart-head", ...; `anchor`: "start", "middle" or "end". */
void svg_text(struct str *s, const char *classes, double x, double y, const char *anchor,
              const char *text);

#endif

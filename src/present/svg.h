/* svg.h - writes the elements of an SVG picture, and the frame around them.
 *
 * A picture is a complete file, which a page shows as an image. It contains its colors, needs no
 * script, font or other file, and follows the reader's choice of light or dark. All colors are in
 * web/colors.css, all other styles of pictures in web/chart.css. */
#ifndef PRESENT_SVG_H
#define PRESENT_SVG_H

#include "present/markup.h"

/* `top`: y of the upper edge. */
void svg_open(struct markup *m, int top, int width, int height, const char *title);
void svg_close(struct markup *m);
/* `classes`: "", "chart-soft", "chart-head", ...; `anchor`: "start", "middle" or "end". */
void svg_text(struct markup *m, const char *classes, double x, double y, const char *anchor,
              const char *text);

#endif

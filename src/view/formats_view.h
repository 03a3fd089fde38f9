/* formats_view.h - the number formats, and a number rounded to each (lab/number_format.h). */
#ifndef VIEW_FORMATS_VIEW_H
#define VIEW_FORMATS_VIEW_H

#include "present/sheet.h"

struct markup;

/* `word`: the text in which the user gave x. */
void formats_sheet(double x, const char *word, struct sheet *s, struct arena *a);
/* The bits of x in each format as one SVG. */
void formats_print_svg(double x, const char *word, struct markup *m, struct arena *a);
/* All digits of a double, "0.01000213623046875"; if they are many, "16777215 x 2^104". */
const char *exact_text(double x, struct arena *a);

#endif

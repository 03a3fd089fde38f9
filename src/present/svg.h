/* svg.h - what pictures share: one SVG without script, font or file beside it, which follows the reader's choice of a light
 * or a dark page (prefers-color-scheme). */
#ifndef PRESENT_SVG_H
#define PRESENT_SVG_H

#include "base/base.h"

struct str;

enum { SVG_COLORS = 12 }; /* var(--c0) ... var(--c11) */

/* Up to the first thing drawn: the head, the style (`more` in it), the page, and the title above it at `left`. */
void svg_open(struct str *s, int width, int height, int left, const char *title, const char *more);
void svg_close(struct str *s);
/* Text that stays text. */
void svg_escape(struct str *s, const char *text);
/* `classes`: names of classes, "", "head", "faint"; `anchor`: "start", "middle" or "end". */
void svg_text(struct str *s, const char *classes, double x, double y, const char *anchor,
              const char *text);

#endif

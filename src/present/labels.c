#include "present/labels.h"

#include "present/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* CSS pixels. LETTER: mean width of a letter; HALF: half of a label's height. */
static const double LETTER = 5.7, HALF = 7;

static bool meet(const struct label_box *a, const struct label_box *b)
{
    return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

void labels_keep_off(struct labels *l, double x0, double y0, double x1, double y1)
{
    if (l->lines < LABEL_LINES) l->line[l->lines++] = (struct label_line){x0, y0, x1, y1};
}

/* Narrows the part *from ... *to of a line (0: its start, 1: its end) to where one coordinate,
 * which goes from `start` to `end`, is between `low` and `high`. */
static void clip(double start, double end, double low, double high, double *from, double *to)
{
    double d = end - start;
    if (d == 0) {
        if (start < low || start > high) *from = 1, *to = 0;
        return;
    }
    double a = (low - start) / d, b = (high - start) / d;
    *from = fmax(*from, fmin(a, b));
    *to = fmin(*to, fmax(a, b));
}

static bool crosses(const struct label_line *x, const struct label_box *b)
{
    enum { GAP = 2 };
    double from = 0, to = 1;
    clip(x->x0, x->x1, b->left - GAP, b->right + GAP, &from, &to);
    clip(x->y0, x->y1, b->top - GAP, b->bottom + GAP, &from, &to);
    return from <= to;
}

static bool is_free(const struct labels *l, const struct label_box *b)
{
    const struct label_box *in = &l->inside;
    if (b->left < in->left || b->right > in->right || b->top < in->top || b->bottom > in->bottom)
        return false;
    for (int i = 0; i < l->n; i++)
        if (meet(&l->label[i], b)) return false;
    for (int i = 0; i < l->points; i++)
        if (meet(&l->point[i], b)) return false;
    for (int i = 0; i < l->lines; i++)
        if (crosses(&l->line[i], b)) return false;
    return true;
}

static bool is_free_leader(const struct labels *l, const struct label_line *x)
{
    for (int i = 0; i < l->n; i++)
        if (crosses(x, &l->label[i])) return false;
    return true;
}

/* Positions that are tried: right, left, above, below; then farther away, with a line to the point
 * (leader). */
static const struct {
    int side, lines;
} places[] = {{1, 0},   {-1, 0}, {0, -1}, {0, 1},  {1, -2},  {-1, -2}, {1, 2},  {-1, 2}, {1, -3},
              {-1, -3}, {1, 3},  {-1, 3}, {1, -5}, {-1, -5}, {1, 5},   {-1, 5}, {-1, 7}, {-1, 9}};

void labels_print(struct labels *l, int i, const char *text, struct markup *m)
{
    const struct label_box *p = &l->point[i];
    double width = LETTER * (double)strlen(text), r = (p->right - p->left) / 2;
    double x = p->left + r, y = p->top + r;
    for (int k = 0; k < COUNT_OF(places) && l->n < LABELS_MOST; k++) {
        int side = places[k].side, lines = places[k].lines;
        bool far = abs(lines) > 1;
        double cy = y + (lines ? (lines > 0 ? r + 4 + HALF : -r - 4 - HALF) : 0);
        if (far) cy += 1.2 * HALF * lines;
        double gap = far ? 16 : r + 5;
        double left = side > 0 ? x + gap : side < 0 ? x - gap - width : x - width / 2;
        struct label_box b = {left - 3, cy - HALF, left + width + 3, cy + HALF};
        double to = side < 0 ? b.right : b.left, away = hypot(to - x, cy - y);
        struct label_line leader = {x, y, to, cy};
        if (!is_free(l, &b) || (far && !is_free_leader(l, &leader))) continue;
        l->label[l->n++] = b;
        if (far) labels_keep_off(l, x, y, to, cy);
        if (far)
            markup_printf(m, "<path class=\"chart-leader\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n",
                          x + r * (to - x) / away, y + r * (cy - y) / away, to, cy);
        svg_text(m, "chart-label", side < 0 ? left + width : left, cy + 4,
                 side < 0 ? "end" : "start", text);
        return;
    }
}

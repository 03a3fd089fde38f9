#include "present/labels.h"

#include "present/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Lengths in CSS pixels; LETTER is the mean width. */
static const double LETTER = 5.7, HALF = 7;

static bool meet(const struct label_box *a, const struct label_box *b)
{
    return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

void labels_keep_off(struct labels *l, double y)
{
    if (l->lines < LABEL_LINES) l->line[l->lines++] = y;
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
        if (b->top < l->line[i] + 2 && b->bottom > l->line[i] - 2) return false;
    return true;
}

/* Positions to try: right, left, above, below; then farther up and down, with a leader. */
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
        if (!is_free(l, &b)) continue;
        l->label[l->n++] = b;
        double to = side < 0 ? b.right : b.left, away = hypot(to - x, cy - y);
        if (far)
            markup_printf(m, "<path class=\"chart-leader\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n",
                          x + r * (to - x) / away, y + r * (cy - y) / away, to, cy);
        svg_text(m, "chart-label", side < 0 ? left + width : left, cy + 4,
                 side < 0 ? "end" : "start", text);
        return;
    }
}

#include "report/roofline.h"

#include "base/heap.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"
#include "base/visible.h"
#include "present/chart.h"
#include "present/labels.h"
#include "present/svg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lengths in CSS pixels. HEIGHT: of a profile with title, legend and note; TITLE: only in a file,
 * because the page has headings; LEGEND: from the frame to the legend. */
enum { WIDTH = 1000, HEIGHT = 622, LEFT = 78, RIGHT = 126, TITLE = 16, TOP = 44, BOTTOM = 134 };
enum { LEGEND = 50, NAME_HEIGHT = 14 };
static const double RADIUS_MOST = 23, RADIUS_LEAST = 2.5;
static const double LABEL_SHARE = 0.015, SHARE_LEAST = 0.0003; /* shares of the step time */

/* The picture of one profile. */
struct panel {
    struct chart chart;
    double ms_most; /* roofline_frame */
};

/* --- points ----------------------------------------------------------------------------------- */

static bool is_point(const struct profile_file_kernel *k)
{
    return k->flops > 0 && k->bytes > 0 && k->work_ms > 0;
}

static double intensity(const struct profile_file_kernel *k)
{
    return k->flops / k->bytes;
}

static double rate(const struct profile_file_kernel *k)
{
    return 1e3 * k->flops / k->work_ms;
}

bool roofline_has_points(const struct profile_file *p)
{
    for (int i = 0; i < p->kernels; i++)
        if (is_point(&p->kernel[i])) return true;
    return false;
}

static double peak_most(const struct profile_file_peak *peak, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++) most = fmax(most, peak[i].rate);
    return most;
}

/* Kernels with almost no time do not widen the frame. */
struct roofline_frame roofline_frame_of(const struct profile_file *profile, int n)
{
    double x_low = INFINITY, x_high = 0, y_low = INFINITY, y_high = 0, ms = 0;
    for (int i = 0; i < n; i++) {
        const struct profile_file *p = &profile[i];
        double least = SHARE_LEAST * profile_file_ms(p);
        for (int k = 0; k < p->kernels; k++) {
            const struct profile_file_kernel *x = &p->kernel[k];
            if (!is_point(x) || x->ms < least) continue;
            x_low = fmin(x_low, intensity(x)), x_high = fmax(x_high, intensity(x));
            y_low = fmin(y_low, rate(x)), y_high = fmax(y_high, rate(x));
            ms = fmax(ms, x->ms);
        }
        double top = peak_most(p->product, p->products);
        y_high = fmax(y_high, top);
        if (top > 0 && p->copies) x_high = fmax(x_high, 1.5 * top / p->copy[0].rate);
    }
    if (!(ms > 0)) return (struct roofline_frame){.01, 100, 1e9, 1e12, 1};
    x_low = pow(10, floor(log10(x_low)));
    y_low = pow(10, floor(log10(y_low)));
    /* The height leaves space for names. */
    return (struct roofline_frame){x_low, 1.6 * x_high, y_low, 6 * y_high, ms};
}

/* --- ceilings --------------------------------------------------------------------------------- */

static bool is_used(const struct profile_file *p, const char *peak)
{
    for (int i = 0; i < p->rows; i++)
        if (p->row[i].peak_of && p->row[i].flops > 0 && strcmp(p->row[i].peak_of, peak) == 0)
            return true;
    return false;
}

/* The bandwidth of a copy: the line y = rate * x, up to the highest peak of matmuls. False: it is
 * not in the frame. */
static bool place_copy(const struct chart *c, const struct profile_file_peak *copy, double top,
                       double end[4])
{
    const struct chart_axis *x = &c->x, *y = &c->y;
    double x0 = fmax(x->low, y->low / copy->rate);
    double x1 = fmin(x->high, (top > 0 ? top : y->high) / copy->rate);
    if (!(x1 > x0)) return false;
    end[0] = chart_place(x, x0), end[1] = chart_place(y, x0 * copy->rate);
    end[2] = chart_place(x, x1), end[3] = chart_place(y, x1 * copy->rate);
    return true;
}

/* Its name is above its beginning, along it. */
static void print_copy(struct markup *m, const struct chart *c,
                       const struct profile_file_peak *copy, double top)
{
    char text[32];
    double end[4];
    if (!place_copy(c, copy, top, end)) return;
    double across = end[2] - end[0], up = end[3] - end[1], length = hypot(across, up);
    markup_printf(m, "<path class=\"chart-ceiling\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", end[0], end[1],
                  end[2], end[3]);
    markup_printf(
        m,
        "<text class=\"chart-name\" transform=\"translate(%.1f %.1f) rotate(%.2f)\" y=\"-6\">"
        "%s %s</text>\n",
        end[0] + 14 * across / length, end[1] + 14 * up / length,
        atan2(up, across) * 180 / acos(-1), copy->name,
        chart_value_text(text, CHART_BANDWIDTH, copy->rate));
}

/* The matmul peak of a type, named in the margin. *free: bottom of the names so far. */
static void print_matmul(struct markup *m, const struct chart *c, const struct profile_file *p,
                         const struct profile_file_peak *product, double *free)
{
    char text[32], line[64];
    double fastest = peak_most(p->copy, p->copies), left = c->x.low;
    double from = fmax(fastest > 0 ? product->rate / fastest : left, left);
    bool used = is_used(p, product->name);
    double y = chart_place(&c->y, product->rate), at = fmax(y + 4, *free + NAME_HEIGHT);
    if (from >= c->x.high || product->rate < c->y.low) return;
    markup_printf(m, "<path class=\"chart-ceiling%s\" d=\"M%.1f %.1fH%.1f\"/>\n",
                  used ? "" : " chart-unused", chart_place(&c->x, from), y, c->x.at_high);
    snprintf(line, sizeof line, "%.*s %s", utf8_fit(product->name, 20), product->name,
             chart_value_text(text, CHART_FLOPS, product->rate));
    svg_text(m, used ? "chart-name" : "chart-soft", c->x.at_high + 6, at, "start", line);
    *free = at;
}

static int fastest_first(const void *a, const void *b)
{
    const struct profile_file_peak *x = a, *y = b;
    return (x->rate < y->rate) - (x->rate > y->rate);
}

static void print_matmuls(struct markup *m, const struct chart *c, const struct profile_file *p)
{
    struct profile_file_peak product[PROFILE_FILE_PEAKS] = {0};
    double free = 0;
    for (int i = 0; i < p->products; i++) product[i] = p->product[i];
    qsort(product, (size_t)p->products, sizeof *product, fastest_first);
    for (int i = 0; i < p->products; i++) print_matmul(m, c, p, &product[i], &free);
}

/* --- drawing of points ------------------------------------------------------------------------ */

static double x_of(const struct panel *a, const struct profile_file_kernel *k)
{
    return chart_place(&a->chart.x, intensity(k));
}

static double y_of(const struct panel *a, const struct profile_file_kernel *k)
{
    return chart_place(&a->chart.y, rate(k));
}

static double radius(const struct panel *a, const struct profile_file_kernel *k)
{
    return fmax(RADIUS_LEAST, RADIUS_MOST * sqrt(k->ms / a->ms_most));
}

/* The tooltip of a point, several lines. */
static void print_words(struct str *s, const struct profile_file *p,
                        const struct profile_file_kernel *k, double whole)
{
    char text[32];
    const struct profile_row *r = &p->row[k->row];
    visible_append(s, k->name);
    str_printf(s, "\n%s, %.4g ms per step (%.3g %%), %g times\n",
               profile_file_family_name(r->family), k->ms, 100 * k->ms / whole, k->per_step);
    str_append(s, chart_value_text(text, CHART_FLOPS, rate(k)));
    str_printf(s, " at %.3g FLOP per byte, %s", intensity(k),
               chart_value_text(text, CHART_BANDWIDTH, 1e3 * k->bytes / k->work_ms));
    if (k->floor_ms > 0 && !str_same(r->bound_name, "latency"))
        str_printf(s, "\nfloor %.4g ms; it takes %.3g times as long", k->floor_ms,
                   k->work_ms / k->floor_ms);
    if (!r->bound_name) return;
    str_append(s, "; bound by ");
    visible_append(s, r->bound_name);
}

static void print_point(struct markup *m, const struct panel *a, const struct profile_file *p,
                        const struct profile_file_kernel *k, double whole)
{
    struct str words = {0};
    print_words(&words, p, k, whole);
    markup_printf(m,
                  "<circle class=\"chart-point\" style=\"--c:var(--family-%d)\" cx=\"%.1f\" "
                  "cy=\"%.1f\" r=\"%.1f\"><title>",
                  p->row[k->row].family, x_of(a, k), y_of(a, k), radius(a, k));
    markup_lines(m, str_text(&words));
    markup_printf(m, "</title></circle>\n");
    str_release(&words);
}

static int longest_first(const void *a, const void *b)
{
    const struct profile_file_kernel *x = *(const struct profile_file_kernel *const *)a,
                                     *y = *(const struct profile_file_kernel *const *)b;
    return (x->ms < y->ms) - (x->ms > y->ms);
}

static bool is_inside(const struct panel *a, const struct profile_file_kernel *k)
{
    const struct chart_axis *x = &a->chart.x, *y = &a->chart.y;
    return is_point(k) && intensity(k) >= x->low && intensity(k) <= x->high && rate(k) >= y->low &&
           rate(k) <= y->high;
}

/* Labels cross neither a ceiling nor the name of a slope, which is above it. */
static void keep_off_ceilings(struct labels *l, const struct panel *a, const struct profile_file *p)
{
    enum { NAME_ABOVE = 12 };
    const struct chart *c = &a->chart;
    double end[4], top = peak_most(p->product, p->products);
    for (int i = 0; i < p->copies; i++) {
        if (!place_copy(c, &p->copy[i], top, end)) continue;
        labels_keep_off(l, end[0], end[1], end[2], end[3]);
        labels_keep_off(l, end[0], end[1] - NAME_ABOVE, end[2], end[3] - NAME_ABOVE);
    }
    for (int i = 0; i < p->products; i++) {
        double y = chart_place(&c->y, p->product[i].rate);
        labels_keep_off(l, c->x.at_low, y, c->x.at_high, y);
    }
}

static void print_labels(struct markup *m, const struct panel *a, const struct profile_file *p,
                         const struct profile_file_kernel **k, int n)
{
    struct label_box *box = HEAP_NEW(struct label_box, n + 1);
    const struct chart_axis *x_axis = &a->chart.x, *y_axis = &a->chart.y;
    struct labels labels = {
        .inside = {x_axis->at_low, y_axis->at_high, x_axis->at_high, y_axis->at_low}, .point = box};
    double whole = profile_file_ms(p);
    keep_off_ceilings(&labels, a, p);
    for (int i = 0; i < n; i++) {
        double x = x_of(a, k[i]), y = y_of(a, k[i]), r = radius(a, k[i]);
        box[i] = (struct label_box){x - r, y - r, x + r, y + r};
        if (r > 2 * RADIUS_LEAST) labels.points = i + 1;
    }
    for (int i = 0; i < n && i < LABELS_MOST && k[i]->ms >= LABEL_SHARE * whole; i++) {
        char text[96];
        snprintf(text, sizeof text, "%.*s, %.2g %%", utf8_fit(k[i]->label, 72), k[i]->label,
                 100 * k[i]->ms / whole);
        labels_print(&labels, i, text, m);
    }
    free(box);
}

/* Large points first, so that small ones are on top. The caller frees the list. */
static const struct profile_file_kernel **points_of(const struct panel *a,
                                                    const struct profile_file *p, int *ret_n)
{
    const struct profile_file_kernel **point =
        HEAP_NEW(const struct profile_file_kernel *, p->kernels + 1);
    *ret_n = 0;
    for (int i = 0; i < p->kernels; i++)
        if (is_inside(a, &p->kernel[i])) point[(*ret_n)++] = &p->kernel[i];
    qsort(point, (size_t)*ret_n, sizeof *point, longest_first);
    return point;
}

static void print_points(struct markup *m, const struct panel *a, const struct profile_file *p)
{
    int n;
    const struct profile_file_kernel **point = points_of(a, p, &n);
    double whole = profile_file_ms(p);
    for (int i = 0; i < n; i++) print_point(m, a, p, point[i], whole);
    print_labels(m, a, p, point, n);
    free(point);
}

/* Returns the y coordinate of its end. */
static double print_legend(struct markup *m, const struct panel *a, const struct profile_file *p)
{
    struct chart_item item[PROFILE_FILE_FAMILIES];
    char color[PROFILE_FILE_FAMILIES][16];
    struct chart_legend legend = {item, 0, LEFT, WIDTH - LEFT};
    double top = a->chart.y.at_low + LEGEND;
    for (int family = 0; family < PROFILE_FILE_FAMILIES; family++) {
        bool has = false;
        for (int i = 0; i < p->kernels && !has; i++)
            has = is_point(&p->kernel[i]) && p->row[p->kernel[i].row].family == family;
        if (!has) continue;
        snprintf(color[legend.items], sizeof *color, "family-%d", family);
        item[legend.items] = (struct chart_item){profile_file_family_name(family),
                                                 color[legend.items], CHART_POINT, 0};
        legend.items++;
    }
    chart_print_legend(&legend, top, m);
    return top + chart_legend_height(&legend);
}

static void print_note(struct markup *m, const struct panel *a, const struct profile_file *p,
                       double y)
{
    double ms = 0;
    int n = 0;
    for (int i = 0; i < p->kernels; i++) {
        if (is_inside(a, &p->kernel[i])) continue;
        ms += p->kernel[i].ms;
        n++;
    }
    struct str note = {0};
    str_append(&note, "Area: time per step.");
    if (p->machine && p->machine_date)
        str_printf(&note, " Peaks measured %.10s, %s.", p->machine_date, p->machine);
    if (n)
        str_printf(&note,
                   " Not shown: %d kernel%s, %.3g of %.4g ms, without arithmetic or too short.", n,
                   n == 1 ? "" : "s", ms, profile_file_ms(p));
    svg_text(m, "chart-soft", a->chart.x.at_low, y + 14, "start", str_text(&note));
    str_release(&note);
}

static struct panel panel_of(const struct roofline_frame *f, double from)
{
    return (struct panel){
        .chart = {.x = {CHART_NUMBER, true, 10, f->x_low, f->x_high, LEFT, WIDTH - RIGHT},
                  .y = {CHART_COUNT, true, 10, f->y_low, f->y_high, from + HEIGHT - BOTTOM,
                        from + TOP}},
        .ms_most = f->ms_most};
}

static void print_panel(struct markup *m, const struct profile_file *p,
                        const struct roofline_frame *f, double from)
{
    struct panel a = panel_of(f, from);
    chart_print_x_grid(&a.chart, m);
    chart_print_y_grid(&a.chart, m);
    chart_print_x_title(&a.chart, "FLOP per byte", m);
    svg_text(m, "chart-soft", LEFT - 7, from + TOP - 10, "end", "FLOP/s");
    double top = peak_most(p->product, p->products);
    for (int i = 0; i < p->copies; i++) print_copy(m, &a.chart, &p->copy[i], top);
    print_matmuls(m, &a.chart, p);
    print_points(m, &a, p);
    print_note(m, &a, p, print_legend(m, &a, p));
}

void roofline_print_picture(const struct profile_file *p, const struct roofline_frame *frame,
                            struct markup *m)
{
    svg_open(m, TITLE, WIDTH, HEIGHT - TITLE, p->name);
    print_panel(m, p, frame, 0);
    svg_close(m);
}

json_t *roofline_points(const struct profile_file *p, const struct roofline_frame *frame)
{
    int n;
    struct panel a = panel_of(frame, -TITLE);
    const struct profile_file_kernel **point = points_of(&a, p, &n);
    json_t *all = json_array();
    for (int i = 0; i < n; i++) {
        const struct profile_file_kernel *k = point[i];
        struct str words = {0};
        print_words(&words, p, k, profile_file_ms(p));
        json_array_append_new(all,
                              json_pack("[o, o, o, i, s]", number_or_null(x_of(&a, k)),
                                        number_or_null(y_of(&a, k)), number_or_null(radius(&a, k)),
                                        p->row[k->row].family, str_text(&words)));
        str_release(&words);
    }
    free(point);
    return json_pack("{s:i, s:o}", "width", WIDTH, "points", all);
}

void roofline_print_file(const struct profile_file *profile, int n, struct markup *m)
{
    struct roofline_frame frame = roofline_frame_of(profile, n);
    svg_open(m, 0, WIDTH, n * HEIGHT, "Roofline");
    for (int i = 0; i < n; i++) {
        svg_text(m, "chart-title", LEFT + 40, i * HEIGHT + 26, "start", profile[i].name);
        print_panel(m, &profile[i], &frame, i * HEIGHT);
    }
    svg_close(m);
}

#include "report/roofline.h"

#include "base/str.h"
#include "present/assets.h"
#include "present/labels.h"
#include "present/svg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lengths in CSS pixels. */
enum {
    WIDTH = 1000,
    HEIGHT = 600, /* of one profile, with title, legend and note */
    LEFT = 78,
    RIGHT = 126,
    TITLE = 16, /* of a file; the page has its own */
    TOP = 44,
    BOTTOM = 112,
    NAME_HEIGHT = 14,
};
static const double RADIUS_MOST = 23, RADIUS_LEAST = 2.5, CHARACTER = 5.7;
static const double LABEL_SHARE = 0.015, SHARE_LEAST = 0.0003; /* of a step */

struct area { /* of the drawing: where decades are in it */
    struct roofline_frame frame;
    double left, right, top, bottom;
};

static double x_of(const struct area *a, double x)
{
    const struct roofline_frame *f = &a->frame;
    return a->left + (a->right - a->left) * log(x / f->x_low) / log(f->x_high / f->x_low);
}

static double y_of(const struct area *a, double y)
{
    const struct roofline_frame *f = &a->frame;
    return a->bottom - (a->bottom - a->top) * log(y / f->y_low) / log(f->y_high / f->y_low);
}

/* --- points ------------------------------------------------------------------------------------ */

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

static double step_ms(const struct profile_file *p)
{
    double ms = p->idle_ms;
    for (int i = 0; i < p->kernels; i++) ms += p->kernel[i].ms;
    return ms;
}

/* Kernels of hardly any time do not widen the frame. */
struct roofline_frame roofline_frame_of(const struct profile_file *profile, int n)
{
    double x_low = INFINITY, x_high = 0, y_low = INFINITY, y_high = 0, ms = 0;
    for (int i = 0; i < n; i++) {
        const struct profile_file *p = &profile[i];
        double least = SHARE_LEAST * step_ms(p);
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
    return (struct roofline_frame){
        .x_low = pow(10, floor(log10(x_low))),
        .x_high = 1.6 * x_high,
        .y_low = pow(10, floor(log10(y_low))),
        .y_high = 6 * y_high, /* with room for names */
        .ms_most = ms,
    };
}

/* --- words ------------------------------------------------------------------------------------- */

/* "3.11 TFLOP/s", "500 M"; the buffer has 32 bytes. */
static const char *si(char *buffer, double x, const char *unit)
{
    static const char *const prefix[] = {"", "k", "M", "G", "T", "P", "E"};
    int i = 0;
    for (; x >= 999.5 && i + 1 < COUNT_OF(prefix); i++) x /= 1e3;
    snprintf(buffer, 32, "%.3g %s%s", x, prefix[i], unit);
    return buffer;
}

/* --- what stands behind the points ------------------------------------------------------------- */

static void print_grid(struct str *s, const struct area *a)
{
    const struct roofline_frame *f = &a->frame;
    char text[32];
    for (double x = f->x_low; x < f->x_high; x *= 10) {
        double at = x_of(a, x);
        str_printf(s, "<path class=\"roof-grid\" d=\"M%.1f %.1fV%.1f\"/>\n", at, a->top, a->bottom);
        snprintf(text, sizeof text, "%g", x);
        svg_text(s, "roof-soft", at, a->bottom + 18, "middle", text);
    }
    for (double y = f->y_low; y < f->y_high; y *= 10) {
        double at = y_of(a, y);
        str_printf(s, "<path class=\"roof-grid\" d=\"M%.1f %.1fH%.1f\"/>\n", a->left, at, a->right);
        svg_text(s, "roof-soft", a->left - 8, at + 4, "end", si(text, y, ""));
    }
    svg_text(s, "roof-soft", (a->left + a->right) / 2, a->bottom + 38, "middle", "FLOP per byte");
    svg_text(s, "roof-soft", a->left - 8, a->top - 10, "end", "FLOP/s");
}

static bool is_used(const struct profile_file *p, const char *peak)
{
    for (int i = 0; i < p->rows; i++)
        if (p->row[i].peak_of && p->row[i].flops > 0 && strcmp(p->row[i].peak_of, peak) == 0)
            return true;
    return false;
}

/* A copy's rate: the line y = rate * x, up to the highest product. */
static void print_copy(struct str *s, const struct area *a, const struct profile_file_peak *copy,
                       double top)
{
    const struct roofline_frame *f = &a->frame;
    char text[32];
    double x0 = fmax(f->x_low, f->y_low / copy->rate);
    double x1 = fmin(f->x_high, (top > 0 ? top : f->y_high) / copy->rate);
    if (!(x1 > x0)) return;
    double px = x_of(a, x0), py = y_of(a, x0 * copy->rate);
    double qx = x_of(a, x1), qy = y_of(a, x1 * copy->rate);
    str_printf(s, "<path class=\"roof-ceiling\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", px, py, qx, qy);
    double angle = atan2(qy - py, qx - px) * 180 / acos(-1);
    str_printf(
        s, "<text class=\"roof-name\" transform=\"translate(%.1f %.1f) rotate(%.2f)\" y=\"-6\">",
        px + 14 * (qx - px) / hypot(qx - px, qy - py),
        py + 14 * (qy - py) / hypot(qx - px, qy - py), angle);
    svg_escape(s, copy->name);
    str_printf(s, " %s</text>\n", si(text, copy->rate, "B/s"));
}

/* What products of a type reach: a level, named in the margin. `free` is how far down names go so far. */
static void print_product(struct str *s, const struct area *a, const struct profile_file *p,
                          const struct profile_file_peak *product, double *free)
{
    char text[32], line[64];
    double fastest = peak_most(p->copy, p->copies);
    double from = fastest > 0 ? product->rate / fastest : a->frame.x_low;
    bool used = is_used(p, product->name);
    double y = y_of(a, product->rate), at = fmax(y + 4, *free + NAME_HEIGHT);
    if (from < a->frame.x_low) from = a->frame.x_low;
    if (from >= a->frame.x_high || product->rate < a->frame.y_low) return;
    str_printf(s, "<path class=\"roof-ceiling%s\" d=\"M%.1f %.1fH%.1f\"/>\n",
               used ? "" : " roof-unused", x_of(a, from), y, a->right);
    snprintf(line, sizeof line, "%.20s %s", product->name, si(text, product->rate, "FLOP/s"));
    svg_text(s, used ? "roof-name" : "roof-soft", a->right + 6, at, "start", line);
    *free = at;
}

static int fastest_first(const void *a, const void *b)
{
    const struct profile_file_peak *x = a, *y = b;
    return (x->rate < y->rate) - (x->rate > y->rate);
}

static void print_products(struct str *s, const struct area *a, const struct profile_file *p)
{
    struct profile_file_peak product[PROFILE_FILE_PEAKS];
    double free = 0;
    memcpy(product, p->product, sizeof product);
    qsort(product, (size_t)p->products, sizeof *product, fastest_first);
    for (int i = 0; i < p->products; i++) print_product(s, a, p, &product[i], &free);
}

/* --- points, drawn ----------------------------------------------------------------------------- */

static double radius(const struct area *a, const struct profile_file_kernel *k)
{
    return fmax(RADIUS_LEAST, RADIUS_MOST * sqrt(k->ms / a->frame.ms_most));
}

static void print_point(struct str *s, const struct area *a, const struct profile_file *p,
                        const struct profile_file_kernel *k, double whole)
{
    char text[32];
    int family = p->row[k->row].family;
    str_printf(s,
               "<circle class=\"roof-point family-%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"><title>",
               family, x_of(a, intensity(k)), y_of(a, rate(k)), radius(a, k));
    svg_escape(s, k->name);
    str_printf(s, "\n%s, %.4g ms of a step (%.3g %%), %g times\n", profile_file_family_name(family),
               k->ms, 100 * k->ms / whole, k->per_step);
    str_printf(s, "%s", si(text, rate(k), "FLOP/s"));
    str_printf(s, " at %.3g FLOP per byte, %s", intensity(k),
               si(text, 1e3 * k->bytes / k->work_ms, "B/s"));
    if (k->floor_ms > 0)
        str_printf(s, "\nfloor %.4g ms: it takes %.3g times as long", k->floor_ms,
                   k->work_ms / k->floor_ms);
    const char *bound = p->row[k->row].bound;
    if (bound) str_printf(s, "; bound by %s", bound);
    str_append(s, "</title></circle>\n");
}

static int longest_first(const void *a, const void *b)
{
    const struct profile_file_kernel *x = *(const struct profile_file_kernel *const *)a,
                                     *y = *(const struct profile_file_kernel *const *)b;
    return (x->ms < y->ms) - (x->ms > y->ms);
}

static bool is_inside(const struct area *a, const struct profile_file_kernel *k)
{
    const struct roofline_frame *f = &a->frame;
    return is_point(k) && intensity(k) >= f->x_low && rate(k) >= f->y_low;
}

static void print_labels(struct str *s, const struct area *a, const struct profile_file *p,
                         const struct profile_file_kernel **k, int n)
{
    struct label_box *box = malloc(sizeof *box * (size_t)(n + 1));
    BUG_IF(!box, "no memory for %d points", n);
    struct labels labels = {.inside = {a->left, a->top, a->right, a->bottom}, .point = box};
    double whole = step_ms(p);
    for (int i = 0; i < p->products; i++)
        if (is_used(p, p->product[i].name)) labels_keep_off(&labels, y_of(a, p->product[i].rate));
    for (int i = 0; i < n; i++) {
        double x = x_of(a, intensity(k[i])), y = y_of(a, rate(k[i])), r = radius(a, k[i]);
        box[i] = (struct label_box){x - r, y - r, x + r, y + r};
        if (r > 2 * RADIUS_LEAST) labels.points = i + 1;
    }
    for (int i = 0; i < n && i < LABELS_MOST && k[i]->ms >= LABEL_SHARE * whole; i++) {
        char text[96];
        snprintf(text, sizeof text, "%.72s, %.2g %%", k[i]->label, 100 * k[i]->ms / whole);
        labels_print(&labels, i, text, s);
    }
    free(box);
}

/* Large ones first, so that small ones lie on them. */
static void print_points(struct str *s, const struct area *a, const struct profile_file *p)
{
    const struct profile_file_kernel **point = malloc(sizeof *point * (size_t)(p->kernels + 1));
    BUG_IF(!point, "no memory for %d points", p->kernels);
    int n = 0;
    for (int i = 0; i < p->kernels; i++)
        if (is_inside(a, &p->kernel[i])) point[n++] = &p->kernel[i];
    qsort(point, (size_t)n, sizeof *point, longest_first);
    double whole = step_ms(p);
    for (int i = 0; i < n; i++) print_point(s, a, p, point[i], whole);
    print_labels(s, a, p, point, n);
    free(point);
}

static void print_legend(struct str *s, const struct area *a, const struct profile_file *p)
{
    double at = a->left;
    for (int family = 0; family < PROFILE_FILE_FAMILIES; family++) {
        const char *name = profile_file_family_name(family);
        bool has = false;
        for (int i = 0; i < p->kernels && !has; i++)
            has = is_point(&p->kernel[i]) && p->row[p->kernel[i].row].family == family;
        if (!has) continue;
        str_printf(s, "<circle class=\"roof-point family-%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"/>\n",
                   family, at + 6, a->bottom + 62);
        svg_text(s, "", at + 17, a->bottom + 66, "start", name);
        at += 38 + (CHARACTER + .9) * (double)strlen(name);
    }
}

static void print_note(struct str *s, const struct area *a, const struct profile_file *p)
{
    double ms = 0;
    int n = 0;
    for (int i = 0; i < p->kernels; i++) {
        if (is_inside(a, &p->kernel[i])) continue;
        ms += p->kernel[i].ms;
        n++;
    }
    struct str note = {0};
    str_append(&note, "Area: time of a step.");
    if (p->machine && p->machine_date)
        str_printf(&note, " Ceilings measured %.10s, %s.", p->machine_date, p->machine);
    if (n)
        str_printf(&note,
                   " Not shown: %d kernel%s, %.3g of %.4g ms, without arithmetic or too short.", n,
                   n == 1 ? "" : "s", ms, step_ms(p));
    svg_text(s, "roof-soft", a->left, a->bottom + 90, "start", str_text(&note));
    str_release(&note);
}

static void print_panel(struct str *s, const struct profile_file *p,
                        const struct roofline_frame *frame, double from)
{
    struct area a = {*frame, LEFT, WIDTH - RIGHT, from + TOP, from + HEIGHT - BOTTOM};
    print_grid(s, &a);
    double top = peak_most(p->product, p->products);
    for (int i = 0; i < p->copies; i++) print_copy(s, &a, &p->copy[i], top);
    print_products(s, &a, p);
    print_points(s, &a, p);
    print_legend(s, &a, p);
    print_note(s, &a, p);
}

static void open_svg(struct str *s, int top, int height, const char *more)
{
    str_printf(s,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"roof\" viewBox=\"0 %d %d %d\" "
               "width=\"%d\" height=\"%d\" role=\"img\">\n%s",
               top, WIDTH, height, WIDTH, height, more);
}

void roofline_print_picture(const struct profile_file *p, const struct roofline_frame *frame,
                            struct str *s)
{
    open_svg(s, TITLE, HEIGHT - TITLE, "");
    print_panel(s, p, frame, 0);
    str_append(s, "</svg>");
}

enum status roofline_print_file(const struct profile_file *profile, int n, struct arena *a,
                                struct str *s)
{
    struct asset colors, style;
    TRY(asset_find("colors.css", a, &colors));
    TRY(asset_find("roofline.css", a, &style));
    struct roofline_frame frame = roofline_frame_of(profile, n);
    open_svg(s, 0, n * HEIGHT, "<style>\n");
    str_append_bytes(s, colors.text, colors.size);
    str_append_bytes(s, style.text, style.size);
    str_printf(s, "</style>\n<rect class=\"roof-page\" width=\"%d\" height=\"%d\"/>\n", WIDTH,
               n * HEIGHT);
    for (int i = 0; i < n; i++) {
        svg_text(s, "roof-title", LEFT + 40, i * HEIGHT + 26, "start", profile[i].name);
        print_panel(s, &profile[i], &frame, i * HEIGHT);
    }
    str_append(s, "</svg>\n");
    return ST_OK;
}

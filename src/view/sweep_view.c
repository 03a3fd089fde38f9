#include "view/sweep_view.h"

#include "base/str.h"
#include "present/plot.h"
#include "present/table_cells.h"

#include <string.h>

/* clang-format off */
#define COLUMNS(X) \
    X("resource", "resource", "the resource of which each row uses more", TEXT, p->what) \
    X("registers", "registers", "of a thread, as the driver reports them", COUNT, p->taken.registers > 0, p->taken.registers) \
    X("shared_bytes", "shared", "shared memory of a block", BYTES, true, p->dynamic_bytes) \
    X("sm_blocks", "blocks per SM", "that an SM holds at once", COUNT, true, of->blocks) \
    X("sm_warps", "warps per SM", "of these blocks", COUNT, true, of->warps) \
    X("occupancy_percent", "occupancy %", "of the warps that an SM can hold", NUMBER, true, 3, 100.0 * of->warps / occupancy_limits(r->arch)->warps) \
    X("limit", "limit", "the resource that limits the number of blocks", TEXT, of->limit) \
    X("under_way_bytes", "under way", "bytes that an SM waits for at once: 16 for each thread", BYTES, true, (int64_t)of->warps * OCCUPANCY_WARP * SWEEP_UNDER_WAY) \
    X("us_median", "µs", "median time of a launch", NUMBER, true, 4, ms->median * 1e3) \
    X("us_std", "std", "standard deviation of the samples", NUMBER, ms->n > 1, 2, ms->std * 1e3) \
    X("samples", "n", "samples", COUNT, true, p->time.samples) \
    X("gb_per_s", "GB/s", "read by all SMs", NUMBER, true, 4, rate_of(r, p) * 1e-9) \
    X("best_percent", "% of best", "bandwidth as a percentage of the fastest row", NUMBER, true, 3, 100 * rate_of(r, p) / best_rate(r))
/* clang-format on */
static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

static double rate_of(const struct sweep_run *r, const struct sweep_point *p)
{
    return (double)r->bytes / (p->time.total.median * 1e-3);
}

static double best_rate(const struct sweep_run *r)
{
    double best = 0;
    for (int i = 0; i < r->points; i++)
        if (rate_of(r, &r->point[i]) > best) best = rate_of(r, &r->point[i]);
    return best;
}

static void set_row(struct table_row row, const struct sweep_run *r, const struct sweep_point *p)
{
    const struct stats *ms = &p->time.total;
    const struct occupancy *of = &p->occupancy;
    COLUMNS(TABLE_CELL)
}

/* The latency of a load: bytes in flight / bandwidth with the fewest warps (memory mostly idle). */
static double latency_ns(const struct sweep_run *r)
{
    const struct sweep_point *least = &r->point[0];
    for (int i = 1; i < r->points; i++)
        if (r->point[i].occupancy.warps < least->occupancy.warps) least = &r->point[i];
    double under_way =
        (double)least->occupancy.warps * OCCUPANCY_WARP * SWEEP_UNDER_WAY * r->processors;
    return under_way / rate_of(r, least) * 1e9;
}

static void add_notes(const struct sweep_run *r, struct sheet *s, struct arena *a)
{
    char bytes[32];
    sheet_note(s, arena_printf(a,
                               "each launch reads %s with blocks of %d threads; it has as many "
                               "blocks as the GPU holds at once (one wave)",
                               str_bytes(bytes, (double)r->bytes), SWEEP_THREADS));
    sheet_note(s,
               arena_printf(a,
                            "with the fewest warps a load takes %.0f ns: bytes under way divided "
                            "by bytes per second (Little's law)",
                            latency_ns(r)));
    if (r->disagree)
        sheet_note(
            s, arena_printf(a, "in %d rows the driver reports a different number of blocks per SM",
                            r->disagree));
}

void sweep_sheet(const struct sweep_run *r, struct sheet *s, struct arena *a)
{
    *s = (struct sheet){.name = "lab-occupancy"};
    s->title = "lab occupancy: What are more warps on a multiprocessor worth?";
    struct sheet_table *all = sheet_add(s, NULL, columns, COUNT_OF(columns), r->points, a);
    for (int i = 0; i < r->points; i++)
        set_row((struct table_row){&all->table, i, 0, a}, r, &r->point[i]);
    all->chart = (struct sheet_chart){.kind = SHEET_LINES,
                                      .title = "Bandwidth over the warps that an SM holds",
                                      .label = {"resource"},
                                      .labels = 1,
                                      .x = "sm_warps",
                                      .y = "gb_per_s",
                                      .unit = SHEET_GB_PER_S};
    add_notes(r, s, a);
}

/* --- in characters ---------------------------------------------------------------------------- */

enum { LINES = 2 };

/* Points in ascending order of warps; of points with equal warps, the fastest. */
static struct plot_line line_of(const struct sweep_run *r, const char *what, int color,
                                struct arena *a)
{
    struct plot_point *p = ARENA_NEW(a, struct plot_point, r->points);
    int n = 0;
    for (int warps = 1; warps <= occupancy_limits(r->arch)->warps; warps++) {
        double best = 0;
        for (int i = 0; i < r->points; i++) {
            const struct sweep_point *x = &r->point[i];
            if (strcmp(x->what, what) || x->occupancy.warps != warps) continue;
            if (rate_of(r, x) > best) best = rate_of(r, x);
        }
        if (best > 0) p[n++] = (struct plot_point){warps, best, false};
    }
    return (struct plot_line){.name = what, .color = color, .point = p, .points = n};
}

void sweep_text(const struct sweep_run *r, struct str *s, struct arena *a)
{
    const struct plot_line line[LINES] = {line_of(r, "registers", 0, a),
                                          line_of(r, "shared memory", 1, a)};
    const struct plot_panel panel = {.title = "bandwidth",
                                     .x_title = "warps per SM",
                                     .unit = CHART_BANDWIDTH,
                                     .x_unit = CHART_COUNT,
                                     .line = line,
                                     .lines = LINES};
    plot_print_text(&panel, s);
}

#include "view/sweep_view.h"

#include "base/str.h"
#include "present/plot.h"
#include "present/table_cells.h"

#include <string.h>

/* clang-format off */
#define COLUMN_LIST(X) \
    X(COLUMN_WHAT, "grows", "what grows", "what a block or thread takes more and more of", false) \
    X(COLUMN_REGISTERS, "registers", "registers", "of a thread, as the driver reports them", true) \
    X(COLUMN_SHARED, "shared_bytes", "shared", "shared memory of a block", true) \
    X(COLUMN_BLOCKS, "sm_blocks", "blocks per SM", "that an SM holds at once", true) \
    X(COLUMN_WARPS, "sm_warps", "warps per SM", "of these blocks", true) \
    X(COLUMN_SHARE, "occupancy_percent", "occupancy %", "of the warps that an SM can hold", true) \
    X(COLUMN_LIMIT, "limit", "limit", "what allows no more blocks", false) \
    X(COLUMN_UNDER_WAY, "under_way_bytes", "under way", "bytes that an SM waits for at once: 16 for each thread", true) \
    X(COLUMN_US, "us_median", "µs", "median time of a launch", true) \
    X(COLUMN_STD, "us_std", "std", "standard deviation of the samples", true) \
    X(COLUMN_N, "samples", "n", "samples", true) \
    X(COLUMN_RATE, "gb_per_s", "GB/s", "read by all SMs", true) \
    X(COLUMN_BEST, "best_percent", "% of best", "beside the fastest row", true)
/* clang-format on */
enum { COLUMN_LIST(TABLE_ID) COLUMNS };
static const struct table_column columns[] = {COLUMN_LIST(TABLE_COLUMN)};

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

static void set_row(struct table *t, int row, const struct sweep_run *r, struct arena *a)
{
    const struct sweep_point *p = &r->point[row];
    const struct stats *ms = &p->time.total;
    int most = occupancy_limits(r->arch)->warps;
    table_set_text(t, row, COLUMN_WHAT, p->what);
    if (p->taken.registers > 0) table_set_count(t, row, COLUMN_REGISTERS, p->taken.registers, a);
    table_set_bytes(t, row, COLUMN_SHARED, p->dynamic_bytes, a);
    table_set_count(t, row, COLUMN_BLOCKS, p->occupancy.blocks, a);
    table_set_count(t, row, COLUMN_WARPS, p->occupancy.warps, a);
    table_set(t, row, COLUMN_SHARE, 3, 100.0 * p->occupancy.warps / most, a);
    table_set_text(t, row, COLUMN_LIMIT, p->occupancy.limit);
    table_set_bytes(t, row, COLUMN_UNDER_WAY,
                    (int64_t)p->occupancy.warps * OCCUPANCY_WARP * SWEEP_UNDER_WAY, a);
    table_set(t, row, COLUMN_US, 4, ms->median * 1e3, a);
    if (ms->n > 1) table_set(t, row, COLUMN_STD, 2, ms->std * 1e3, a);
    table_set_count(t, row, COLUMN_N, p->time.samples, a);
    table_set(t, row, COLUMN_RATE, 4, rate_of(r, p) * 1e-9, a);
    table_set(t, row, COLUMN_BEST, 3, 100 * rate_of(r, p) / best_rate(r), a);
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
                               "each launch reads %s with blocks of %d threads, as many as the GPU "
                               "holds at once: one wave",
                               str_bytes(bytes, (double)r->bytes), SWEEP_THREADS));
    sheet_note(s, arena_printf(a,
                               "with the fewest warps a load takes %.0f ns: bytes under way by "
                               "bytes per second (Little's law)",
                               latency_ns(r)));
    if (r->disagree)
        sheet_note(
            s, arena_printf(a, "the driver says another number of blocks in %d rows", r->disagree));
}

void sweep_sheet(const struct sweep_run *r, struct sheet *s, struct arena *a)
{
    *s = (struct sheet){.name = "lab-occupancy"};
    s->title = "lab occupancy: What are more warps on a multiprocessor worth?";
    struct sheet_table *all = sheet_add(s, NULL, columns, COLUMNS, r->points, a);
    for (int i = 0; i < r->points; i++) set_row(&all->table, i, r, a);
    all->chart = (struct sheet_chart){.kind = SHEET_LINES,
                                      .title = "Bandwidth over the warps that an SM holds",
                                      .label = {"grows"},
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

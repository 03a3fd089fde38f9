#include "view/lab_memory_view.h"

#include "base/str.h"
#include "base/threads.h"
#include "present/plot.h"
#include "present/table_cells.h"

#include <math.h>
#include <string.h>

/* clang-format off */
#define COLUMNS(X) \
    X("level", "memory", "from the nearest to the farthest", TEXT, l->name) \
    X("unit_bytes", "per core", "size for one core, or one SM of a GPU, as reported; empty: it is shared", BYTES, l->unit_bytes > 0, l->unit_bytes) \
    X("bytes", "in total", "size for all that were used, as reported", BYTES, l->bytes > 0, l->bytes) \
    X("found_bytes", "found", "the working set up to which the latency is that of this level", BYTES, l->found > 0, l->found) \
    X("bytes_per_clock", "B/clock", "bytes that one core or SM reads per clock", NUMBER, l->clock_bytes > 0, 3, l->clock_bytes) \
    X("unit_gb_per_s", "GB/s per core", "read by one core or SM", NUMBER, l->unit_rate > 0, 3, l->unit_rate * 1e-9) \
    X("gb_per_s", "GB/s read", "by all cores or SMs that were used", NUMBER, l->rate > 0, 3, l->rate * 1e-9) \
    X("write_gb_per_s", "GB/s written", "by all", NUMBER, l->write_rate > 0, 3, l->write_rate * 1e-9) \
    X("copy_gb_per_s", "GB/s copied", "by all, read and written together", NUMBER, l->copy_rate > 0, 3, l->copy_rate * 1e-9) \
    X("ns", "ns", "latency of a load that depends on the load before", NUMBER, l->ns > 0, 3, l->ns) \
    X("clocks", "clocks", "the same in clocks of the core or SM", NUMBER, l->clocks > 0, 3, l->clocks) \
    X("note", "remark", "what else is to be known", TEXT, l->note)
/* clang-format on */
static const struct table_column columns_of_cpu[] = {COLUMNS(TABLE_COLUMN)};
enum { LEVEL_COLUMNS = COUNT_OF(columns_of_cpu) };

/* The columns; for a GPU with SMs instead of cores. */
static const struct table_column *columns_of(bool gpu, struct arena *a)
{
    if (!gpu) return columns_of_cpu;
    struct table_column *c = ARENA_NEW(a, struct table_column, LEVEL_COLUMNS);
    for (int i = 0; i < LEVEL_COLUMNS; i++) {
        c[i] = columns_of_cpu[i];
        const char *at = strstr(c[i].title, "per core");
        if (at) c[i].title = arena_printf(a, "%.*sper SM", (int)(at - c[i].title), c[i].title);
    }
    return c;
}

static void set_level(struct table_row row, const struct memory_level *l)
{
    COLUMNS(TABLE_CELL)
}

void lab_memory_record(const struct machine *m, struct str *s, struct arena *a)
{
    struct memory_record r;
    /* A record is for one number of threads. */
    const char *device = m->gpu ? ""
                         : m->threads == threads_available()
                             ? " --device=cpu"
                             : arena_printf(a, " --device=cpu --threads=%d", m->threads);
    if (!memory_find(m, &r, a)) {
        str_printf(s, "\ncaches and memory: not measured yet; strobe lab memory%s measures them\n",
                   device);
        return;
    }
    struct sheet sheet = {0};
    struct table *t =
        &sheet_add(&sheet, NULL, columns_of(m->gpu, a), LEVEL_COLUMNS, r.levels, a)->table;
    for (int i = 0; i < r.levels; i++) set_level((struct table_row){t, i, 0, a}, &r.level[i]);
    str_printf(s, "\ncaches and memory, measured %.10s by strobe lab memory%s\n\n", r.date, device);
    table_print_text(t, s);
}

/* --- what an SM holds ------------------------------------------------------------------------- */

static void add_card(const struct memory_run *r, struct sheet *s, struct arena *a)
{
    static const struct table_column of_card[] = {
        {"what", "of this GPU", "a limit of the device", false},
        {"value", "value", "as the driver reports it", true},
    };
    enum { WARP = 32 };
    const struct device_facts *f = &r->facts;
    const struct {
        const char *what;
        int64_t value;
    } fact[] = {{"SMs", f->processors},
                {"warps per SM", f->sm_threads / WARP},
                {"threads per SM", f->sm_threads},
                {"blocks per SM", f->sm_blocks},
                {"registers per SM", f->sm_registers}};
    int n = 0;
    for (int i = 0; i < COUNT_OF(fact); i++) n += fact[i].value > 0;
    struct table *t = &sheet_add(s, NULL, of_card, COUNT_OF(of_card), n, a)->table;
    for (int i = 0, row = 0; i < COUNT_OF(fact); i++) {
        if (fact[i].value <= 0) continue;
        table_set_text(t, row, 0, fact[i].what);
        table_set_count(t, row++, 1, (double)fact[i].value, a);
    }
}

/* --- the points ------------------------------------------------------------------------------- */

static const char *working_set_title(const struct memory_run *r)
{
    return r->gpu ? "working set of each SM" : "working set of each thread";
}

static void add_rates(const struct memory_run *r, struct sheet *s, struct arena *a)
{
    struct table_column *of_point = ARENA_NEW(a, struct table_column, 3);
    of_point[0] = (struct table_column){"curve", "curve", "what was done, and by how many", false};
    of_point[1] = (struct table_column){"set_bytes", working_set_title(r),
                                        "bytes that it goes through again and again", true};
    of_point[2] =
        (struct table_column){"gb_per_s", "bandwidth", "useful bytes per second of all", true};
    int n = 0, row = 0;
    for (int c = 0; c < r->curves; c++)
        for (int i = 0; i < r->sizes; i++) n += isfinite(r->curve[c].rate[i]);
    struct sheet_table *all = sheet_add(s, "bandwidth over the working set", of_point, 3, n, a);
    all->drawn_only = true;
    all->chart = (struct sheet_chart){.kind = SHEET_LINES,
                                      .title = "Bandwidth over the working set",
                                      .label = {"curve"},
                                      .labels = 1,
                                      .x = "set_bytes",
                                      .y = "gb_per_s",
                                      .unit = SHEET_GB_PER_S};
    for (int c = 0; c < r->curves; c++)
        for (int i = 0; i < r->sizes; i++) {
            if (!isfinite(r->curve[c].rate[i])) continue;
            table_set_text(&all->table, row, 0, r->curve[c].name);
            table_set_bytes(&all->table, row, 1, r->size[i], a);
            table_set(&all->table, row++, 2, 4, r->curve[c].rate[i] * 1e-9, a);
        }
}

static void add_latency(const struct memory_run *r, struct sheet *s, struct arena *a)
{
    static const struct table_column of_point[] = {
        {"curve", "curve", "what was done", false},
        {"set_bytes", "working set", "bytes that one thread goes through in random order", true},
        {"ns", "latency", "nanoseconds of a load that depends on the load before", true},
        {"clocks", "clocks", "the same in clocks", true},
    };
    int n = 0, row = 0;
    for (int i = 0; i < r->sizes; i++) n += isfinite(r->ns[i]);
    struct sheet_table *all =
        sheet_add(s, "latency over the working set", of_point, COUNT_OF(of_point), n, a);
    all->drawn_only = true;
    all->chart = (struct sheet_chart){.kind = SHEET_LINES,
                                      .title = "Latency over the working set",
                                      .label = {"curve"},
                                      .labels = 1,
                                      .x = "set_bytes",
                                      .y = "ns",
                                      .unit = SHEET_NS};
    for (int i = 0; i < r->sizes; i++) {
        if (!isfinite(r->ns[i])) continue;
        table_set_text(&all->table, row, 0, "pointer chase, one thread");
        table_set_bytes(&all->table, row, 1, r->size[i], a);
        table_set(&all->table, row, 2, 4, r->ns[i], a);
        table_set(&all->table, row++, 3, 4, r->clocks[i], a);
    }
}

/* --- pictures --------------------------------------------------------------------------------- */

static struct plot_line line_of(const struct memory_run *r, const char *name, int color,
                                const double *y, double scale, struct arena *a)
{
    struct plot_point *p = ARENA_NEW(a, struct plot_point, r->sizes);
    int n = 0;
    for (int i = 0; i < r->sizes; i++)
        if (isfinite(y[i])) p[n++] = (struct plot_point){(double)r->size[i], scale * y[i], false};
    return (struct plot_line){.name = name, .color = color % PLOT_COLORS, .point = p, .points = n};
}

enum { PANELS = 2 };

/* Bandwidth and latency; the latency of one thread or SM determines the ends of the levels. */
static void set_panels(const struct memory_run *r, struct plot_panel ret[PANELS], struct arena *a)
{
    static const double MS_OF_NS = 1e-6;
    struct plot_line *line = ARENA_NEW(a, struct plot_line, r->curves + 1);
    struct plot_edge *edge = ARENA_NEW(a, struct plot_edge, MEMORY_LEVELS);
    int edges = 0;
    for (int i = 0; i < r->curves; i++)
        line[i] = line_of(r, r->curve[i].name, i, r->curve[i].rate, 1, a);
    line[r->curves] =
        line_of(r, "latency: pointer chase, one thread", r->curves, r->ns, MS_OF_NS, a);
    for (int i = 0; i < r->levels; i++)
        if (r->level[i].found)
            edge[edges++] = (struct plot_edge){(double)r->level[i].found, r->level[i].name};
    ret[0] = (struct plot_panel){.title = "bandwidth",
                                 .x_title = working_set_title(r),
                                 .unit = CHART_BANDWIDTH,
                                 .x_unit = CHART_BYTES,
                                 .line = line,
                                 .lines = r->curves,
                                 .edge = edge,
                                 .edges = edges};
    ret[1] = (struct plot_panel){.title = "latency of a dependent load",
                                 .x_title = "working set of one thread",
                                 .unit = CHART_MILLISECONDS,
                                 .x_unit = CHART_BYTES,
                                 .line = line + r->curves,
                                 .lines = 1,
                                 .edge = edge,
                                 .edges = edges};
}

void lab_memory_svg(const struct memory_run *r, struct markup *m, struct arena *a)
{
    struct plot_panel p[PANELS];
    set_panels(r, p, a);
    plot_print_svg("The memory hierarchy", "Dashed: where the latency leaves a level.", p, PANELS,
                   m);
}

void lab_memory_text(const struct memory_run *r, struct str *s, struct arena *a)
{
    struct plot_panel p[PANELS];
    set_panels(r, p, a);
    for (int i = 0; i < PANELS; i++) {
        plot_print_text(&p[i], s);
        str_append(s, "\n");
    }
}

/* --- all -------------------------------------------------------------------------------------- */

static void add_notes(const struct memory_run *r, struct sheet *s, struct arena *a)
{
    char clock[32];
    const char *unit = r->gpu ? "SM" : "thread";
    sheet_note(s, arena_printf(a,
                               "the working set is that of each %s; where all %d work, each has "
                               "its own%s",
                               unit, r->units, r->gpu ? ", unless they read the same" : ""));
    if (isfinite(r->clock_hz))
        sheet_note(s, arena_printf(a, "clock of %s, measured: %s GHz", r->gpu ? "an SM" : "a core",
                                   str_number(clock, r->clock_hz * 1e-9, 3)));
    if (r->gpu)
        sheet_note(s, "L1 and shared memory are the same memory: an SM has as much L1 as its "
                      "blocks leave of it; GB/s written beside L2 are stores that L2 takes");
    else
        sheet_note(
            s, "the chase stays in 128 KiB until it has seen all lines there, and the memory is "
               "in large pages where the system has them: misses of the TLB are few");
}

void lab_memory_sheet(const struct memory_run *r, struct sheet *s, struct arena *a)
{
    *s = (struct sheet){.name = "lab-memory"};
    s->title = "lab memory: How large, how fast and how far away is each level of memory?";
    struct table *t =
        &sheet_add(s, NULL, columns_of(r->gpu, a), LEVEL_COLUMNS, r->levels, a)->table;
    for (int i = 0; i < r->levels; i++) set_level((struct table_row){t, i, 0, a}, &r->level[i]);
    if (r->gpu) add_card(r, s, a);
    add_notes(r, s, a);
    add_rates(r, s, a);
    add_latency(r, s, a);
}

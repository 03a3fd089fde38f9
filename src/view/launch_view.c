#include "view/launch_view.h"

#include "base/str.h"
#include "present/table_cells.h"

#include <math.h>
#include <string.h>

/* clang-format off */
#define COLUMN_LIST(X) \
    X(COLUMN_WAY, "way", "way", "how the work is started", false) \
    X(COLUMN_FLOATS, "floats", "floats", "that one kernel, or operator, works on", true) \
    X(COLUMN_ADDITIONS, "additions", "additions", "to each of them, by one kernel", true) \
    X(COLUMN_US, "us_median", "µs", "median time of a launch, or operator: of all, over their number", true) \
    X(COLUMN_STD, "us_std", "std", "standard deviation of the samples", true) \
    X(COLUMN_N, "samples", "n", "samples", true) \
    X(COLUMN_HOST, "host_us", "host µs", "that the host spends in launching calls, per launch", true) \
    X(COLUMN_DEVICE, "device_us", "device µs", "from the first launch to the last by the clock of the device, idle time too, per launch", true) \
    X(COLUMN_RATIO, "x_time", "x time", "beside one by one on one stream, or on one thread", true)
#define COPY_LIST(X) \
    X(COPY_WHAT, "what", "copies", "what was done with all chunks", false) \
    X(COPY_MS, "ms_median", "ms", "median time of all chunks", true) \
    X(COPY_STD, "ms_std", "std", "standard deviation of the samples", true) \
    X(COPY_N, "samples", "n", "samples", true) \
    X(COPY_RATE, "gb_per_s", "GB/s", "of the bytes of the chunks, once", true) \
    X(COPY_HIDDEN, "hidden_ms", "hidden ms", "beside the sum of the three parts alone", true) \
    X(COPY_SHARE, "hidden_percent", "hidden %", "of all that could be: the sum without the largest part", true)
/* clang-format on */
enum { COLUMN_LIST(TABLE_ID) COLUMNS };
enum { COPY_LIST(TABLE_ID) COPIES };
static const struct table_column columns[] = {COLUMN_LIST(TABLE_COLUMN)};
static const struct table_column copies[] = {COPY_LIST(TABLE_COLUMN)};
static const double US = 1e3; /* microseconds per millisecond */

/* The row that `p` is compared with: the baseline (way->base) for the same work. */
static const struct launch_point *base_of(const struct launch_run *r, const struct launch_point *p)
{
    for (int i = 0; i < r->points; i++) {
        const struct launch_point *b = &r->point[i];
        if (b->way->base && b->floats == p->floats && b->additions == p->additions) return b;
    }
    return NULL;
}

static void set_point(struct table *t, int row, const struct launch_run *r, struct arena *a)
{
    const struct launch_point *p = &r->point[row], *base = base_of(r, p);
    const struct stats *ms = &p->time.total;
    double us = US / r->options->launches; /* from ms of all launches to µs of one */
    table_set_text(t, row, COLUMN_WAY, p->way->name);
    if (p->floats) table_set_count(t, row, COLUMN_FLOATS, (double)p->floats, a);
    if (p->floats && r->gpu) table_set_count(t, row, COLUMN_ADDITIONS, p->additions, a);
    table_set(t, row, COLUMN_US, 3, us * ms->median, a);
    if (ms->n > 1) table_set(t, row, COLUMN_STD, 2, us * ms->std, a);
    table_set_count(t, row, COLUMN_N, p->time.samples, a);
    if (r->gpu) {
        table_set(t, row, COLUMN_HOST, 3, us * p->time.part[0].median, a);
        table_set(t, row, COLUMN_DEVICE, 3, us * p->device.median, a);
    }
    if (base && base->time.total.median > 0)
        table_set(t, row, COLUMN_RATIO, 3, ms->median / base->time.total.median, a);
}

/* --- copies ----------------------------------------------------------------------------------- */

static void set_times(struct table *t, int row, const char *what, const struct contender *c,
                      const struct launch_pipeline *l, struct arena *a)
{
    const struct stats *ms = &c->total;
    double bytes = (double)l->chunk_bytes * LAUNCH_CHUNKS;
    table_set_text(t, row, COPY_WHAT, what);
    table_set(t, row, COPY_MS, 4, ms->median, a);
    table_set_std(t, row, COPY_STD, ms, a);
    table_set_count(t, row, COPY_N, c->samples, a);
    if (ms->median > 0) table_set(t, row, COPY_RATE, 3, bytes / (ms->median * 1e-3) * 1e-9, a);
}

static void add_copies(const struct launch_run *r, struct sheet *s, struct arena *a)
{
    static const char *const parts[] = {"copy in, alone", "kernel, alone", "copy out, alone"};
    enum { SUMS = 2, ROWS = LAUNCH_PARTS + SUMS + BACKEND_STREAMS };
    const struct launch_pipeline *l = &r->pipeline;
    struct table *t = &sheet_add(s, "copies beside kernels", copies, COPIES, ROWS, a)->table;
    double part[LAUNCH_PARTS], sum = 0, largest = 0;
    int row = 0;
    for (int k = 0; k < LAUNCH_PARTS; k++) {
        part[k] = l->alone[k].total.median;
        sum += part[k];
        largest = fmax(largest, part[k]);
        set_times(t, row++, parts[k], &l->alone[k], l, a);
    }
    table_set_text(t, row, COPY_WHAT, "sum of the three");
    table_set(t, row++, COPY_MS, 4, sum, a);
    table_set_text(t, row, COPY_WHAT, "largest: the floor");
    table_set(t, row++, COPY_MS, 4, largest, a);
    for (int i = 0; i < BACKEND_STREAMS; i++, row++) {
        double ms = l->overlapped[i].total.median, share = launch_hidden(part, LAUNCH_PARTS, ms);
        const char *what = i ? arena_printf(a, "%d streams", i + 1) : "one stream";
        set_times(t, row, what, &l->overlapped[i], l, a);
        table_set(t, row, COPY_HIDDEN, 3, fmax(sum - ms, 0), a);
        if (isfinite(share)) table_set(t, row, COPY_SHARE, 3, 100 * share, a);
    }
}

/* --- sentences -------------------------------------------------------------------------------- */

static const char *answer_of_gpu(const struct launch_run *r, struct arena *a)
{
    char us[32];
    if (r->from < 0)
        return arena_printf(a,
                            "launches are not hidden: even kernels of %s µs are slower by more "
                            "than a tenth when they are launched one by one than in a graph",
                            str_number(us, US * r->alone[r->works - 1], 3));
    return arena_printf(a,
                        "launches are hidden from kernels of %s µs on: launched one by one, they "
                        "are slower than in a graph by a tenth at most",
                        str_number(us, US * r->alone[r->from], 3));
}

static const char *answer_of_cpu(const struct launch_run *r, struct arena *a)
{
    char empty[32], us[32];
    str_number(empty, US * r->point[0].time.total.median / r->options->launches, 3);
    if (r->threads == 1) return "there is one thread, so there is no team to start";
    if (r->from < 0)
        return arena_printf(a,
                            "an empty region of %d threads costs %s µs; a team for each operator "
                            "is not faster than one thread even for operators of %s µs",
                            r->threads, empty, str_number(us, US * r->alone[r->works - 1], 3));
    return arena_printf(a,
                        "an empty region of %d threads costs %s µs; a team for each operator is "
                        "faster than one thread from operators of %s µs on",
                        r->threads, empty, str_number(us, US * r->alone[r->from], 3));
}

void launch_sheet(const struct launch_run *r, struct sheet *s, struct arena *a)
{
    int launches = r->options->launches;
    char bytes[32];
    *s = (struct sheet){.name = "lab-launch"};
    s->title = r->gpu ? "lab launch: What does it cost to launch a kernel?"
                      : "lab launch: What does it cost to give an operator a team of threads?";
    struct sheet_table *all = sheet_add(s, NULL, columns, COLUMNS, r->points, a);
    for (int i = 0; i < r->points; i++) set_point(&all->table, i, r, a);
    all->chart = (struct sheet_chart){.kind = SHEET_BARS,
                                      .title = r->gpu ? "Time of a launch" : "Time of an operator",
                                      .label = {"way", "floats", "additions"},
                                      .labels = r->gpu ? 3 : 2,
                                      .y = "us_median",
                                      .spread = "us_std",
                                      .unit = SHEET_US};
    if (r->pipeline.chunk_bytes) add_copies(r, s, a);
    sheet_note(s, r->gpu ? answer_of_gpu(r, a) : answer_of_cpu(r, a));
    if (!r->gpu) {
        sheet_note(s, arena_printf(a,
                                   "each sample is %d operator%s y = y + 1; the fused row makes "
                                   "all additions of a float at once",
                                   launches, launches == 1 ? "" : "s"));
        return;
    }
    sheet_note(s, arena_printf(a,
                               "each sample is %d launch%s of y = y + 1, a thread for each float; "
                               "the fused row is one kernel that makes all additions",
                               launches, launches == 1 ? "" : "es"));
    sheet_note(s, arena_printf(a,
                               "the copies are %d chunks of %s of page-locked memory; additions to "
                               "each float: %d, so that a kernel takes about as long as a copy",
                               LAUNCH_CHUNKS, str_bytes(bytes, (double)r->pipeline.chunk_bytes),
                               r->pipeline.additions));
}

#include "view/launch_view.h"

#include "base/str.h"
#include "present/table_cells.h"

#include <math.h>
#include <string.h>

static const double US = 1e3; /* of a millisecond */

/* clang-format off */
#define COLUMNS(X) \
    X("way", "way", "how the work is started", TEXT, p->way->name) \
    X("floats", "floats", "that one kernel, or operator, works on", COUNT, p->floats, (double)p->floats) \
    X("additions", "additions", "to each of them, by one kernel", COUNT, p->floats && r->gpu, p->additions) \
    X("us_median", "µs", "median time of a launch, or operator: of all, over their number", NUMBER, true, 3, us * ms->median) \
    X("us_std", "std", "standard deviation of the samples", NUMBER, ms->n > 1, 2, us * ms->std) \
    X("samples", "n", "samples", COUNT, true, p->time.samples) \
    X("host_us", "host µs", "that the host spends in launching calls, per launch", NUMBER, r->gpu, 3, us * p->time.part[0].median) \
    X("device_us", "device µs", "from the first launch to the last by the clock of the device, idle time too, per launch", NUMBER, r->gpu, 3, us * p->device.median) \
    X("x_time", "x time", "beside one by one on one stream, or on one thread", NUMBER, base && base->time.total.median > 0, 3, ms->median / base->time.total.median)
/* `c`: NULL where `ms` is a sum or a bound that nothing was measured for. */
#define COPY(X) \
    X("what", "copies", "what was done with all chunks", TEXT, what) \
    X("ms_median", "ms", "median time of all chunks", NUMBER, true, 4, ms) \
    X("ms_std", "std", "standard deviation of the samples", STD, c, &c->total) \
    X("samples", "n", "samples", COUNT, c, c->samples) \
    X("gb_per_s", "GB/s", "of the bytes of the chunks, once", NUMBER, c && ms > 0, 3, bytes / (ms * 1e-3) * 1e-9) \
    X("hidden_ms", "hidden ms", "beside the sum of the three parts alone", NUMBER, true, 3, hidden_ms) \
    X("hidden_percent", "hidden %", "of all that could be: the sum without the largest part", NUMBER, true, 3, 100 * share)
/* clang-format on */
static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)},
                                 copies[] = {COPY(TABLE_COLUMN)};

/* The row that a row is compared with: the one way that is `base`, for the same work. */
static const struct launch_point *base_of(const struct launch_run *r, const struct launch_point *p)
{
    for (int i = 0; i < r->points; i++) {
        const struct launch_point *b = &r->point[i];
        if (b->way->base && b->floats == p->floats && b->additions == p->additions) return b;
    }
    return NULL;
}

static void set_point(struct table_row row, const struct launch_run *r,
                      const struct launch_point *p)
{
    const struct launch_point *base = base_of(r, p);
    const struct stats *ms = &p->time.total;
    double us = US / r->options->launches; /* of one, by milliseconds of all */
    COLUMNS(TABLE_CELL)
}

/* --- copies ----------------------------------------------------------------------------------- */

/* NAN: nothing was hidden by overlapping. */
static void set_copy(struct table_row *at, const char *what, double ms, const struct contender *c,
                     double bytes, double hidden_ms, double share)
{
    struct table_row row = *at;
    COPY(TABLE_CELL)
    table_next_row(at);
}

static void add_copies(const struct launch_run *r, struct sheet *s, struct arena *a)
{
    static const char *const parts[] = {"copy in, alone", "kernel, alone", "copy out, alone"};
    enum { SUMS = 2, ROWS = LAUNCH_PARTS + SUMS + BACKEND_STREAMS };
    const struct launch_pipeline *l = &r->pipeline;
    double part[LAUNCH_PARTS], sum = 0, largest = 0, bytes = (double)l->chunk_bytes * LAUNCH_CHUNKS;
    struct table_row row = {.arena = a};
    row.table = &sheet_add(s, "copies beside kernels", copies, COUNT_OF(copies), ROWS, a)->table;
    for (int k = 0; k < LAUNCH_PARTS; k++) {
        part[k] = l->alone[k].total.median;
        sum += part[k];
        largest = fmax(largest, part[k]);
        set_copy(&row, parts[k], part[k], &l->alone[k], bytes, NAN, NAN);
    }
    set_copy(&row, "sum of the three", sum, NULL, bytes, NAN, NAN);
    set_copy(&row, "largest: the floor", largest, NULL, bytes, NAN, NAN);
    for (int i = 0; i < BACKEND_STREAMS; i++) {
        double ms = l->overlapped[i].total.median;
        const char *what = i ? arena_printf(a, "%d streams", i + 1) : "one stream";
        set_copy(&row, what, ms, &l->overlapped[i], bytes, fmax(sum - ms, 0),
                 launch_hidden(part, LAUNCH_PARTS, ms));
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
    struct sheet_table *all = sheet_add(s, NULL, columns, COUNT_OF(columns), r->points, a);
    for (int i = 0; i < r->points; i++)
        set_point((struct table_row){&all->table, i, 0, a}, r, &r->point[i]);
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

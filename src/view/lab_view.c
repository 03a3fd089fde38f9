#include "view/lab_view.h"

#include "base/load.h"
#include "base/str.h"
#include "present/table_cells.h"
#include "view/launches_view.h"

#include <math.h>
#include <string.h>

/* clang-format off */
#define COLUMN_LIST(X) \
    X(COLUMN_RUNG, "rung", "rung", "the kernel; --show=RUNG prints its file", false) \
    X(COLUMN_SIZE, "size", "size", "of the problem, as --size takes it", false) \
    X(COLUMN_BYTES, "useful_bytes", "useful bytes", "each input and output once", true) \
    X(COLUMN_IDEA, "idea", "idea", "what it adds", false) \
    X(COLUMN_MS, "ms_median", "µs", "median time of a call; ms in CSV and JSON", true) \
    X(COLUMN_STD, "ms_std", "std", "standard deviation of the samples; likewise", true) \
    X(COLUMN_SAMPLES, "samples", "n", "number of samples", true) \
    X(COLUMN_RATE, "gb_per_s", "GB/s", "useful bytes per second: each input and output once", true) \
    X(COLUMN_FLOPS, "gflop_per_s", "GFLOP/s", "useful FLOPs per second", true) \
    X(COLUMN_MOVED, "bytes_per_flop", "B/FLOP", \
      "bytes that warps move to and from global memory, before any cache; of a CPU, to and from " \
      "L1; by count", true) \
    X(COLUMN_MOVED_SHARED, "shared_bytes_per_flop", "shared B/FLOP", \
      "bytes written to and read from shared memory, by count, per FLOP", true) \
    X(COLUMN_COUNTED, "mb_counted", "MB counted", \
      "bytes of a call by count: as in B/FLOP, or of a problem without FLOPs those of memory", true) \
    X(COLUMN_MEASURED, "mb_measured", "MB measured", "the same by hardware counters", true) \
    X(COLUMN_VERDICT, "verdict", "beside the one above", "by the rule of docs/MEASURING.md", false) \
    X(COLUMN_PREVIOUS, "times_previous", "x above", "speed relative to the rung above, in turns", true) \
    X(COLUMN_FIRST, "times_first", "x first", "speed relative to the first rung, in turns", true) \
    X(COLUMN_SHARE, "ceiling_percent", "% of ceiling", "time of the ceiling / time of the rung", true) \
    X(COLUMN_SCORE, "score_percent", "score", \
      "share of the way from the first rung (0) to the ceiling (100): log(first / rung) / log(first / ceiling)", true) \
    X(COLUMN_ERROR, "error", "error", "relative to double precision, by norm, the largest of all sizes", true) \
    X(COLUMN_GRID, "grid", "grid x block", "blocks x threads of a block", false) \
    X(COLUMN_REGISTERS, "registers", "regs", "registers of a thread", true) \
    X(COLUMN_SHARED, "shared_bytes", "shared", "shared memory of a block, bytes", true) \
    X(COLUMN_LOCAL, "local_bytes", "local", "local memory of a thread, bytes: spilled registers", true) \
    X(COLUMN_WARPS, "warps_per_sm", "warps/SM", "warps that a multiprocessor holds at once, of those it could", true) \
    X(COLUMN_LIMIT, "limited_by", "limited by", "what limits them", false) \
    X(COLUMN_WAVES, "waves", "waves", "blocks / blocks that the GPU holds at once", true) \
    X(COLUMN_NOTE, "note", "note", "why there is no time", false)
/* clang-format on */
enum { COLUMN_LIST(TABLE_ID) COLUMNS };
static const struct table_column columns[] = {COLUMN_LIST(TABLE_COLUMN)};

enum { IDEA = 120 };

static const char *idea_of(const struct lab_rung *r, struct arena *a)
{
    char idea[IDEA];
    return arena_strdup(a, lab_idea(r, idea, IDEA));
}

/* --- the list --------------------------------------------------------------------------------- */

/* "9, stride 32 to bulk" */
static const char *names_of(const struct lab_rung *r, struct arena *a)
{
    int n = 0;
    while (r[n].name) n++;
    return arena_printf(a, "%d, %s to %s", n, r[0].name, r[n - 1].name);
}

void lab_list_sheet(struct sheet *s, struct arena *a)
{
    static const struct table_column of_list[] = {
        {"ladder", "ladder", "name", false},
        {"question", "question", "what it answers", false},
        {"gpu", "rungs on a GPU", "from the first to the last", false},
        {"cpu", "rungs on a CPU", "from the first to the last", false},
    };
    int n = 0;
    while (lab_ladder_at(n)) n++;
    *s = (struct sheet){.name = "lab"};
    struct table *t = &sheet_add(s, NULL, of_list, COUNT_OF(of_list), n, a)->table;
    for (int i = 0; i < n; i++) {
        const struct lab_ladder *l = lab_ladder_at(i);
        table_set_text(t, i, 0, l->name);
        table_set_text(t, i, 1, l->question);
        table_set_text(t, i, 2, names_of(l->of_gpu, a));
        table_set_text(t, i, 3, names_of(l->of_cpu, a));
    }
}

/* --- the table of a run ----------------------------------------------------------------------- */

/* Sets a cell: its number is in milliseconds, its text in microseconds. */
static void set_us(struct table *t, int row, int column, int digits, double ms, struct arena *a)
{
    char text[32];
    *table_at(t, row, column) =
        (struct table_cell){arena_strdup(a, str_number(text, 1e3 * ms, digits)), ms};
}

static void set_resources(struct table *t, int row, const struct lab_result *x, struct arena *a)
{
    const struct kernel_resources *r = &x->resources;
    table_set_text(t, row, COLUMN_GRID, kernel_shape_text(&x->shape, a));
    if (r->registers < 0) {
        for (int c = COLUMN_REGISTERS; c <= COLUMN_WAVES; c++)
            *table_at(t, row, c) = (struct table_cell){"–", NAN};
        return;
    }
    table_set(t, row, COLUMN_REGISTERS, 0, r->registers, a);
    table_set(t, row, COLUMN_SHARED, 0, (double)r->shared_bytes, a);
    if (r->local_bytes) table_set(t, row, COLUMN_LOCAL, 0, (double)r->local_bytes, a);
    *table_at(t, row, COLUMN_WARPS) =
        (struct table_cell){arena_printf(a, "%d of %d", r->warps, r->max_warps), r->warps};
    if (r->limit) table_set_text(t, row, COLUMN_LIMIT, r->limit);
    if (x->waves > 0) table_set(t, row, COLUMN_WAVES, 3, x->waves, a);
}

static void set_speed(struct table *t, int row, int column, const struct judgement *j,
                      struct arena *a)
{
    if (j->verdict.kind) table_set(t, row, column, 3, j->verdict.speed, a);
}

/* "512x4096" */
static const char *size_word(const struct lab_run *r, struct arena *a)
{
    const char *s = "";
    for (int i = 0; i < LAB_SIZES && r->options->ladder->sizes[i]; i++)
        s = arena_printf(a, "%s%s%lld", s, i ? "x" : "", (long long)r->problem.n[i]);
    return s;
}

static void set_flops(struct table *t, int row, const struct lab_problem *p,
                      const struct lab_result *x, struct arena *a)
{
    const struct lab_rung *r = x->rung;
    table_set(t, row, COLUMN_FLOPS, 4, p->flops / x->time.total.median * 1e-6, a);
    if (r->moved) table_set(t, row, COLUMN_MOVED, 3, r->moved(p) / p->flops, a);
    if (r->shared) table_set(t, row, COLUMN_MOVED_SHARED, 3, r->shared(p) / p->flops, a);
}

/* `sizes`: the table has runs of several sizes. */
static void set_result(struct table *t, int row, const struct lab_run *r,
                       const struct lab_result *x, bool sizes, struct arena *a)
{
    table_set_text(t, row, COLUMN_RUNG, x->rung->name);
    if (sizes) {
        table_set_text(t, row, COLUMN_SIZE, size_word(r, a));
        table_set_bytes(t, row, COLUMN_BYTES, (int64_t)r->problem.bytes, a);
    }
    if (!sizes) table_set_text(t, row, COLUMN_IDEA, idea_of(x->rung, a));
    if (isfinite(x->error)) table_set_error(t, row, COLUMN_ERROR, x->error, a);
    if (x->left_out) {
        table_set_text(t, row, COLUMN_NOTE, x->left_out);
        return;
    }
    const struct stats *ms = &x->time.total;
    set_us(t, row, COLUMN_MS, 4, ms->median, a);
    if (ms->n > 1) set_us(t, row, COLUMN_STD, 2, ms->std, a);
    table_set(t, row, COLUMN_SAMPLES, 0, ms->n, a);
    if (r->problem.flops > 0)
        set_flops(t, row, &r->problem, x, a);
    else
        table_set(t, row, COLUMN_RATE, 4, x->rate * 1e-9, a);
    table_set_text(t, row, COLUMN_VERDICT, judge_name(&x->previous));
    set_speed(t, row, COLUMN_PREVIOUS, &x->previous, a);
    set_speed(t, row, COLUMN_FIRST, &x->first, a);
    if (isfinite(x->share)) table_set(t, row, COLUMN_SHARE, 3, 100 * x->share, a);
    if (isfinite(x->score)) table_set(t, row, COLUMN_SCORE, 3, 100 * x->score, a);
    if (isfinite(x->measured)) {
        if (isfinite(x->counted)) table_set(t, row, COLUMN_COUNTED, 4, 1e-6 * x->counted, a);
        table_set(t, row, COLUMN_MEASURED, 4, 1e-6 * x->measured, a);
    }
    if (x->shape.grid[0]) set_resources(t, row, x, a);
}

/* --- why -------------------------------------------------------------------------------------- */

static void add_reasons(const struct lab_run *r, struct sheet *s, struct arena *a)
{
    static const struct table_column of_why[] = {
        {"rung", "rung", "the kernel", false},
        {"why", "why it is as fast as it is", "from its bytes and times", false},
    };
    int n = 0;
    for (int i = 0; i < r->results; i++) n += r->result[i].why != NULL;
    if (!n) return;
    struct table *t = &sheet_add(s, NULL, of_why, COUNT_OF(of_why), n, a)->table;
    for (int i = n = 0; i < r->results; i++) {
        if (!r->result[i].why) continue;
        table_set_text(t, n, 0, r->result[i].rung->name);
        table_set_text(t, n++, 1, r->result[i].why);
    }
}

/* --- roofline --------------------------------------------------------------------------------- */

/* The roofs of the roofline, memory bytes/s and FLOP/s: the peaks measured on this machine, else
 * the data sheet and the fastest rung. */
static void roofs_of(const struct lab_run *r, double *ret_rate, double *ret_flops)
{
    const struct lab_options *o = r->options;
    const struct machine *m = o->machine;
    struct device_facts f;
    bool tf32 = r->problem.type == LAB_TF32;
    const struct machine_peak *peak =
        m ? machine_peak(m, machine_precision(r->problem.dtype, tf32)) : NULL;
    const struct machine_copy *copy = m ? machine_copy_large(m) : NULL;
    *ret_flops = peak ? peak->flops : 0;
    *ret_rate = copy ? copy->moved : 0;
    for (int i = 0; i < r->results; i++)
        if (!r->result[i].left_out)
            *ret_flops = fmax(*ret_flops, r->problem.flops / r->result[i].time.total.median * 1e3);
    if (*ret_rate <= 0 && o->device.backend->devices.describe(o->device.number, &f) == ST_OK)
        *ret_rate = f.memory_rate;
}

static void set_dot(struct table *t, int row, const char *name, double intensity, double flops,
                    struct arena *a)
{
    table_set_text(t, row, 0, name);
    table_set(t, row, 1, 4, intensity, a);
    table_set(t, row, 2, 4, flops * 1e-9, a);
}

/* Adds a roofline (Williams, Waterman, Patterson 2009) with one dot per rung; the roofs are a line
 * of three points. */
static void add_roofline(const struct lab_run *r, struct sheet *s, struct arena *a)
{
    static const struct table_column of_dot[] = {
        {"rung", "rung", "the kernel", false},
        {"flop_per_byte", "FLOP per byte of global memory before caches (CPU: L1), by count",
         "useful FLOPs / bytes", true},
        {"gflop_per_s", "GFLOP/s", "useful FLOPs per second", true},
    };
    double rate, peak, low = INFINITY, high = 0;
    int n = 0;
    for (int i = 0; i < r->results; i++) {
        const struct lab_result *x = &r->result[i];
        if (x->left_out || !x->rung->moved || r->problem.flops <= 0) continue;
        double intensity = r->problem.flops / x->rung->moved(&r->problem);
        low = fmin(low, intensity);
        high = fmax(high, intensity);
        n++;
    }
    if (!n) return;
    roofs_of(r, &rate, &peak);
    int roofs = rate > 0 ? 3 : 0, row = 0;
    struct sheet_table *all = sheet_add(s, "roofline", of_dot, COUNT_OF(of_dot), n + roofs, a);
    all->drawn_only = true;
    all->chart = (struct sheet_chart){.kind = SHEET_LINES,
                                      .title = "above the slope, caches deliver what memory cannot",
                                      .label = {"rung"},
                                      .labels = 1,
                                      .x = "flop_per_byte",
                                      .y = "gflop_per_s",
                                      .unit = SHEET_GFLOP_PER_S};
    if (roofs) {
        const char *name = "roof: memory's bandwidth, and the fastest matmul";
        double ridge = peak / rate;
        set_dot(&all->table, row++, name, fmin(low, ridge / 2), fmin(low, ridge / 2) * rate, a);
        set_dot(&all->table, row++, name, ridge, peak, a);
        set_dot(&all->table, row++, name, fmax(high, 2 * ridge), peak, a);
    }
    for (int i = 0; i < r->results; i++) {
        const struct lab_result *x = &r->result[i];
        if (x->left_out || !x->rung->moved) continue;
        set_dot(&all->table, row++, x->rung->name, r->problem.flops / x->rung->moved(&r->problem),
                r->problem.flops / x->time.total.median * 1e3, a);
    }
}

/* --- sources and samples ---------------------------------------------------------------------- */

static void add_sources(const struct lab_run *r, struct sheet *s, struct arena *a)
{
    static const struct table_column of_source[] = {
        {"rung", "rung", "the kernel", false},
        {"source", "source", "its file", false},
    };
    int n = 0;
    int64_t bytes;
    for (int i = 0; i < r->results; i++) n += lab_source(r->result[i].rung, &bytes) != NULL;
    struct sheet_table *all = sheet_add(s, "sources", of_source, COUNT_OF(of_source), n, a);
    all->drawn_only = true;
    all->chart = (struct sheet_chart){
        .kind = SHEET_TEXTS, .title = "sources", .label = {"rung"}, .labels = 1, .y = "source"};
    for (int i = n = 0; i < r->results; i++) {
        const struct lab_rung *rung = r->result[i].rung;
        const char *source = lab_source(rung, &bytes);
        if (!source) continue;
        table_set_text(&all->table, n, 0, rung->name);
        table_set_text(&all->table, n++, 1, source);
    }
}

static int samples_of(const struct lab_run *r)
{
    int rows = r->copy ? r->copy_time.taken : 0;
    for (int i = 0; i < r->results; i++) rows += r->result[i].time.taken;
    return rows;
}

static void add_samples(const struct lab_run *const *r, int runs, struct sheet *s, struct arena *a)
{
    static const struct table_column of_sample[] = {
        {"useful_bytes", "useful bytes", "of the problem", true},
        {"rung", "rung", "the kernel, or a copy of as many bytes by the device itself", false},
        {"turn", "turn", "samples of one turn are neighbours in time", true},
        {"ms", "ms", "of a call", true},
    };
    int rows = 0, row = 0;
    for (int k = 0; k < runs; k++) rows += samples_of(r[k]);
    if (!rows) return;
    struct sheet_table *all = sheet_add(s, "samples", of_sample, COUNT_OF(of_sample), rows, a);
    all->drawn_only = true;
    for (int k = 0; k < runs; k++)
        for (int i = r[k]->copy ? -1 : 0; i < r[k]->results; i++) {
            const struct contender *c = i < 0 ? &r[k]->copy_time : &r[k]->result[i].time;
            for (int n = 0; n < c->taken; n++, row++) {
                table_set(&all->table, row, 0, 0, r[k]->problem.bytes, a);
                table_set_text(&all->table, row, 1,
                               i < 0 ? r[k]->copy : r[k]->result[i].rung->name);
                table_set(&all->table, row, 2, 0, c->round[n], a);
                table_set(&all->table, row, 3, 6, c->series[n], a);
            }
        }
}

/* --- the sheet -------------------------------------------------------------------------------- */

static const char *sizes_of(const struct lab_run *r, struct arena *a)
{
    const char *const *name = r->options->ladder->sizes, *s = "";
    char number[32];
    for (int i = 0; i < LAB_SIZES && name[i]; i++)
        s = arena_printf(a, "%s%s%s = %s", s, i ? ", " : "", name[i],
                         str_thousands(number, r->problem.n[i]));
    return s;
}

static void note_ceiling(const struct lab_run *r, struct sheet *s, struct arena *a)
{
    char us[32], copy[32];
    if (r->copy)
        sheet_note(
            s, arena_printf(a,
                            "ceiling: %s: %s µs for the useful bytes, %.4g GB/s; in turns with the "
                            "rungs, %s took %s µs",
                            r->ceiling, str_number(us, 1e3 * r->ceiling_ms, 4),
                            r->problem.bytes / r->ceiling_ms * 1e-6, r->copy,
                            str_number(copy, 1e3 * r->copy_time.total.median, 4)));
    else if (r->ceiling)
        sheet_note(s, arena_printf(a, "ceiling: %s, timed in turns with the rungs", r->ceiling));
    else
        sheet_note(s, "no ceiling: the library was not timed");
}

static void add_notes(const struct lab_run *r, struct sheet *s, struct arena *a)
{
    char bytes[32];
    note_ceiling(r, s, a);
    const struct machine *m = r->options->machine;
    if (m && r->copy && r->ceiling != r->copy && load_is_busy(m->others))
        sheet_note(s, "other programs used the machine when that was measured, so the ceiling may "
                      "be too low; strobe machine measures it again");
    str_bytes(bytes, (double)r->sets * (double)lab_set_bytes(&r->problem));
    if (r->cold)
        sheet_note(s, arena_printf(a,
                                   "cold caches: calls go through %d set%s of tensors, %s in all, "
                                   "so that no cache has them (--warm: one set)",
                                   r->sets, r->sets == 1 ? "" : "s", bytes));
    else
        sheet_note(s, arena_printf(a, "%d set%s of tensors, %s in all: the caches may have them",
                                   r->sets, r->sets == 1 ? "" : "s", bytes));
    for (int i = 0; i < r->results; i++) {
        if (!r->copy || !(r->result[i].share > 1.02)) continue;
        sheet_note(s, "above 100 %: a kernel that mostly reads can be faster than a copy, and one "
                      "that streams faster than memcpy");
        break;
    }
    sheet_note(s, arena_printf(a,
                               "every rung was compared with double precision at %s and at odd "
                               "sizes, before and after the timing; allowed error %.2g",
                               sizes_of(r, a), r->tolerance));
}

/* "limits: 64 registers of a thread, 1 block of the grid; a score of 100 is ..." */
static void note_limits(const struct lab_limits *l, struct sheet *s, struct arena *a)
{
    const struct {
        int64_t n;
        const char *what;
    } all[] = {{l->registers, "registers of a thread"},
               {l->shared_bytes, "bytes of shared memory of a block"},
               {l->threads, "threads of a block"},
               {l->blocks, "blocks of the grid"}};
    const char *words = "";
    for (int i = 0; i < COUNT_OF(all); i++)
        if (all[i].n)
            words = arena_printf(a, "%s%s%lld %s", words, *words ? ", " : "", (long long)all[i].n,
                                 all[i].what);
    if (*words)
        sheet_note(
            s,
            arena_printf(a, "limits: %s; a score of 100 is the fastest kernel within them", words));
}

/* Notes for several sizes, which have different ceilings and caches. */
static void note_sizes(struct sheet *s, const struct lab_run *r, struct arena *a)
{
    if (r->copy)
        sheet_note(s, arena_printf(a,
                                   "%% of ceiling: the faster of %s of as many bytes, timed in "
                                   "turns with the rungs of a size, and of the record of strobe "
                                   "machine; run one size alone to see it",
                                   r->copy));
    else
        note_ceiling(r, s, a);
    sheet_note(s, arena_printf(a,
                               "calls go through as many sets of tensors as exceed twice the last "
                               "cache, at most %d: small sizes may stay in the caches",
                               TRIAL_SETS));
    sheet_note(s, "every rung was compared with double precision at every size and at odd sizes, "
                  "before and after the timing");
}

void lab_sheet(const struct lab_run *const *r, int runs, bool reasons, struct sheet *s,
               struct arena *a)
{
    const struct lab_ladder *l = r[0]->options->ladder;
    const char *form = l->forms[r[0]->problem.form];
    const char *what =
        arena_printf(a, "%s%s%s", form ? form : "", form ? ", " : "",
                     runs > 1 ? arena_printf(a, "%d sizes", runs) : sizes_of(r[0], a));
    int rows = 0, row = 0;
    *s = (struct sheet){.name = arena_printf(a, "lab-%s", l->name)};
    s->title = arena_printf(a, "lab %s, %s, %s: %s", l->name, what,
                            lab_type_name(r[0]->problem.type), l->question);
    for (int k = 0; k < runs; k++) rows += r[k]->results;
    struct sheet_table *t = sheet_add(s, NULL, columns, COLUMNS, rows, a);
    for (int k = 0; k < runs; k++)
        for (int i = 0; i < r[k]->results; i++, row++)
            set_result(&t->table, row, r[k], &r[k]->result[i], runs > 1, a);
    bool flops = r[0]->problem.flops > 0;
    t->chart = (struct sheet_chart){
        .kind = runs > 1 ? SHEET_LINES : SHEET_BARS,
        .title = arena_printf(a, "%s: useful %s per second", l->name, flops ? "FLOPs" : "bytes"),
        .label = {"rung"},
        .labels = 1,
        .y = flops ? "gflop_per_s" : "gb_per_s",
        .x = runs > 1 ? "useful_bytes" : NULL,
        .unit = flops ? SHEET_GFLOP_PER_S : SHEET_GB_PER_S};
    if (runs == 1 && reasons) add_reasons(r[0], s, a);
    if (runs == 1)
        add_notes(r[0], s, a);
    else
        note_sizes(s, r[0], a);
    note_limits(&r[0]->options->limits, s, a);
    if (r[0]->no_counters)
        sheet_note(s, arena_printf(a, "no hardware counters: %s", r[0]->no_counters));
    else if (r[0]->options->counters)
        sheet_note(
            s, flops ? "MB measured: by hardware counters, loads and stores of warps in sectors "
                       "of 32 bytes before any cache; where tensor maps copy, what comes from L2"
                     : "MB measured: by hardware counters, bytes of DRAM read and written");
    if (runs == 1) add_roofline(r[0], s, a);
    add_sources(r[0], s, a);
    add_samples(r, runs, s, a);
}

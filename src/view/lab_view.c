#include "view/lab_view.h"

#include "base/load.h"
#include "base/str.h"
#include "present/table_cells.h"
#include "view/launches_view.h"

#include <math.h>
#include <string.h>

/* clang-format off */
#define COLUMNS(X) \
    X("rung", "rung", "the kernel; --show=RUNG prints its file", TEXT, x->rung->name) \
    X("size", "size", "of the problem, as --size takes it", TEXT, sizes ? size_word(r, row.arena) : NULL) \
    X("useful_bytes", "useful bytes", "each input and output once", BYTES, sizes, (int64_t)p->bytes) \
    X("idea", "idea", "what it adds", TEXT, sizes ? NULL : idea_of(x->rung, row.arena)) \
    X("ms_median", "µs", "median time of a call; ms in CSV and JSON", US, ran, 4, ms->median) \
    X("ms_std", "std", "standard deviation of the samples; likewise", US, ran && ms->n > 1, 2, ms->std) \
    X("samples", "n", "number of samples", NUMBER, ran, 0, ms->n) \
    X("gb_per_s", "GB/s", "useful bytes per second: each input and output once", NUMBER, ran && !flops, 4, x->rate * 1e-9) \
    X("gflop_per_s", "GFLOP/s", "useful FLOPs per second", NUMBER, ran && flops, 4, p->flops / ms->median * 1e-6) \
    X("bytes_per_flop", "B/FLOP", "bytes that warps move to and from global memory, before any cache; of a CPU, to and from L1; by count", NUMBER, ran && flops && x->rung->moved, 3, x->rung->moved(p) / p->flops) \
    X("shared_bytes_per_flop", "shared B/FLOP", "bytes written to and read from shared memory, by count, per FLOP", NUMBER, ran && flops && x->rung->shared, 3, x->rung->shared(p) / p->flops) \
    X("mb_counted", "MB counted", "bytes of a call by count: as in B/FLOP, or of a problem without FLOPs those of memory", NUMBER, ran && isfinite(x->measured), 4, 1e-6 * x->counted) \
    X("mb_measured", "MB measured", "the same by hardware counters", NUMBER, ran, 4, 1e-6 * x->measured) \
    X("verdict", "beside the one above", "by the rule of docs/MEASURING.md", TEXT, ran ? judge_name(&x->previous) : NULL) \
    X("times_previous", "x above", "speed relative to the rung above, in turns", NUMBER, ran && x->previous.verdict.kind, 3, x->previous.verdict.speed) \
    X("times_first", "x first", "speed relative to the first rung, in turns", NUMBER, ran && x->first.verdict.kind, 3, x->first.verdict.speed) \
    X("ceiling_percent", "% of ceiling", "time of the ceiling / time of the rung", NUMBER, ran, 3, 100 * x->share) \
    X("score_percent", "score", "share of the way from the first rung (0) to the ceiling (100): log(first / rung) / log(first / ceiling)", NUMBER, ran, 3, 100 * x->score) \
    X("error", "error", "relative to double precision, by norm, the largest of all sizes", ERROR, isfinite(x->error), x->error) \
    X("grid", "grid x block", "blocks x threads of a block", TEXT, shape ? kernel_shape_text(&x->shape, row.arena) : NULL) \
    X("registers", "regs", "registers of a thread", COMPILED, true, 0, of->registers) \
    X("shared_bytes", "shared", "shared memory of a block, bytes", COMPILED, true, 0, (double)of->shared_bytes) \
    X("local_bytes", "local", "local memory of a thread, bytes: spilled registers", COMPILED, of->local_bytes, 0, (double)of->local_bytes) \
    X("warps_per_sm", "warps/SM", "warps that a multiprocessor holds at once, of those it could", WARPS, of) \
    X("limited_by", "limited by", "what limits them", TEXT, !shape ? NULL : of->registers < 0 ? "–" : of->limit) \
    X("waves", "waves", "blocks / blocks that the GPU holds at once", COMPILED, x->waves > 0, 3, x->waves) \
    X("note", "note", "why there is no time", TEXT, x->left_out)
/* clang-format on */

/* Kinds of columns of this table alone: what the compiler says about a GPU kernel, else a dash. */
enum { TABLE_IS_COMPILED = true, TABLE_IS_WARPS = true };
#define TABLE_COMPILED(known, digits, x)               \
    TABLE_SHOWN(shape && of->registers < 0, "–", NAN); \
    TABLE_NUMBER(shape && of->registers >= 0 && (known), digits, x)
#define TABLE_WARPS(of)                                \
    TABLE_SHOWN(shape && of->registers < 0, "–", NAN); \
    TABLE_SHOWN(shape && of->registers >= 0,           \
                arena_printf(row.arena, "%d of %d", of->warps, of->max_warps), of->warps)

static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

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

/* "512x4096" */
static const char *size_word(const struct lab_run *r, struct arena *a)
{
    const char *s = "";
    for (int i = 0; i < LAB_SIZES && r->options->ladder->sizes[i]; i++)
        s = arena_printf(a, "%s%s%lld", s, i ? "x" : "", (long long)r->problem.n[i]);
    return s;
}

/* `sizes`: there are runs of several sizes. */
static void set_result(struct table_row row, const struct lab_run *r, const struct lab_result *x,
                       bool sizes)
{
    const struct lab_problem *p = &r->problem;
    const struct stats *ms = &x->time.total;
    const struct kernel_resources *of = &x->resources;
    bool ran = !x->left_out, flops = p->flops > 0, shape = ran && x->shape.grid[0];
    COLUMNS(TABLE_CELL)
}

/* --- why, and sources ------------------------------------------------------------------------- */

/* clang-format off */
#define REASON(X) \
    X("rung", "rung", "the kernel or encoder", TEXT, rung->name) \
    X("why", "why it is as fast as it is", "from its bytes and times", TEXT, why)
#define SOURCE(X) \
    X("rung", "rung", "the kernel or encoder", TEXT, rung->name) \
    X("source", "source", "its file", TEXT, lab_source(rung, &(int64_t){0}))
/* clang-format on */

void lab_add_reasons(struct sheet *s, int rungs, const struct lab_rung *const *of,
                     const char *const *reason, struct arena *a)
{
    static const struct table_column of_why[] = {REASON(TABLE_COLUMN)};
    struct table_row row = {.arena = a};
    int n = 0;
    for (int i = 0; i < rungs; i++) n += reason[i] != NULL;
    if (!n) return;
    row.table = &sheet_add(s, NULL, of_why, COUNT_OF(of_why), n, a)->table;
    for (int i = 0; i < rungs; i++) {
        const struct lab_rung *rung = of[i];
        const char *why = reason[i];
        if (!why) continue;
        REASON(TABLE_CELL)
        table_next_row(&row);
    }
}

void lab_add_sources(struct sheet *s, int rungs, const struct lab_rung *const *of, struct arena *a)
{
    static const struct table_column of_source[] = {SOURCE(TABLE_COLUMN)};
    struct table_row row = {.arena = a};
    int64_t bytes;
    int n = 0;
    for (int i = 0; i < rungs; i++) n += lab_source(of[i], &bytes) != NULL;
    struct sheet_table *all = sheet_add(s, "sources", of_source, COUNT_OF(of_source), n, a);
    all->drawn_only = true;
    all->chart = (struct sheet_chart){
        .kind = SHEET_TEXTS, .title = "sources", .label = {"rung"}, .labels = 1, .y = "source"};
    row.table = &all->table;
    for (int i = 0; i < rungs; i++) {
        const struct lab_rung *rung = of[i];
        if (!lab_source(rung, &bytes)) continue;
        SOURCE(TABLE_CELL)
        table_next_row(&row);
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

/* --- samples ---------------------------------------------------------------------------------- */

static int samples_of(const struct lab_run *r)
{
    int rows = r->copy ? r->copy_time.taken : 0;
    for (int i = 0; i < r->results; i++) rows += r->result[i].time.taken;
    return rows;
}

/* clang-format off */
#define SAMPLE(X) \
    X("useful_bytes", "useful bytes", "of the problem", NUMBER, true, 0, r[k]->problem.bytes) \
    X("rung", "rung", "the kernel, or a copy of as many bytes by the device itself", TEXT, i < 0 ? r[k]->copy : r[k]->result[i].rung->name) \
    X("turn", "turn", "samples of one turn are neighbors in time", NUMBER, true, 0, c->round[n]) \
    X("ms", "ms", "of a call", NUMBER, true, 6, c->series[n])
/* clang-format on */

static void add_samples(const struct lab_run *const *r, int runs, struct sheet *s, struct arena *a)
{
    static const struct table_column of_sample[] = {SAMPLE(TABLE_COLUMN)};
    struct table_row row = {.arena = a};
    int rows = 0;
    for (int k = 0; k < runs; k++) rows += samples_of(r[k]);
    if (!rows) return;
    struct sheet_table *all = sheet_add(s, "samples", of_sample, COUNT_OF(of_sample), rows, a);
    all->drawn_only = true;
    row.table = &all->table;
    for (int k = 0; k < runs; k++)
        for (int i = r[k]->copy ? -1 : 0; i < r[k]->results; i++) {
            const struct contender *c = i < 0 ? &r[k]->copy_time : &r[k]->result[i].time;
            for (int n = 0; n < c->taken; n++) {
                SAMPLE(TABLE_CELL)
                table_next_row(&row);
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
    struct sheet_table *t = sheet_add(s, NULL, columns, COUNT_OF(columns), rows, a);
    for (int k = 0; k < runs; k++)
        for (int i = 0; i < r[k]->results; i++, row++)
            set_result((struct table_row){&t->table, row, 0, a}, r[k], &r[k]->result[i], runs > 1);
    bool flops = r[0]->problem.flops > 0;
    t->chart = (struct sheet_chart){
        .kind = runs > 1 ? SHEET_LINES : SHEET_BARS,
        .title = arena_printf(a, "%s: useful %s per second", l->name, flops ? "FLOPs" : "bytes"),
        .label = {"rung"},
        .labels = 1,
        .y = flops ? "gflop_per_s" : "gb_per_s",
        .x = runs > 1 ? "useful_bytes" : NULL,
        .unit = flops ? SHEET_GFLOP_PER_S : SHEET_GB_PER_S};
    const struct lab_rung **rung = ARENA_NEW(a, const struct lab_rung *, r[0]->results);
    const char **why = ARENA_NEW(a, const char *, r[0]->results);
    for (int i = 0; i < r[0]->results; i++) {
        rung[i] = r[0]->result[i].rung;
        why[i] = r[0]->result[i].why;
    }
    if (runs == 1 && reasons) lab_add_reasons(s, r[0]->results, rung, why, a);
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
    lab_add_sources(s, r[0]->results, rung, a);
    add_samples(r, runs, s, a);
}

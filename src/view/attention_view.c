#include "view/attention_view.h"

#include "base/arena.h"
#include "base/str.h"
#include "present/plot.h"
#include "view/ceilings.h"

#include <jansson.h>

/* clang-format off */
#define COLUMNS(X) \
    X("dtype", "dtype", "type of q, k, v and the output", TEXT, machine_precision_name(c->precision)) \
    X("head_size", "D", "columns of a head", NUMBER, true, 0, (double)c->D) \
    X("causal", "causal", "false: every query attends to every key", TEXT, c->causal ? "true" : "false") \
    X("T", "T", "tokens per sequence", NUMBER, true, 0, (double)c->T) \
    X("B", "B", "sequences", NUMBER, true, 0, (double)c->B) \
    X("heads", "H", "query heads", NUMBER, true, 0, (double)c->H) \
    X("attention", "attention", "slow (unfused) at a rung of fusion, or flash", TEXT, attention_variant_name(c->way)) \
    X("forward_kernel", "kernel fwd", "kernel row of the plan, as in strobe check", TEXT, c->bytes ? c->kernel[0] : NULL) \
    X("backward_kernel", "kernel bwd", "kernel row of the plan", TEXT, c->bytes ? c->kernel[1] : NULL) \
    X("forward_ms", "forward ms", "median", NUMBER, ran, 4, fwd->median) \
    X("forward_std", "std", "standard deviation", STD, ran, fwd) \
    X("backward_ms", "backward ms", "median", NUMBER, ran, 4, bwd->median) \
    X("backward_std", "std", "standard deviation", STD, ran, bwd) \
    X("samples", "n", "number of samples", NUMBER, ran, 0, c->both.n) \
    X("order", "order", "fastest, forward + backward; the others beside it, by the rule of docs/MEASURING.md", TEXT, attention_order_words(c)) \
    X("forward_gflop_per_s", "GFLOP/s fwd", "FLOPs of attention per second", FLOPS, ran, c->forward_flops / fwd->median * 1e3) \
    X("backward_gflop_per_s", "GFLOP/s bwd", "FLOPs of attention per second", FLOPS, ran, c->backward_flops / bwd->median * 1e3) \
    X("forward_clocks_per_tile", "clk/tile fwd", "clock cycles of one SM for 128 x 128 scores", NUMBER, ran && clocks > 0, 4, fwd->median * clocks) \
    X("backward_clocks_per_tile", "clk/tile bwd", "clock cycles of one SM for 128 x 128 scores", NUMBER, ran && clocks > 0, 4, bwd->median * clocks) \
    X("clock_mhz", "MHz", "SM clock during the measurement, or the nominal clock", SHOWN, ran && clocks > 0, arena_printf(row.arena, "%.0f%s", c->clock_mhz, c->clock_sampled ? "" : " nominal"), c->clock_mhz) \
    X("forward_bound_percent", "% bound fwd", "lower bound by FLOPs or bytes, as a share of the time", NUMBER, ran && bound[0] > 0, 3, 100 * bound[0] / fwd->median) \
    X("backward_bound_percent", "% bound bwd", "lower bound by FLOPs or bytes, as a share of the time", NUMBER, ran && bound[1] > 0, 3, 100 * bound[1] / bwd->median) \
    X("error_y", "error y", "relative error against double precision, by norm", FORMAT, ran && c->error_y >= 0, "%.1e", c->error_y) \
    X("error_dqkv", "error dqkv", "relative error against double precision, by norm", FORMAT, ran && c->error_dqkv >= 0, "%.1e", c->error_dqkv) \
    X("forward_times_flash", "x flash fwd", "median of flash / median: no verdict", NUMBER, ran && beside_flash, 3, flash->forward.median / fwd->median) \
    X("backward_times_flash", "x flash bwd", "median of flash / median: no verdict", NUMBER, ran && beside_flash, 3, flash->backward.median / bwd->median) \
    X("times_slow_op", "x slow op", "median of slow op / median: no verdict", NUMBER, ran && !slow->reason, 3, slow->both.median / c->both.median) \
    X("bytes", "memory", "memory of the plan, with inputs and outputs", BYTES, c->bytes, c->bytes) \
    X("kernels", "calls", "kernel calls of one forward and backward pass", NUMBER, c->bytes, 0, c->kernels) \
    X("note", "note", "why the cell was not measured", TEXT, c->reason)
/* clang-format on */

static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

/* --- the table -------------------------------------------------------------------------------- */

/* The cell of another variant with the same shape and type. */
static const struct attention_cell *cell_of_variant(const struct attention_cell *c,
                                                    enum attention_variant way)
{
    return c - c->way + way;
}

/* `processors`: 0: not a GPU. */
static void set_row(struct table_row row, const struct attention_cell *c, const struct machine *m,
                    int processors)
{
    const struct attention_cell *flash = cell_of_variant(c, FLASH);
    const struct attention_cell *slow = cell_of_variant(c, SLOW_OP);
    const struct stats *fwd = &c->forward, *bwd = &c->backward;
    bool ran = !c->reason;
    bool beside_flash = c != flash && attention_variant_is_flash(c->way) && !flash->reason;
    double clocks = c->clock_mhz > 0 ? c->clock_mhz * 1e3 * processors / attention_tiles(c) : 0;
    double bound[2] = {0};
    for (int k = 0; k < 2 && ran; k++) bound[k] = attention_bound_ms(c, m, k);
    COLUMNS(TABLE_CELL)
}

/* SMs of the GPU; 0: not a GPU. */
static int processors_of(const struct attention_options *o)
{
    struct device_facts f;
    if (o->device.backend->host_memory) return 0;
    return o->device.backend->devices.describe(o->device.number, &f) == ST_OK ? f.processors : 0;
}

struct table attention_table(const struct attention_view *v, struct arena *a)
{
    int n = v->cells / ATTENTION_VARIANTS * __builtin_popcount(v->o->ways), row = 0;
    struct table t = table_new(columns, COUNT_OF(columns), n, a);
    int processors = processors_of(v->o);
    if (!v->o->device.backend->host_memory) table_form_tera(&t, a);
    for (int i = 0; i < v->cells; i++)
        if (v->o->ways >> v->cell[i].way & 1)
            set_row((struct table_row){&t, row++, 0, a}, &v->cell[i], v->machine, processors);
    return t;
}

/* --- notes about the columns ------------------------------------------------------------------ */

static const char flops_note[] =
    "FLOPs: the count for attention, 4 B H T^2 D forward (half of it if causal) and 2.5 times "
    "that backward, whatever else a variant computes";

static bool any_nominal(const struct attention_view *v)
{
    for (int i = 0; i < v->cells; i++)
        if (!v->cell[i].reason && !v->cell[i].clock_sampled) return true;
    return false;
}

/* Whether more than the first variant of flash attention was requested. */
static bool several_flash(const struct attention_view *v)
{
    for (int way = 0; way < ATTENTION_VARIANTS; way++)
        if (way != FLASH && v->o->ways >> way & 1 &&
            attention_variant_is_flash((enum attention_variant)way))
            return true;
    return false;
}

static const char *notes(const struct attention_view *v, struct arena *a)
{
    const char *s = "ms: the median of n samples, and their standard deviation";
    if (several_flash(v))
        s = arena_printf(a,
                         "%s\nportable: without the kernels for compute capability 9.0; "
                         "deterministic: the same bits in every run; x flash: the median of "
                         "`flash` of the same shape / the median, no verdict",
                         s);
    s = arena_printf(a, "%s\n%s", s, flops_note);
    if (processors_of(v->o))
        s = arena_printf(a,
                         "%s\nclk/tile: time x clock x %d SMs / tiles of 128 x 128 scores that "
                         "are not fully masked; the clock is the mean of the samples while the "
                         "variants of the shape ran in turn%s",
                         s, processors_of(v->o),
                         any_nominal(v) ? ", or the nominal clock without samples" : "");
    s = arena_printf(a,
                     "%s\nbound: the longer of those FLOPs at the measured matmul peak and the "
                     "bytes of q, k, v and y (backward also dy, dq, dk and dv) at the measured "
                     "copy bandwidth, as a share of the time",
                     s);
    if (v->o->check)
        s = arena_printf(a,
                         "%s\nerror: y, and dq, dk, dv together, against double precision, by "
                         "norm; of the first and the last head, with a dy of at most 64 nonzero "
                         "rows",
                         s);
    return s;
}

static json_t *make_json(const struct attention_view *v, const struct table *t)
{
    return json_pack("{s:i, s:s, s:I, s:s, s:o, s:o, s:s, s:s, s:s, s:s, s:s}", "v", 2, "layout",
                     "packed", "tokens", (json_int_t)v->o->tokens, "formula", flops_note, "machine",
                     machine_json(v->machine), "rows", table_json(t), "svg", v->svg, "date",
                     v->now->date, "version", v->version, "commit", v->commit, "command",
                     v->command);
}

void attention_view_print(const struct attention_view *v, const struct table *t,
                          const struct table_form *form, struct str *s, struct arena *a)
{
    if (form->json) {
        json_print(make_json(v, t), s);
        return;
    }
    table_form_print(form, t, s);
    table_form_note(
        form,
        arena_printf(a, "%s\n%s\n%.10s, %s, strobe %s (%s).%s", notes(v, a),
                     ceilings_words(v->machine, a), v->now->date, ceilings_who(v->now, a),
                     v->version, v->commit,
                     v->stopped ? "\nStopped by Ctrl-C: these are the cells measured so far." : ""),
        s);
}

/* --- the picture ------------------------------------------------------------------------------ */

enum { PANEL_TIME, PANEL_RATE, PANEL_MEMORY, PANELS };

struct picture {
    const struct attention_view *v;
    struct plot_line *line[PANELS];
    int lines, groups; /* groups: head sizes x masks x types */
    struct arena *a;
};

static const char *name_of(const struct picture *p, const struct attention_cell *c)
{
    const struct attention_options *o = p->v->o;
    const char *name = arena_printf(p->a, "%s, %s", attention_variant_name(c->way),
                                    machine_precision_name(c->precision));
    if (o->head_sizes > 1) name = arena_printf(p->a, "%s, D %lld", name, (long long)c->D);
    if (o->masks > 1) name = arena_printf(p->a, "%s%s", name, c->causal ? ", causal" : ", full");
    return name;
}

/* Adds the lines of one variant of one group: its cells by length. Colors show the variant and
 * dashes the second of two groups; with more groups, both follow from the number of the line. */
static void add_lines(struct picture *p, const struct attention_cell *first, int group)
{
    const struct attention_options *o = p->v->o;
    int n = o->lengths, of_length = o->precisions * ATTENTION_VARIANTS, number = p->lines++;
    struct plot_point *point[PANELS];
    bool few = p->groups <= 2;
    int color = (few ? (int)first->way : number) % PLOT_COLORS;
    int dash = few ? group > 0 : number / PLOT_COLORS % PLOT_DASHES;
    for (int k = 0; k < PANELS; k++) {
        point[k] = ARENA_NEW(p->a, struct plot_point, n);
        p->line[k][number] = (struct plot_line){name_of(p, first), color, dash, point[k], n};
    }
    for (int i = 0; i < n; i++) {
        const struct attention_cell *c = &first[i * of_length];
        double T = (double)c->T, flops = c->forward_flops + c->backward_flops;
        point[PANEL_TIME][i] = (struct plot_point){T, c->both.median, false};
        point[PANEL_RATE][i] = (struct plot_point){T, flops / c->both.median * 1e3, false};
        point[PANEL_MEMORY][i] = (struct plot_point){T, (double)c->bytes, c->reason != NULL};
    }
}

static const char *words_of_heads(const struct attention_options *o, struct arena *a)
{
    const char *sizes = arena_printf(a, "of %lld", (long long)o->head_size[0]);
    const char *shared = "";
    for (int i = 1; i < o->head_sizes; i++)
        sizes = arena_printf(a, "%s%s%lld", sizes, i + 1 < o->head_sizes ? ", " : " and ",
                             (long long)o->head_size[i]);
    if (!o->heads) return arena_printf(a, "%lld columns in heads %s", (long long)o->columns, sizes);
    if (o->kv_heads && o->kv_heads != o->heads)
        shared = arena_printf(a, " over %lld key and value heads", (long long)o->kv_heads);
    return arena_printf(a, "%lld heads %s%s", (long long)o->heads, sizes, shared);
}

void attention_picture(const struct attention_view *v, struct markup *m, struct arena *a)
{
    const struct attention_options *o = v->o;
    struct picture p = {.v = v, .groups = o->head_sizes * o->masks * o->precisions, .a = a};
    struct plot_panel panel[PANELS] = {
        {.title = "time, forward and backward", .unit = CHART_MILLISECONDS},
        {.title = "FLOPs of attention, forward and backward", .unit = CHART_FLOPS},
        {.title = "memory of the plan", .unit = CHART_BYTES},
    };
    for (int k = 0; k < PANELS; k++)
        panel[k].line = p.line[k] = ARENA_NEW(a, struct plot_line, p.groups * ATTENTION_VARIANTS);
    for (int g = 0; g < p.groups; g++)
        for (int way = 0; way < ATTENTION_VARIANTS; way++) {
            int block = g / o->precisions * o->lengths; /* of a head size and mask */
            int at = (block * o->precisions + g % o->precisions) * ATTENTION_VARIANTS + way;
            if (o->ways >> way & 1) add_lines(&p, &v->cell[at], g);
        }
    for (int k = 0; k < PANELS; k++) {
        panel[k].x_title = "T, tokens per sequence";
        panel[k].lines = p.lines;
    }
    if (o->memory_limit > 0) {
        panel[PANEL_MEMORY].level = (double)o->memory_limit;
        panel[PANEL_MEMORY].level_name = "free memory";
    }
    plot_print_svg(arena_printf(a, "Attention, %s, %lld tokens in total", words_of_heads(o, a),
                                (long long)o->tokens),
                   arena_printf(a, "%.10s, %s. Hollow points: from the plan, not measured.",
                                v->now->date, ceilings_who(v->now, a)),
                   panel, PANELS, m);
}

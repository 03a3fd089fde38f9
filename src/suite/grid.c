#include "suite/grid.h"

#include "present/table_cells.h"
#include "suite/announce.h"
#include "suite/grid_steps.h"
#include "suite/grid_wide.h"

#include <string.h>

/* --- the table -------------------------------------------------------------------------------- */

/* Columns after those of the grid. */
/* clang-format off */
#define COLUMNS(X) \
    X("phase", "phase", "part of a training step", TEXT, c->reason ? NULL : bench_line_name(l)) \
    X("mean_ms", "mean ms", "mean over the steps after the warm-up", NUMBER, ran, 4, ms->mean) \
    X("std_ms", "std", "standard deviation of the sample", STD, ran, ms) \
    X("std_percent", "std %", "standard deviation / mean", NUMBER, ran && ms->n > 1 && ms->mean > 0, 2, 100 * ms->std / ms->mean) \
    X("median_ms", "median", "milliseconds", NUMBER, ran, 4, ms->median) \
    X("min_ms", "min", "milliseconds", NUMBER, ran, 4, ms->min) \
    X("p95_ms", "p95", "95th percentile", NUMBER, ran, 4, ms->p95) \
    X("first_ms", "first", "the first step of all, even if it is warm-up", NUMBER, ran && l != BENCH_DIFFERENCE, 4, c->line[l].first_ms) \
    X("samples", "n", "measured steps", NUMBER, ran, 0, ms->n) \
    X("tokens_per_s", "tokens/s", "tokens per second, from the mean", COUNT, ran && has_rate(ms, l), bench_line_tokens(c, l) * 1e3 / ms->mean) \
    X("times_first", "x first", "speed per token relative to the first value of the last key, by the median ratio", NUMBER, j.verdict.kind, 3, j.verdict.speed) \
    X("verdict", "verdict", "whether it is faster than that one, by the rule of docs/MEASURING.md", TEXT, *judge_name(&j) ? judge_name(&j) : NULL) \
    X("memory_bytes", "memory", "memory of the plans of the cell", BYTES, bytes, bytes) \
    X("first_loss", "loss", "loss of the first step", NUMBER, ran && l == bench_line_of_loss(c->lines), 6, c->loss) \
    X("note", "note", "why the cell was not measured", TEXT, c->reason ? c->reason : refused ? c->line[l].reason : NULL)
/* clang-format on */

static const struct table_column fixed[] = {COLUMNS(TABLE_COLUMN)};
enum { FIXED = COUNT_OF(fixed) };

/* The columns of a grid: subject, axes, warm-up, then the fixed ones. */
struct columns {
    struct table_column *column;
    int warmup; /* column of the warm-up; -1: there is only one value */
    int first;  /* first of the fixed columns */
    int n;
};

static struct columns columns_of(const struct bench_grid *g, struct arena *a)
{
    struct columns c = {.column = ARENA_NEW(a, struct table_column, 2 + BENCH_AXES + FIXED),
                        .warmup = -1};
    c.column[c.n++] = (struct table_column){"config", "config", "the model", false};
    for (int i = 0; i < g->axes; i++)
        c.column[c.n++] = (struct table_column){g->axis[i].key, g->axis[i].key, "a key", false};
    if (g->warmups > 1) {
        c.warmup = c.n;
        c.column[c.n++] =
            (struct table_column){"warmup", "warm-up", "steps before those that count", true};
    }
    c.first = c.n;
    for (int i = 0; i < FIXED; i++) c.column[c.n++] = fixed[i];
    return c;
}

/* The cell at the first value of the last axis that has several; itself if there is none. */
static int first_of(const struct bench_grid *g, int cell)
{
    int last = g->axes - 1, stride = g->warmups;
    for (; last >= 0 && g->axis[last].values < 2; last--) stride *= g->axis[last].values;
    return last < 0 ? cell : cell - bench_grid_place(g, cell).value[last] * stride;
}

static void set_place(struct table *t, int row, const struct bench_grid *g, int cell,
                      const struct columns *c, struct arena *a)
{
    struct bench_place at = bench_grid_place(g, cell);
    table_set_text(t, row, 0, g->subject[at.subject].name);
    for (int i = 0; i < g->axes; i++) table_set_text(t, row, 1 + i, g->axis[i].value[at.value[i]]);
    if (c->warmup >= 0) table_set(t, row, c->warmup, 0, g->warmup[at.warmup], a);
}

/* Whether tokens per second say something about this line. */
static bool has_rate(const struct stats *ms, enum bench_line l)
{
    return ms->mean > 0 && l != BENCH_UPDATE && l != BENCH_DIFFERENCE && l != BENCH_BACKWARD;
}

/* `base`: the cell that this one is compared with. */
static void set_line(struct table_row row, const struct bench_cell *c, enum bench_line l,
                     const struct bench_cell *base, enum bench_order order)
{
    bool refused = !c->reason && c->refused >> l & 1, ran = !c->reason && !refused;
    int64_t bytes = refused ? c->line[l].needs_bytes : c->bytes;
    const struct stats *ms = &c->line[l].ms;
    struct judgement j = {0};
    if (ran && base != c && !base->reason) j = bench_cells_judge(base, c, l, order);
    COLUMNS(TABLE_CELL)
}

static int rows_of(const struct bench_cell *cell, int cells)
{
    int rows = 0;
    for (int i = 0; i < cells; i++)
        rows += cell[i].reason ? 1 : __builtin_popcount(cell[i].lines | cell[i].refused);
    return rows;
}

static void chart_of(struct sheet_table *t, const struct bench_grid *g)
{
    const char *label[SHEET_LABELS] = {0};
    int n = 0;
    if (g->subjects > 1) label[n++] = "config";
    for (int i = 0; i < g->axes && n < SHEET_LABELS - 2; i++)
        if (g->axis[i].values > 1) label[n++] = g->axis[i].key;
    if (g->warmups > 1) label[n++] = "warmup";
    label[n++] = "phase";
    sheet_bars(t, "mean time", "mean_ms", "std_ms", label);
}

/* Adds the table: a row for each line of each cell that ran, and one for each cell that did not. */
static void add_table(const struct bench_grid *g, const struct bench_cell *cell, int cells,
                      enum bench_order order, struct sheet *ret, struct arena *a)
{
    struct columns c = columns_of(g, a);
    struct sheet_table *sheet = sheet_add(ret, NULL, c.column, c.n, rows_of(cell, cells), a);
    struct table *t = &sheet->table;
    int row = 0;
    for (int i = 0; i < cells; i++) {
        const struct bench_cell *x = &cell[i];
        for (int l = 0; l < BENCH_LINES; l++) {
            if (x->reason ? l > 0 : !((x->lines | x->refused) >> l & 1)) continue;
            set_place(t, row, g, i, &c, a);
            set_line((struct table_row){t, row++, c.first, a}, x, (enum bench_line)l,
                     &cell[first_of(g, i)], order);
        }
    }
    chart_of(sheet, g);
}

static const char *const order_words[BENCH_ORDERS] = {
    [BENCH_ROUNDS] = "The cells were interleaved step by step, so clock drift favors none.",
    [BENCH_TWICE] =
        "The cells ran one after the other and then again in reversed order, with a warm-up each "
        "time and half of the steps in each pass; the last cell ran only once, with all its steps.",
    [BENCH_ONCE] = "The cells ran one after the other, each once.",
};

/* Adds notes about the effects of the order and the warm-up of cells. */
static void note_order(const struct bench_grid *g, const struct bench_cell *cell, int cells,
                       enum bench_order order, struct sheet *ret)
{
    int run = 0;
    bool captured = false;
    for (int i = 0; i < cells; i++) {
        run += !cell[i].reason;
        captured |=
            !cell[i].reason && cell[i].config.plan.replay == REPLAY_TRUE && cell[i].warmup < 2;
    }
    if (run > 1 && g->order == BENCH_ROUNDS && order == BENCH_TWICE)
        sheet_note(ret,
                   "The cells were not interleaved, because they do not fit in memory together.");
    if (run > 1)
        sheet_note(ret, order_words[order == BENCH_TWICE && g->steps == 1 ? BENCH_ONCE : order]);
    if (captured)
        sheet_note(ret,
                   "With replay=true the second step of a GPU captures its graph; with fewer than "
                   "two steps of warm-up, that step is among the measured ones.");
}

/* --- running it ------------------------------------------------------------------------------- */

struct named {
    const struct bench_grid *grid;
    const struct bench_cell *cell;
    const struct suite_request *request;
    struct arena *a;
};

static const char *name_of(void *user, const struct bench_cell *c)
{
    const struct named *n = user;
    return bench_grid_name(n->grid, (int)(c - n->cell), n->a);
}

static void show(void *user, double share, const char *what)
{
    const struct named *n = user;
    suite_show(n->request, share, what);
}

/* Of a suite, whose batch_size is not the user's. */
static enum status announce(const struct bench_grid *g, const struct suite_request *r,
                            struct bench_cell *cell, int cells, struct sheet *ret, struct arena *a)
{
    struct announce x;
    TRY(announce_open(&x, r, ret, a));
    for (int i = 0; i < cells; i++) TRY(announce_cell(&x, bench_grid_name(g, i, a), &cell[i], 1));
    announce_print(&x);
    return ST_OK;
}

enum status grid_run(const struct bench_grid *g, const struct suite_request *r, struct sheet *ret,
                     struct arena *a)
{
    struct arena names = {0};
    struct named named = {.grid = g, .request = r, .a = &names};
    struct bench_options o = {
        .order = g->order, .limit = r->limit, .each = show, .user = &named, .name = name_of};
    struct bench_cell *cell;
    enum bench_order order;
    int cells;
    TRY(bench_grid_cells(g, &cell, &cells, a));
    named.cell = cell;
    if (r->grid) TRY(announce(g, r, cell, cells, ret, a));
    enum status st = bench_cells_run(&o, cell, cells, &order, a);
    arena_release(&names);
    TRY(st);
    bool measured = false;
    for (int i = 0; i < cells; i++) measured |= !cell[i].reason;
    TRY(suite_check_stopped(measured));
    if (r->wide) grid_wide_add(g, cell, cells, ret, a);
    add_table(g, cell, cells, order, ret, a);
    if (r->each_step) grid_steps_add(g, cell, cells, ret, a);
    note_order(g, cell, cells, order, ret);
    if (g->lines >> BENCH_BACKWARD & 1)
        sheet_note(ret, "backward, by difference: forward + backward minus forward, step by step; "
                        "alone: the clock starts after an untimed forward pass.");
    return ST_OK;
}

/* --- a suite ---------------------------------------------------------------------------------- */

static enum status add_axes(struct bench_grid *g, const struct suite_request *r,
                            const char *const axis[SUITE_GRID_AXES], struct arena *a)
{
    for (int i = 0; i < SUITE_GRID_AXES && axis[i]; i++) TRY(bench_add_axis(g, axis[i], a));
    int own = g->axes;
    for (int i = 0; i < r->words; i++) {
        const char *word = r->word[i] + strspn(r->word[i], "-");
        bool known = false;
        for (int k = 0; k < own; k++) {
            size_t n = strlen(g->axis[k].key);
            known |= !strncmp(g->axis[k].key, word, n) && word[n] == '=';
        }
        if (known || bench_is_list(word)) TRY(bench_add_axis(g, word, a));
    }
    return ST_OK;
}

enum status suite_run_grid(const struct suite_request *r, struct sheet *ret, struct arena *a)
{
    const struct suite_grid *x = r->grid;
    const struct suite_size *size;
    struct bench_grid g = {.steps = r->steps ? (int)r->steps : x->steps};
    bool small;
    TRY(suite_is_small(r, &small));
    TRY(suite_sizes(r, small ? x->small_sizes : x->sizes, &size, &g.subjects, a));
    g.subject = ARENA_NEW(a, struct bench_subject, g.subjects);
    for (int i = 0; i < g.subjects; i++) {
        g.subject[i] = (struct bench_subject){.name = size[i].name};
        TRY(suite_config(r, size[i].file, x->words, size[i].words, &g.subject[i].config, a));
        g.subject[i].vocab = suite_vocabulary(&g.subject[i].config, x->vocab);
    }
    TRY(add_axes(&g, r, small ? x->small_axis : x->axis, a));
    TRY(bench_read_warmups(&g, r->warmup ? r->warmup : x->warmup));
    TRY(bench_read_lines(&g.lines, r->phase ? r->phase : x->phase));
    TRY(bench_read_order(&g.order, r->order));
    TRY(grid_run(&g, r, ret, a));
    if (x->note) sheet_note(ret, x->note);
    if (small) suite_say_small(ret, r, x->small, a);
    return ST_OK;
}

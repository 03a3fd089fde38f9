#include "suite/grid_wide.h"

#include "present/table_cells.h"

#include <string.h>

/* clang-format off */
static const struct {
    enum bench_line line;
    struct table_column mean, std;
} timed[] = {
    {BENCH_INFERENCE, {"inference_ms", "inference ms", "mean", true}, {"inference_std", "±", "standard deviation", true}},
    {BENCH_FORWARD, {"forward_ms", "forward ms", "mean", true}, {"forward_std", "±", "standard deviation", true}},
    {BENCH_BACKWARD, {"backward_ms", "backward ms", "mean, of the backward pass alone", true}, {"backward_std", "±", "standard deviation", true}},
    {BENCH_BOTH, {"both_ms", "both ms", "mean of forward and backward in one", true}, {"both_std", "±", "standard deviation", true}},
    {BENCH_UPDATE, {"update_ms", "update ms", "mean of norm, clipping and optimizer", true}, {"update_std", "±", "standard deviation", true}},
    {BENCH_STEP, {"step_ms", "step ms", "mean of a whole training step", true}, {"step_std", "±", "standard deviation", true}},
};
#define COLUMN_LIST(X) \
    X(CONFIG, "config", "size", "the model", false) \
    X(WIDTH, "n_embd", "d_model", "columns of the residual stream (n_embd)", true) \
    X(HIDDEN, "d_ff", "d_ff", "hidden columns of the feed-forward layer", true) \
    X(LAYERS, "n_layer", "layers", "blocks", true) \
    X(HEADS, "n_head", "heads", "heads of attention", true)
/* clang-format on */

enum { COLUMN_LIST(TABLE_ID) FIXED, LEFT_OUT = FIXED + 2 * COUNT_OF(timed), NOTE, MOST };
static const struct table_column fixed[] = {COLUMN_LIST(TABLE_COLUMN)};
static const struct table_column left_out = {"left_out", "left out", "phases that do not fit",
                                             false},
                                 note = {"note", "note", "why nothing was measured", false};

static void set_model(struct table *t, int row, const struct config_model *c, struct arena *a)
{
    table_set(t, row, WIDTH, 0, (double)c->n_embd, a);
    table_set(t, row, HIDDEN, 0, (double)(c->d_ff ? c->d_ff : 4 * c->n_embd), a);
    table_set(t, row, LAYERS, 0, (double)c->n_layer, a);
    table_set(t, row, HEADS, 0, (double)c->n_head, a);
}

/* "step: needs 30 GiB of memory, 22 GiB are free", of the lines refused for the first reason. */
static const char *left_out_of(const struct bench_cell *c, struct arena *a)
{
    const char *lines = "", *why = NULL;
    for (int l = 0; l < BENCH_LINES; l++) {
        if (!(c->refused >> l & 1) || (why && strcmp(why, c->line[l].reason) != 0)) continue;
        why = c->line[l].reason;
        lines = arena_printf(a, "%s%s%s", lines, *lines ? ", " : "",
                             bench_line_name((enum bench_line)l));
    }
    return why ? arena_printf(a, "%s: %s", lines, why) : NULL;
}

static void set_row(struct table *t, int row, const struct bench_cell *c, const char *name,
                    struct arena *a)
{
    const char *why = c->reason ? NULL : left_out_of(c, a);
    table_set_text(t, row, CONFIG, name);
    set_model(t, row, &c->config.model, a);
    for (int i = 0; i < COUNT_OF(timed) && !c->reason; i++) {
        const struct stats *ms = &c->line[timed[i].line].ms;
        if (!(c->lines >> timed[i].line & 1) || !ms->n) continue;
        table_set(t, row, FIXED + 2 * i, 4, ms->mean, a);
        table_set_std(t, row, FIXED + 2 * i + 1, ms, a);
    }
    if (why) table_set_text(t, row, LEFT_OUT, why);
    if (c->reason) table_set_text(t, row, NOTE, c->reason);
}

void grid_wide_add(const struct bench_grid *g, const struct bench_cell *cell, int cells,
                   struct sheet *ret, struct arena *a)
{
    struct table_column *column = ARENA_NEW(a, struct table_column, MOST);
    memcpy(column, fixed, sizeof fixed);
    for (int i = 0; i < COUNT_OF(timed); i++) {
        column[FIXED + 2 * i] = timed[i].mean;
        column[FIXED + 2 * i + 1] = timed[i].std;
    }
    column[LEFT_OUT] = left_out;
    column[NOTE] = note;
    struct table *t = &sheet_add(ret, "By size", column, MOST, cells, a)->table;
    for (int i = 0; i < cells; i++) set_row(t, i, &cell[i], bench_grid_name(g, i, a), a);
}

#include "suite/grid_wide.h"

#include "present/table_cells.h"

#include <string.h>

/* clang-format off */
/* X(LINE, "id", "title", "help of the mean") */
#define TIMES(X) \
    X(BENCH_INFERENCE, "inference", "inference ms", "mean") \
    X(BENCH_FORWARD, "forward", "forward ms", "mean") \
    X(BENCH_BACKWARD, "backward", "backward ms", "mean, of the backward pass alone") \
    X(BENCH_BOTH, "both", "both ms", "mean of forward and backward in one") \
    X(BENCH_UPDATE, "update", "update ms", "mean of norm, clipping and optimizer") \
    X(BENCH_STEP, "step", "step ms", "mean of a whole training step")
#define MODEL(X) \
    X("config", "size", "the model", TEXT, name) \
    X("n_embd", "d_model", "columns of the residual stream (n_embd)", NUMBER, true, 0, (double)m->n_embd) \
    X("d_ff", "d_ff", "hidden columns of the feed-forward layer", NUMBER, true, 0, (double)(m->d_ff ? m->d_ff : 4 * m->n_embd)) \
    X("n_layer", "layers", "blocks", NUMBER, true, 0, (double)m->n_layer) \
    X("n_head", "heads", "heads of attention", NUMBER, true, 0, (double)m->n_head)
#define NOTES(X) \
    X("left_out", "left out", "phases that do not fit", TEXT, c->reason ? NULL : left_out_of(c, row.arena)) \
    X("note", "note", "why nothing was measured", TEXT, c->reason)
#define TIME_COLUMNS(LINE, ID, TITLE, HELP) \
    {ID "_ms", TITLE, HELP, true}, {ID "_std", "±", "standard deviation", true},
#define TIME_CELLS(LINE, ...) \
    TABLE_NUMBER(ms_of(c, LINE), 4, ms_of(c, LINE)->mean); \
    row.column++; \
    TABLE_STD(ms_of(c, LINE), ms_of(c, LINE)); \
    row.column++;
/* clang-format on */

static const struct table_column columns[] = {MODEL(TABLE_COLUMN) TIMES(TIME_COLUMNS)
                                                  NOTES(TABLE_COLUMN)};

/* NULL: the line was not measured. */
static const struct stats *ms_of(const struct bench_cell *c, enum bench_line l)
{
    const struct stats *ms = &c->line[l].ms;
    return !c->reason && c->lines >> l & 1 && ms->n ? ms : NULL;
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

static void set_row(struct table_row row, const struct bench_cell *c, const char *name)
{
    const struct config_model *m = &c->config.model;
    MODEL(TABLE_CELL)
    TIMES(TIME_CELLS)
    NOTES(TABLE_CELL)
}

void grid_wide_add(const struct bench_grid *g, const struct bench_cell *cell, int cells,
                   struct sheet *ret, struct arena *a)
{
    struct table *t = &sheet_add(ret, "By size", columns, COUNT_OF(columns), cells, a)->table;
    for (int i = 0; i < cells; i++)
        set_row((struct table_row){t, i, 0, a}, &cell[i], bench_grid_name(g, i, a));
}

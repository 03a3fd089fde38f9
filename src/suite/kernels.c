#include "suite/kernels.h"

#include "present/table_cells.h"

#include <string.h>

enum { SUBJECT, LENGTH, PHASE, KERNEL, RUNS, MS, SHARE, MEAN_US, BOUND, FLOOR, COLUMNS };

static const struct table_column columns[COLUMNS] = {
    [LENGTH] = {"T", "T", "tokens per sequence", true},
    [PHASE] = {"phase", "phase", "phase of the step", false},
    [KERNEL] = {"kernel", "kernel", "operator, shape, kernel row", false},
    [RUNS] = {"per_step", "calls", "calls per step", true},
    [MS] = {"ms_per_step", "ms", "mean time per step", true},
    [SHARE] = {"percent", "%", "share of the phase, with idle time", true},
    [MEAN_US] = {"mean_us", "avg us", "mean time of one call", true},
    [BOUND] = {"bound", "bound", "the resource that limits it", false},
    [FLOOR] = {"times_floor", "x floor", "time / lower bound", true},
};

void kernel_lines_open(struct kernel_lines *l, struct sheet *s, const char *title,
                       const struct table_column *subject, int phases, int top, struct arena *a)
{
    struct table_column *own = ARENA_NEW(a, struct table_column, COLUMNS);
    memcpy(own, columns, sizeof columns);
    own[SUBJECT] = *subject;
    *l = (struct kernel_lines){.most = phases * (top + 1), .top = top, .a = a};
    l->table = sheet_add(s, title, own, COLUMNS, l->most, a);
    sheet_bars(l->table, "time per step, by kernel", "ms_per_step", NULL,
               (const char *[SHEET_LABELS]){subject->id, "T", "phase", "kernel"});
}

static int next_row(struct kernel_lines *l, const char *subject, int64_t T)
{
    BUG_IF(l->n == l->most, "more than %d rows", l->most);
    table_set_text(&l->table->table, l->n, SUBJECT, subject);
    table_set(&l->table->table, l->n, LENGTH, 0, (double)T, l->a);
    return l->n++;
}

static void add_group(struct kernel_lines *l, int row, const struct profile_group *g)
{
    struct table *t = &l->table->table;
    table_set_text(t, row, KERNEL, arena_strdup(l->a, g->name));
    table_set(t, row, MS, 4, g->ms, l->a);
    table_set(t, row, SHARE, 3, 100 * g->share, l->a);
    if (g->family == FAMILY_IDLE) return;
    table_set(t, row, RUNS, 0, g->runs, l->a);
    table_set(t, row, MEAN_US, 4, 1e3 * g->run_ms.mean, l->a);
    if (g->bound) table_set_text(t, row, BOUND, bound_name(g->bound));
    if (g->floor_ms > 0 && g->bound != BOUND_LATENCY)
        table_set(t, row, FLOOR, 3, g->work_ms / g->floor_ms, l->a);
}

void kernel_lines_add(struct kernel_lines *l, const char *subject, int64_t T, const char *phase,
                      unsigned phases, const struct profile *p)
{
    struct arena a = {0};
    struct profile_groups g;
    profile_groups(p, BY_KERNEL, phases, &g, &a);
    for (int i = 0; i < g.groups; i++) {
        if (i >= l->top && i + 1 < g.groups) continue; /* the last is idle time */
        int row = next_row(l, subject, T);
        table_set_text(&l->table->table, row, PHASE, phase);
        add_group(l, row, &g.group[i]);
    }
    arena_release(&a);
}

void kernel_lines_close(struct kernel_lines *l)
{
    l->table->table.rows = l->n;
}

#include "view/launches_view.h"

#include "present/table_cells.h"

/* clang-format off */
#define COLUMN_LIST(X) \
    X(COLUMN_OP, "op", "op", "operator of the first node that launches it", false) \
    X(COLUMN_VARIANT, "variant", "kernel", "row of the table of kernels", false) \
    X(COLUMN_ENTRY, "entry", "function", "that is launched; -: of a library", false) \
    X(COLUMN_TIMES, "launches", "launches", "in a training step; of a library: calls of it", true) \
    LAUNCH_COLUMN_LIST(X)
/* clang-format on */
enum { COLUMN_LIST(TABLE_ID) COLUMNS };
static const struct table_column columns[] = {COLUMN_LIST(TABLE_COLUMN)};

const char *kernel_shape_text(const struct kernel_shape *s, struct arena *a)
{
    const char *part[2];
    const unsigned *of[2] = {s->grid, s->block};
    for (int i = 0; i < 2; i++) {
        const unsigned *n = of[i];
        part[i] = n[2] > 1   ? arena_printf(a, "(%u,%u,%u)", n[0], n[1], n[2])
                  : n[1] > 1 ? arena_printf(a, "(%u,%u)", n[0], n[1])
                             : arena_printf(a, "%u", n[0]);
    }
    return arena_printf(a, "%s x %s", part[0], part[1]);
}

void launch_columns_set(struct table *t, int row, int first, const struct step_launch *x,
                        struct arena *a)
{
    const struct planned_launch *l = &x->launch;
    int from = first - LAUNCH_SHAPE; /* converts to column numbers of table `t` */
    table_set_text(t, row, from + LAUNCH_SHAPE, l->entry ? kernel_shape_text(&l->shape, a) : "-");
    if (!l->entry) return;
    table_set_bytes(t, row, from + LAUNCH_DYNAMIC, l->shape.shared_bytes, a);
    if (l->registers < 0) return;
    table_set_count(t, row, from + LAUNCH_REGISTERS, l->registers, a);
    table_set_bytes(t, row, from + LAUNCH_STATIC, l->static_bytes, a);
    if (!x->known) return;
    table_set_count(t, row, from + LAUNCH_BLOCKS, x->occupancy.blocks, a);
    table_set_count(t, row, from + LAUNCH_WARPS, x->occupancy.warps, a);
    table_set_text(t, row, from + LAUNCH_LIMIT, x->occupancy.limit);
    if (x->occupancy.blocks == 0) return;
    table_set(t, row, from + LAUNCH_WAVES, 3, x->grid.waves, a);
    table_set(t, row, from + LAUNCH_TAIL, 2, 100 * x->grid.tail, a);
}

static void set_row(struct table *t, int row, const struct step_launch *x, struct arena *a)
{
    const struct planned_launch *l = &x->launch;
    table_set_text(t, row, COLUMN_OP, op_def(x->op)->name);
    table_set_text(t, row, COLUMN_VARIANT, x->variant);
    table_set_text(t, row, COLUMN_ENTRY, l->entry ? l->entry : "-");
    table_set_count(t, row, COLUMN_TIMES, (double)x->times, a);
    launch_columns_set(t, row, LAUNCH_SHAPE, x, a);
}

const char *launches_limits(const struct target *t, struct arena *a)
{
    const struct occupancy_limits *limits = occupancy_limits(t->arch);
    if (!limits)
        return arena_printf(a,
                            "The limits of compute capability %d.%d are not in the table of "
                            "src/tuning/occupancy.c, so blocks per SM are unknown.",
                            t->arch / 10, t->arch % 10);
    return arena_printf(a,
                        "%s: %d SM%s, each holds at most %d warps and %d blocks. The tail is the "
                        "share of the last wave that is idle.",
                        t->name, t->processors, t->processors == 1 ? "" : "s", limits->warps,
                        limits->blocks);
}

static void add_notes(const struct step_launches *l, const struct target *t, struct sheet *s,
                      struct arena *a)
{
    bool library = false, silent = false;
    for (int i = 0; i < l->launches; i++) {
        library |= !l->launch[i].launch.entry;
        silent |= l->launch[i].launch.entry && l->launch[i].launch.registers < 0;
    }
    sheet_note(s, launches_limits(t, a));
    sheet_note(s,
               "Rows that look alike are compiled with different constants. An operator may launch "
               "several kernels, so a step has more launches than operators.");
    if (library)
        sheet_note(s, "Kernels of cuBLASLt are chosen and launched by the library when it runs, so "
                      "only the number of calls is known.");
    if (silent)
        sheet_note(s, "This compiler does not report the registers of its kernels, so blocks per "
                      "SM are unknown.");
}

void launches_sheet(const struct step_launches *l, const struct target *t, struct sheet *s,
                    struct arena *a)
{
    *s = (struct sheet){.name = "plan-occupancy"};
    s->title = "The kernels of a training step, in the order in which it first launches them";
    struct table *table = &sheet_add(s, NULL, columns, COLUMNS, l->launches, a)->table;
    for (int i = 0; i < l->launches; i++) set_row(table, i, &l->launch[i], a);
    add_notes(l, t, s, a);
}

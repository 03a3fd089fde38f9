#include "view/launches_view.h"

#include "present/table_cells.h"

/* clang-format off */
#define COLUMN_LIST(X) \
    X(COLUMN_OP, "op", "op", "operator of the first node that launches it", false) \
    X(COLUMN_VARIANT, "variant", "kernel", "row of the table of kernels", false) \
    X(COLUMN_ENTRY, "entry", "function", "that is launched; -: of a library", false) \
    X(COLUMN_TIMES, "launches", "launches", "in a training step; of a library: calls of it", true) \
    X(COLUMN_SHAPE, "grid_block", "grid x block", "blocks x threads of a block", false) \
    X(COLUMN_REGISTERS, "registers", "registers", "of a thread", true) \
    X(COLUMN_STATIC, "static_bytes", "static", "static shared memory of a block", true) \
    X(COLUMN_DYNAMIC, "dynamic_bytes", "dynamic", "dynamic shared memory of a block", true) \
    X(COLUMN_BLOCKS, "sm_blocks", "blocks/SM", "blocks that an SM holds at once", true) \
    X(COLUMN_WARPS, "sm_warps", "warps/SM", "warps of these blocks", true) \
    X(COLUMN_LIMIT, "limit", "limit", "what allows no more blocks", false) \
    X(COLUMN_WAVES, "waves", "waves", "blocks / blocks that the GPU holds at once", true) \
    X(COLUMN_TAIL, "tail_percent", "tail %", "share of the last wave that is idle", true)
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

static void set_row(struct table *t, int row, const struct step_launch *x, struct arena *a)
{
    const struct planned_launch *l = &x->launch;
    table_set_text(t, row, COLUMN_OP, op_def(x->op)->name);
    table_set_text(t, row, COLUMN_VARIANT, x->variant);
    table_set_text(t, row, COLUMN_ENTRY, l->entry ? l->entry : "-");
    table_set_count(t, row, COLUMN_TIMES, (double)x->times, a);
    table_set_text(t, row, COLUMN_SHAPE, l->entry ? kernel_shape_text(&l->shape, a) : "-");
    if (!l->entry) return;
    table_set_bytes(t, row, COLUMN_DYNAMIC, l->shape.shared_bytes, a);
    if (l->registers < 0) return;
    table_set_count(t, row, COLUMN_REGISTERS, l->registers, a);
    table_set_bytes(t, row, COLUMN_STATIC, l->static_bytes, a);
    if (!x->known) return;
    table_set_count(t, row, COLUMN_BLOCKS, x->occupancy.blocks, a);
    table_set_count(t, row, COLUMN_WARPS, x->occupancy.warps, a);
    table_set_text(t, row, COLUMN_LIMIT, x->occupancy.limit);
    if (x->occupancy.blocks == 0) return;
    table_set(t, row, COLUMN_WAVES, 3, x->grid.waves, a);
    table_set(t, row, COLUMN_TAIL, 2, 100 * x->grid.tail, a);
}

static void add_notes(const struct step_launches *l, const struct target *t, struct sheet *s,
                      struct arena *a)
{
    const struct occupancy_limits *limits = occupancy_limits(t->arch);
    bool library = false, silent = false;
    for (int i = 0; i < l->launches; i++) {
        library |= !l->launch[i].launch.entry;
        silent |= l->launch[i].launch.entry && l->launch[i].launch.registers < 0;
    }
    if (limits)
        sheet_note(s, arena_printf(a,
                                   "%s: %d SMs, each holds at most %d warps and %d blocks. The "
                                   "tail is the share of the last wave that is idle.",
                                   t->name, t->processors, limits->warps, limits->blocks));
    else
        sheet_note(s, arena_printf(a,
                                   "The limits of compute capability %d.%d are not in the table of "
                                   "src/tuning/occupancy.c, so blocks per SM are unknown.",
                                   t->arch / 10, t->arch % 10));
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

#include "view/launches_view.h"

/* clang-format off */
#define COLUMNS(X) \
    X("op", "op", "operator of the first node that launches it", TEXT, op_def(x->op)->name) \
    X("variant", "kernel", "row of the table of kernels", TEXT, x->variant) \
    X("entry", "function", "that is launched; -: of a library", TEXT, x->launch.entry ? x->launch.entry : "-") \
    X("launches", "launches", "in a training step; of a library: calls of it", COUNT, true, (double)x->times) \
    LAUNCH_COLUMNS(X)
/* clang-format on */
static const struct table_column columns[] = {COLUMNS(TABLE_COLUMN)};

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

bool launch_knows(const struct step_launch *x, enum launch_known what)
{
    if (!x || !x->launch.entry) return false;
    if (what >= LAUNCH_COMPILED && x->launch.registers < 0) return false;
    if (what >= LAUNCH_LIMITS && !x->known) return false;
    return what < LAUNCH_GRID || x->occupancy.blocks > 0;
}

const char *launch_shape_text(const struct step_launch *x, struct arena *a)
{
    if (!x) return NULL;
    return x->launch.entry ? kernel_shape_text(&x->launch.shape, a) : "-";
}

static void set_row(struct table_row row, const struct step_launch *x)
{
    COLUMNS(TABLE_CELL)
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
    struct table *table = &sheet_add(s, NULL, columns, COUNT_OF(columns), l->launches, a)->table;
    for (int i = 0; i < l->launches; i++)
        set_row((struct table_row){table, i, 0, a}, &l->launch[i]);
    add_notes(l, t, s, a);
}

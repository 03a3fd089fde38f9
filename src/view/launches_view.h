/* launches_view.h - the kernel launches of a training step as a table (strobe plan --occupancy),
 * and columns about launches for other tables. */
#ifndef VIEW_LAUNCHES_VIEW_H
#define VIEW_LAUNCHES_VIEW_H

#include "engine/launches.h"
#include "present/sheet.h"
#include "present/table_cells.h"

/* "4096 x 256", "64 x (32,8)": blocks x threads of a block. */
const char *kernel_shape_text(const struct kernel_shape *s, struct arena *a);

/* Columns about a launch `x`, for lists of columns (table_cells.h). They are empty if x is NULL,
 * and where the compiler or the library does not say. */
/* clang-format off */
#define LAUNCH_COLUMNS(X) \
    X("grid_block", "grid x block", "blocks x threads of a block", TEXT, launch_shape_text(x, row.arena)) \
    X("registers", "registers", "of a thread", COUNT, launch_knows(x, LAUNCH_COMPILED), x->launch.registers) \
    X("static_bytes", "static", "static shared memory of a block", BYTES, launch_knows(x, LAUNCH_COMPILED), x->launch.static_bytes) \
    X("dynamic_bytes", "dynamic", "dynamic shared memory of a block", BYTES, launch_knows(x, LAUNCH_OWN), x->launch.shape.shared_bytes) \
    X("sm_blocks", "blocks/SM", "blocks that an SM holds at once", COUNT, launch_knows(x, LAUNCH_LIMITS), x->occupancy.blocks) \
    X("sm_warps", "warps/SM", "warps of these blocks", COUNT, launch_knows(x, LAUNCH_LIMITS), x->occupancy.warps) \
    X("limit", "limit", "the resource that limits the number of blocks", TEXT, launch_knows(x, LAUNCH_LIMITS) ? x->occupancy.limit : NULL) \
    X("waves", "waves", "blocks / blocks that the GPU holds at once", NUMBER, launch_knows(x, LAUNCH_GRID), 3, x->grid.waves) \
    X("tail_percent", "tail %", "share of the last wave that is idle", NUMBER, launch_knows(x, LAUNCH_GRID), 2, 100 * x->grid.tail)
/* clang-format on */
/* What is known of a launch; each implies those before. */
enum launch_known {
    LAUNCH_OWN,      /* it is of Strobe's own kernel: shape and dynamic shared memory */
    LAUNCH_COMPILED, /* its compiler reported registers and static shared memory */
    LAUNCH_LIMITS,   /* the limits of the GPU, so blocks and warps of an SM */
    LAUNCH_GRID      /* an SM holds at least one block */
};
bool launch_knows(const struct step_launch *x, enum launch_known what);
/* "4096 x 256"; "-": a library's kernel; NULL: x is NULL. */
const char *launch_shape_text(const struct step_launch *x, struct arena *a);
/* A sentence: how many multiprocessors there are, and how many warps and blocks each holds. */
const char *launches_limits(const struct target *t, struct arena *a);

/* One table, with notes. */
void launches_sheet(const struct step_launches *l, const struct target *t, struct sheet *s,
                    struct arena *a);

#endif

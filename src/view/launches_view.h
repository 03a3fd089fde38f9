/* launches_view.h - the kernel launches of a training step as a table (strobe plan --occupancy),
 * and columns about launches for other tables. */
#ifndef VIEW_LAUNCHES_VIEW_H
#define VIEW_LAUNCHES_VIEW_H

#include "engine/launches.h"
#include "present/sheet.h"

/* "4096 x 256", "64 x (32,8)": blocks x threads of a block. */
const char *kernel_shape_text(const struct kernel_shape *s, struct arena *a);

/* Columns to include in a table's list of columns. */
/* clang-format off */
#define LAUNCH_COLUMN_LIST(X) \
    X(LAUNCH_SHAPE, "grid_block", "grid x block", "blocks x threads of a block", false) \
    X(LAUNCH_REGISTERS, "registers", "registers", "of a thread", true) \
    X(LAUNCH_STATIC, "static_bytes", "static", "static shared memory of a block", true) \
    X(LAUNCH_DYNAMIC, "dynamic_bytes", "dynamic", "dynamic shared memory of a block", true) \
    X(LAUNCH_BLOCKS, "sm_blocks", "blocks/SM", "blocks that an SM holds at once", true) \
    X(LAUNCH_WARPS, "sm_warps", "warps/SM", "warps of these blocks", true) \
    X(LAUNCH_LIMIT, "limit", "limit", "what allows no more blocks", false) \
    X(LAUNCH_WAVES, "waves", "waves", "blocks / blocks that the GPU holds at once", true) \
    X(LAUNCH_TAIL, "tail_percent", "tail %", "share of the last wave that is idle", true)
/* clang-format on */
/* Sets these columns of a row; `first` is LAUNCH_SHAPE in the table. Unknown cells stay empty. */
void launch_columns_set(struct table *t, int row, int first, const struct step_launch *x,
                        struct arena *a);
/* A sentence: how many multiprocessors there are, and how many warps and blocks each holds. */
const char *launches_limits(const struct target *t, struct arena *a);

/* One table, with notes. */
void launches_sheet(const struct step_launches *l, const struct target *t, struct sheet *s,
                    struct arena *a);

#endif

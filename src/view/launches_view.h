/* launches_view.h - the kernel launches of a training step as a table (strobe plan --occupancy). */
#ifndef VIEW_LAUNCHES_VIEW_H
#define VIEW_LAUNCHES_VIEW_H

#include "engine/launches.h"
#include "present/sheet.h"

/* "4096 x 256", "64 x (32,8)": blocks x threads of a block. */
const char *kernel_shape_text(const struct kernel_shape *s, struct arena *a);

/* One table, with notes. */
void launches_sheet(const struct step_launches *l, const struct target *t, struct sheet *s,
                    struct arena *a);

#endif

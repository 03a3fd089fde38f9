/* sweep_view.h - the speed of a kernel at different occupancies (lab/occupancy/sweep.h), as a sheet
 * with one curve over the registers of a thread and one over the shared memory of a block. */
#ifndef VIEW_SWEEP_VIEW_H
#define VIEW_SWEEP_VIEW_H

#include "lab/occupancy/sweep.h"
#include "present/sheet.h"

void sweep_sheet(const struct sweep_run *r, struct sheet *s, struct arena *a);
/* The same curves in characters. */
void sweep_text(const struct sweep_run *r, struct str *s, struct arena *a);

#endif

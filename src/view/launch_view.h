/* launch_view.h - the cost of kernel launches (lab/launch/launch.h), as a sheet with bars. */
#ifndef VIEW_LAUNCH_VIEW_H
#define VIEW_LAUNCH_VIEW_H

#include "lab/launch/launch.h"
#include "present/sheet.h"

void launch_sheet(const struct launch_run *r, struct sheet *s, struct arena *a);

#endif

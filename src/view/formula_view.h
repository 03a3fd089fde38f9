/* formula_view.h - what `strobe lab kernel` prints. */
#ifndef VIEW_FORMULA_VIEW_H
#define VIEW_FORMULA_VIEW_H

#include "lab/formula_run.h"
#include "present/sheet.h"

/* One row per pass, variant and run, one row for a copy of as many bytes per pass, and the samples;
 * for several sizes also bars of GB/s. The caller adds device, date and version. */
void formula_sheet(const struct formula_run *const *r, int runs, struct sheet *s, struct arena *a);

#endif

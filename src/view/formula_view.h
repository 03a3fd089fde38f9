/* formula_view.h - what `strobe lab kernel` prints. */
#ifndef VIEW_FORMULA_VIEW_H
#define VIEW_FORMULA_VIEW_H

#include "lab/formula_run.h"
#include "present/sheet.h"

/* A row for each pass and variant of each run, and a copy beside each pass; of several sizes also
 * their GB/s as bars of text; and the samples. Device, date and version are the caller's. */
void formula_sheet(const struct formula_run *const *r, int runs, struct sheet *s, struct arena *a);

#endif

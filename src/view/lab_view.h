/* lab_view.h - what `strobe lab` prints: the list of ladders, and the table of a run. */
#ifndef VIEW_LAB_VIEW_H
#define VIEW_LAB_VIEW_H

#include "lab/run.h"
#include "present/sheet.h"

/* A row for each ladder: its question, and its rungs on a GPU and on a CPU. */
void lab_list_sheet(struct sheet *s, struct arena *a);
enum { LAB_VIEW_SIZES = 16 };
/* One row per rung and run, with `reasons` their explanations, the sources and the samples; for
 * several sizes also curves. The caller adds device, date and version. */
void lab_sheet(const struct lab_run *const *r, int runs, bool reasons, struct sheet *s,
               struct arena *a);
/* Two tables that other ladders have, too: why each rung is as fast as it is (a rung without a
 * reason has no row), and the source of each rung, which only the page shows. */
void lab_add_reasons(struct sheet *s, int rungs, const struct lab_rung *const *of,
                     const char *const *reason, struct arena *a);
void lab_add_sources(struct sheet *s, int rungs, const struct lab_rung *const *of, struct arena *a);

#endif

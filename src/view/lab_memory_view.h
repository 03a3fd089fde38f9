/* lab_memory_view.h - the memory hierarchy (lab/memory/memory.h) as a sheet and as a picture. */
#ifndef VIEW_LAB_MEMORY_VIEW_H
#define VIEW_LAB_MEMORY_VIEW_H

#include "lab/memory/memory_file.h"
#include "present/sheet.h"

/* Tables of the levels and, of a GPU, of what an SM holds; the points of the curves, drawn only. */
void lab_memory_sheet(const struct memory_run *r, struct sheet *s, struct arena *a);
/* Bandwidth and latency over the working set, with the ends of the levels: side by side, and one
 * below the other. */
void lab_memory_svg(const struct memory_run *r, struct markup *m, struct arena *a);
/* The levels that were measured last on the identified machine, or how to measure them. */
void lab_memory_record(const struct machine *m, struct str *s, struct arena *a);
void lab_memory_text(const struct memory_run *r, struct str *s, struct arena *a);

#endif

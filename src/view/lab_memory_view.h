/* lab_memory_view.h - the memory hierarchy (lab/memory/memory.h) as a sheet and as a picture. */
#ifndef VIEW_LAB_MEMORY_VIEW_H
#define VIEW_LAB_MEMORY_VIEW_H

#include "lab/memory/memory_file.h"
#include "present/sheet.h"

/* Tables of the levels, of the limits of an SM (GPU), and of the curves' points (drawn_only). */
void lab_memory_sheet(const struct memory_run *r, struct sheet *s, struct arena *a);
/* Draw bandwidth and latency over the working set, and mark the sizes of the levels: side by side
 * as SVG, and one below the other as text. */
void lab_memory_svg(const struct memory_run *r, struct markup *m, struct arena *a);
void lab_memory_text(const struct memory_run *r, struct str *s, struct arena *a);
/* Prints the last measured levels of the machine `m`, or the command that measures them. */
void lab_memory_record(const struct machine *m, struct str *s, struct arena *a);

#endif

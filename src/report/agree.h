/* agree.h - whether the clock of a run and its profile tell the same. */
#ifndef REPORT_AGREE_H
#define REPORT_AGREE_H

#include "report/changes.h"
#include "report/compare.h"

/* Adds a note to `runs` for each run whose step takes another time in its profile (by a tenth or
 * more), and for each pair of runs whose speeds the two disagree about. */
void agree_note(struct comparison *runs, const struct profile_file *profile, int profiles,
                const struct changes *change, struct arena *a);

#endif

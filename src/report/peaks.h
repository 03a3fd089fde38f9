/* peaks.h - one set of ceilings for profiles that are compared.
 *
 * A ceiling can only be measured too low, and the record of a machine keeps the best (MEASURING.md,
 * Ceilings). So a profile that was written before the record improved has lower ceilings, and its
 * floors and shares would differ from those of a later one by that alone. */
#ifndef REPORT_PEAKS_H
#define REPORT_PEAKS_H

#include "result/profile_file.h"

/* Raises the ceilings of profiles of one machine (device, instruction set, library, threads) to the
 * best of them, computes the floors anew and sets `raised`. */
void peaks_raise(struct profile_file *profile, int n, struct arena *a);

#endif

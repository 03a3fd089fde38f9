/* busy.h - one sentence about how busy memory and arithmetic of the devices were during runs. */
#ifndef REPORT_BUSY_H
#define REPORT_BUSY_H

#include "report/runs.h"

/* "By the GPU's counters, slow keeps memory 71 % busy and tensor cores 22 %; flash keeps ...".
 * Without counters an estimate, named so, by the FLOPs and bytes of the plan over the measured
 * peaks. NULL: neither is known of all runs. The text lives in the arena. */
const char *busy_words(const struct run *run, int n, struct arena *a);

#endif

/* speed.h - two runs before the judge of speed: per token, by the turns that they took with each
 * other (`strobe compare`), else by the times of their steps. */
#ifndef REPORT_SPEED_H
#define REPORT_SPEED_H

#include "base/judge.h"
#include "report/runs.h"

struct judgement speed_of(const struct run *first, const struct run *r, struct arena *a);

#endif

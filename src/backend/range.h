/* range.h - named stretches of the host's time, one inside the other, for a profiler of NVIDIA's that is attached to the
 * process (Nsight Systems and its like: NVTX). Where none is, a range costs a look at a pointer. */
#ifndef BACKEND_RANGE_H
#define BACKEND_RANGE_H

#include "base/base.h"

/* Such a profiler is attached. Else names need not be made. */
bool range_heard(void);
/* Of the calling thread; the name is copied. */
void range_push(const char *name);
void range_pop(void);

#endif

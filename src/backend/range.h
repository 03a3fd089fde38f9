/* range.h - nested, named ranges of host time (NVTX), for an NVIDIA profiler attached to the
 * process, such as Nsight Systems. Without a profiler, a range costs one pointer check. */
#ifndef BACKEND_RANGE_H
#define BACKEND_RANGE_H

#include "base/base.h"

/* True if a profiler is attached. If not, callers need not build names. */
bool range_active(void);
/* Opens a range of the calling thread; the name is copied. */
void range_push(const char *name);
void range_pop(void);

#endif

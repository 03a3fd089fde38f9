/* clock.h - the monotonic clock. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/base.h"

/* Nanoseconds since an arbitrary fixed time. */
int64_t clock_ns(void);
static inline double clock_ms(int64_t from_ns, int64_t to_ns)
{
    return (double)(to_ns - from_ns) * 1e-6;
}

#endif

/* host.h - the memory of this process, as the system counts it. */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include "base/base.h"

/* Bytes of memory that is nobody's file: heap, stacks, what libraries took. -1 where the system does
 * not say (/proc/self/status, RssAnon). */
int64_t host_anonymous_bytes(void);
/* Seconds of processor time that were spent since the machine started, by everybody, and by this
 * process. The first is -1 where the system does not say (/proc/stat). */
struct host_work {
    double all, own;
};
struct host_work host_work_now(void);
/* The most bytes that were resident at any moment, mapped files and libraries included. */
int64_t host_peak_bytes(void);

#endif

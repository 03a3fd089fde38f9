/* cupti.h - CUPTI taking notes: records of kernels, copies and fills, and of the calls that started them.
 *
 * CONCURRENT_KERNEL: nothing is made to wait for anything else. Records of calls are wanted because only with them a call
 * carries the number that was set (external correlation), also one that a library makes by itself. CUPTI is never taken
 * down again: there are versions that tell nothing after that. Private to backend/cuda. */
#ifndef BACKEND_CUDA_RUNTIME_CUPTI_H
#define BACKEND_CUDA_RUNTIME_CUPTI_H

#include "backend/cuda/runtime/trace_join.h"

/* From here on it takes notes; the device is idle. A failure says why it does not, and leaves nothing on. */
enum status cupti_begin(void);
/* Calls of this thread are of that mark from here on, -1: nobody's; or begin that play, until the next mark. */
void cupti_mark(int mark);
void cupti_play(int play);
/* Hands out the records and the calls since cupti_begin; the device is idle. Times are of base/clock.h's clock. Names live
 * until the next cupti_begin. *ret_dropped: records that there was no room for, or that have no times. */
enum status cupti_end(struct trace_input *ret, int64_t *ret_dropped, struct arena *a);

#endif

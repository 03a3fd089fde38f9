/* cupti.h - CUPTI's records of kernels, copies and memsets, and of the API calls that launched
 * them.
 *
 * The activity kind CONCURRENT_KERNEL does not serialize kernels. API calls are recorded because
 * otherwise CUPTI does not attach the mark (an external correlation id) to them; calls made by a
 * library also get the mark. CUPTI is never finalized, because some versions record nothing after
 * that. Private to backend/cuda. */
#ifndef BACKEND_CUDA_RUNTIME_CUPTI_H
#define BACKEND_CUDA_RUNTIME_CUPTI_H

#include "backend/cuda/runtime/trace_join.h"

/* Starts recording; the device must be idle. `calls`: record only API calls, which is possible
 * before a device is open. A failure states why and leaves nothing enabled. */
enum status cupti_begin(bool calls);
/* cupti_mark sets the mark of the next calls of this thread; -1 means no mark. cupti_replay instead
 * sets the number of the graph replay to which these calls belong. */
void cupti_mark(int mark);
void cupti_replay(int replay);
/* Returns the records and calls since cupti_begin; the device must be idle. Times are on the
 * clock of base/clock.h. Names are valid until the next cupti_begin. *ret_dropped counts records
 * that were lost because buffers were full, or that have no times. */
enum status cupti_end(struct trace_input *ret, int64_t *ret_dropped, struct arena *a);

#endif

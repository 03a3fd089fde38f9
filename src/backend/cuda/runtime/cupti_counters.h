/* cupti_counters.h - hardware counters of each kernel, by CUPTI's range profiler (CUDA 12.6).
 *
 * Kernels run one by one, each a range of its own. If the counters do not fit into one pass, CUPTI
 * saves the memory, repeats the kernel and restores it, so results stay right. Nothing else may use
 * CUPTI meanwhile. Private to backend/cuda. */
#ifndef BACKEND_CUDA_RUNTIME_CUPTI_COUNTERS_H
#define BACKEND_CUDA_RUNTIME_CUPTI_COUNTERS_H

#include "backend/counters.h"
#include "backend/cuda/runtime/driver.h"

/* Starts counting in the device's own context; the device must be idle. `most`: kernels at most. A
 * failure says why there are no counters and what to do, and leaves nothing enabled. */
enum status cupti_counters_begin(CUdevice device, enum counter_set set, int64_t most);
/* Ends it; the device must be idle. Fills *ret_kernels of ret[most], in the order of the launches.
 * Kernels beyond `most` are left out; CUPTI does not tell. */
enum status cupti_counters_end(struct kernel_counters *ret, int64_t *ret_kernels);

#endif

/* cupti_counters.h - hardware counters of each kernel, by CUPTI's range profiler (CUDA 12.6).
 *
 * Kernels run one by one; each kernel is one range. If the counters do not fit into one pass, CUPTI
 * saves the memory, restores it, and repeats the kernel, so results stay right. Nothing else may
 * use CUPTI between begin and end. Private to backend/cuda. */
#ifndef BACKEND_CUDA_RUNTIME_CUPTI_COUNTERS_H
#define BACKEND_CUDA_RUNTIME_CUPTI_COUNTERS_H

#include "backend/counters.h"
#include "backend/cuda/runtime/driver.h"

/* Starts counting at most `most` kernels in the device's primary context; the device must be idle.
 * A failure says why there are no counters and what to do, and leaves nothing enabled. */
enum status cupti_counters_begin(CUdevice device, enum counter_set set, int64_t most);
/* Ends counting; the device must be idle. Fills the first *ret_kernels elements of ret[most], in
 * launch order. Kernels beyond `most` are left out, and CUPTI does not report how many. */
enum status cupti_counters_end(struct kernel_counters *ret, int64_t *ret_kernels);

#endif

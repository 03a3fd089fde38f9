/* fault.h - kernels that fail while they run. The host continues meanwhile, and a later, unrelated
 * call reports it. So kernels in flight are recorded, to name those that may have failed. */
#ifndef BACKEND_CUDA_RUNTIME_FAULT_H
#define BACKEND_CUDA_RUNTIME_FAULT_H

#include "base/base.h"

#include <cuda.h>

/* True if a kernel failed, not the call that returned `r`; the device is then unusable. */
bool fault_is(CUresult r);
/* Fails with the kernels that may have failed if they are few, else with advice how to find it; or
 * says that the device itself is lost. */
enum status fault_fail(CUresult r);

/* A kernel was launched; it is in flight until fault_waited. The pointer is kept, not the text. */
void fault_launched(const char *entry);
/* A captured graph of many kernels was launched. */
void fault_replayed(void);
/* The host has waited for all work. */
void fault_waited(void);

#endif

/* fault.h - reports kernels that fail while they run. The error is returned by a later, unrelated
 * call to the driver. So the kernels in flight are recorded, and the message names them. */
#ifndef BACKEND_CUDA_RUNTIME_FAULT_H
#define BACKEND_CUDA_RUNTIME_FAULT_H

#include "base/base.h"

#include <cuda.h>

/* True if `r` reports an earlier kernel that failed, or that the device is lost, rather than a
 * failure of the call that returned `r`. The device is then unusable. */
bool fault_is(CUresult r);
/* Fails with a message that names the kernels in flight if they are few, or else advises how to
 * find the kernel. If the device itself is lost, the message says so. */
enum status fault_fail(CUresult r);

/* A kernel was launched; it is in flight until fault_waited. The pointer is kept, not the text. */
void fault_launched(const char *entry);
/* A captured graph of many kernels was launched. */
void fault_replayed(void);
/* The host has waited for all work. */
void fault_waited(void);

#endif

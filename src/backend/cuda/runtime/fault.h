/* fault.h - a kernel that fails while it runs. The host goes on meanwhile and is told at some later call, whatever that
 * asks for; so what the device is working on is noted, to say whose failure it can be. */
#ifndef BACKEND_CUDA_RUNTIME_FAULT_H
#define BACKEND_CUDA_RUNTIME_FAULT_H

#include "base/base.h"

#include <cuda.h>

/* The failure is a kernel's, not of the call that returned it; the device is lost to this process. */
bool fault_is(CUresult r);
/* The kernel that failed, where only few can be it; else how to find it. */
enum status fault_fail(CUresult r);

/* The kernel is started, and under way until the host has waited. Names are kept as pointers. */
void fault_started(const char *entry);
/* So is a recording of many. */
void fault_played(void);
void fault_waited(void);

#endif

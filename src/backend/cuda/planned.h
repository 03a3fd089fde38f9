/* planned.h - the launches of planned calls and the resources of their kernels, without a device.
 * Functions of backend_launches (backend.h). */
#ifndef BACKEND_CUDA_PLANNED_H
#define BACKEND_CUDA_PLANNED_H

#include "backend/backend.h"

int cuda_planned(const struct kernel *k, const struct kernel_call *c,
                 struct planned_launch ret[CALL_LAUNCHES], struct arena *a);
enum status cuda_compile(const struct target *t, struct planned_launch *const *launch, int n);

#endif

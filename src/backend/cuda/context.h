/* context.h - one GPU: its stream and its limits. Private to backend/cuda. */
#ifndef BACKEND_CUDA_CONTEXT_H
#define BACKEND_CUDA_CONTEXT_H

#include "backend/cuda/driver.h"
#include "backend/cuda/launch.h"

struct jit;
struct tracer;
struct cleared;

/* `context` was returned by the backend's open. A plan-only context compiles and runs nothing. */
bool cuda_plans_only(const void *context);
const struct cuda_device *cuda_context_device(const void *context);
/* The driver's handle of GPU `number`; a failure states why there is no such GPU. */
enum status cuda_find_device(int number, CUdevice *ret);
enum status cuda_read_device(CUdevice handle, struct cuda_device *ret);
CUstream cuda_stream(const void *context);
/* Call when a kernel with this entry name is launched. */
void cuda_count_launch(void *context, const char *entry);
struct jit *cuda_jit(const void *context);
/* NULL if no trace was begun yet. */
struct tracer *cuda_tracer(const void *context);
/* The cleared pool (cleared.h), NULL before the first capture; and a piece of it. */
struct cleared **cuda_cleared(void *context);
void *cuda_cleared_piece(void *context, int64_t bytes);

#endif

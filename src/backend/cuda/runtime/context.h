/* context.h - one GPU as the rest of the backend sees it: its stream, its limits. Private to backend/cuda. */
#ifndef BACKEND_CUDA_RUNTIME_CONTEXT_H
#define BACKEND_CUDA_RUNTIME_CONTEXT_H

#include "backend/cuda/runtime/driver.h"
#include "backend/cuda/runtime/launch.h"

struct jit;
struct tracer;
struct cleared;

/* `context` is what the backend's open returned. */
/* GPU `number` as the driver has it; a failure says why there is none. */
enum status cuda_find(int number, CUdevice *ret);
CUstream cuda_stream(const void *context);
/* One more kernel, of that name, is started. */
void cuda_count_start(void *context, const char *entry);
struct jit *cuda_jit(const void *context);
/* NULL: no trace was ever begun. */
struct tracer *cuda_tracer(const void *context);
/* Where it is kept: NULL before the first recording. And a piece of it (cleared.h). */
struct cleared **cuda_cleared(void *context);
void *cuda_cleared_piece(void *context, int64_t bytes);

#endif

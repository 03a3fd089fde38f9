/* context.h - one GPU: its stream and its limits. Private to backend/cuda. */
#ifndef BACKEND_CUDA_RUNTIME_CONTEXT_H
#define BACKEND_CUDA_RUNTIME_CONTEXT_H

#include "backend/cuda/runtime/driver.h"
#include "backend/cuda/runtime/launch.h"

struct communicator;
struct jit;
struct nccl;
struct tracer;
struct workspace_pool;

/* GPU `number` of this machine; a failure says why it cannot be used. */
enum status cuda_find(int number, CUdevice *ret);

/* Below, `context` was returned by the backend's open. */
CUstream cuda_stream(const void *context);
CUdevice cuda_handle(const void *context);
/* Makes the context current in the calling thread. A thread that did not open the context calls
 * this function first. */
enum status cuda_enter(const void *context);
/* The stream for collectives, on which the memory of other ranks is read and written. */
enum status cuda_ranks_stream(void *context, CUstream *ret);
/* NCCL between the GPUs of ranks that are separate processes; the first call joins them. */
enum status cuda_ranks_nccl(void *context, struct communicator *c, struct nccl **ret);
/* Call when a kernel with this entry name is launched. */
void cuda_count_launch(void *context, const char *entry);
/* Adds time that went into choosing the algorithm of a matmul; `context` may be NULL. */
void cuda_count_choosing(void *context, int64_t ns);
struct jit *cuda_jit(const void *context);
/* NULL if no trace was begun yet. */
struct tracer *cuda_tracer(const void *context);
/* The pool of workspaces (workspace_pool.h), NULL before the first capture; and a piece of the
 * pool. */
struct workspace_pool **cuda_workspace_pool(void *context);
void *cuda_workspace_piece(void *context, int64_t bytes);

#endif

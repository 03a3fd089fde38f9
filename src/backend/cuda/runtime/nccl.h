/* nccl.h - NCCL, opened at run time: collectives between GPUs of several processes. */
#ifndef BACKEND_CUDA_RUNTIME_NCCL_H
#define BACKEND_CUDA_RUNTIME_NCCL_H

#include "backend/communicator.h"
#include "backend/cuda/runtime/driver.h"
#include "graph/op.h"

struct device_library;
struct nccl;

/* Joins the GPUs of all ranks, whose communicator carries the id; each needs a GPU of its own. All
 * ranks call it. A thread watches from then on (nccl_wait). */
enum status nccl_open(struct nccl **ret, struct communicator *c, const void *context);
/* The host waits for the device, and so for the other ranks, from begin to end. If one of them
 * fails meanwhile, or NCCL does, the thread ends NCCL's work on the device, and `end` fails with a
 * sentence that names the rank; what was computed is then undefined. `n` may be NULL. */
void nccl_wait_begin(struct nccl *n);
enum status nccl_wait_end(struct nccl *n);
/* Enqueues a collective on f32 or bf16 memory of the device, in place; may be captured. */
enum status nccl_run(struct nccl *n, enum collective what, void *data, const struct type *t,
                     CUstream stream);
/* Notes the event that ends the collective on this memory; the event of the last one. */
void nccl_note(struct nccl *n, const void *data, CUevent event);
CUevent nccl_event(const struct nccl *n, const void *data);
/* May be NULL. */
void nccl_close(struct nccl *n);
/* NULL: it is there; else why not. Its version, "2.28.3". */
const char *nccl_missing(char ret_version[48]);

#endif

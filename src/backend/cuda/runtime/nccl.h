/* nccl.h - NCCL, opened at run time: collectives between GPUs of several processes. */
#ifndef BACKEND_CUDA_RUNTIME_NCCL_H
#define BACKEND_CUDA_RUNTIME_NCCL_H

#include "backend/communicator.h"
#include "backend/cuda/runtime/driver.h"
#include "graph/op.h"

struct device_library;
struct nccl;

/* Joins the GPUs of all ranks, whose communicator carries the id; each needs a GPU of its own. All
 * ranks call it, on the current device. */
enum status nccl_open(struct nccl **ret, struct communicator *c);
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

/* nccl.h - NCCL, opened at run time: collectives between GPUs of several processes. */
#ifndef BACKEND_CUDA_RUNTIME_NCCL_H
#define BACKEND_CUDA_RUNTIME_NCCL_H

#include "backend/communicator.h"
#include "backend/cuda/runtime/driver.h"
#include "graph/op.h"

struct device_library;
struct nccl;

/* Joins the GPUs of all ranks. Every rank calls this function and needs a GPU of its own; the
 * communicator sends NCCL's id from rank 0 to the others. From then on a thread watches for
 * failures while the host waits (nccl_wait_begin). */
enum status nccl_open(struct nccl **ret, struct communicator *c, const void *context);
/* Call these before and after the host waits for the device, and so for the other ranks. If another
 * rank or NCCL fails during the wait, the thread aborts NCCL's work on the device, and
 * nccl_wait_end fails with a message that says what failed; results on the device are then
 * undefined. `n` may be NULL. */
void nccl_wait_begin(struct nccl *n);
enum status nccl_wait_end(struct nccl *n);
/* Enqueues a collective on f32 or bf16 memory of the device, in place; may be captured. */
enum status nccl_run(struct nccl *n, enum collective what, void *data, const struct type *t,
                     CUstream stream);
/* nccl_note stores the event that completes when the collective on memory `data` has ended.
 * nccl_event returns the event that was stored last for this memory. */
void nccl_note(struct nccl *n, const void *data, CUevent event);
CUevent nccl_event(const struct nccl *n, const void *data);
/* May be NULL. */
void nccl_close(struct nccl *n);
/* Returns NULL if NCCL is available, else the reason why not. ret_version is its version, "2.28.3";
 * empty: unknown. */
const char *nccl_missing(char ret_version[48]);

#endif

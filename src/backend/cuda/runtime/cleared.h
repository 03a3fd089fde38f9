/* cleared.h - small workspaces of a recording's products that are cleared at once. Private to backend/cuda.
 *
 * Many kernels of cuBLASLt count their tiles in four bytes of their workspace, and the library clears these before each product: a
 * node of its own in a recording, a microsecond of work and one to begin. Within a recording each product gets a piece of its own;
 * when it has ended, the first of these nodes clears all pieces, and the others are taken out. */
#ifndef BACKEND_CUDA_RUNTIME_CLEARED_H
#define BACKEND_CUDA_RUNTIME_CLEARED_H

#include "backend/cuda/runtime/driver.h"

struct cleared;

/* Before a recording begins; the memory is taken the first time. Where there is none, or the driver is too old to change a
 * recording, no pieces are given. */
void cleared_begin(struct cleared **c);
/* So many bytes for one product of the recording under way, at a multiple of 256; NULL: none is under way, or there is no room. */
void *cleared_piece(struct cleared *c, int64_t bytes);
/* The recording has ended, or there is none: n = 0. Of its n nodes, in the order in which they were recorded, ret[i] is one that is
 * not needed any more, and that nothing waits for alone: it is the caller's to destroy. What the driver refuses stays. */
void cleared_end(struct cleared *c, CUgraph graph, const CUgraphNode *node, size_t n, bool *ret);
void cleared_close(struct cleared *c);

#endif

/* workspace_pool.h - small matmul workspaces of a captured graph, all cleared by one node. Private
 * to backend/cuda.
 *
 * Many cuBLASLt kernels count their tiles in four bytes of their workspace. The library clears
 * these bytes before each matmul with a separate memset node of the captured graph, which takes a
 * microsecond to start and one to run. Here each matmul of a capture gets a separate piece of one
 * pool. After the capture the first memset node is changed to clear all pieces, and the other
 * memset nodes are removed. */
#ifndef BACKEND_CUDA_RUNTIME_WORKSPACE_POOL_H
#define BACKEND_CUDA_RUNTIME_WORKSPACE_POOL_H

#include "backend/cuda/runtime/driver.h"

struct workspace_pool;

/* Call before a capture begins. The pool is allocated by the first call. If that fails, or the
 * driver is too old to change a graph, no pieces are handed out. */
void workspace_pool_begin(struct workspace_pool **c);
/* Returns `bytes` bytes, 256-byte aligned, for a matmul of the capture, or NULL if there is no pool
 * or the pool is full. */
void *workspace_pool_piece(struct workspace_pool *c, int64_t bytes);
/* Call when the capture has ended, with its n nodes in capture order (n = 0 if it failed). Sets
 * ret[i] if node i is no longer needed; its dependents then also depend on its dependencies, and
 * the caller destroys the node. Nodes that the driver refuses to change are kept. */
void workspace_pool_end(struct workspace_pool *c, CUgraph graph, const CUgraphNode *node, size_t n,
                        bool *ret);
void workspace_pool_close(struct workspace_pool *c);

#endif

#include "backend/cuda/runtime/workspace_pool.h"

#include "base/heap.h"

#include <stdlib.h>
#include <string.h>

/* A piece has PIECE bytes, so that no two matmuls share a cache line. */
enum { PIECE = 256, PIECES = 2048, NEIGHBORS = 16 };

struct workspace_pool {
    CUdeviceptr pool; /* 0: not available */
    int given;        /* pieces handed out in this capture */
    bool capturing;
    bool known[PIECES]; /* after the capture: a node that clears the piece was found */
    CUgraphNode first;  /* the first node that clears a piece; NULL: none */
};

static bool can_change(const struct cuda_driver *d)
{
    return d->cuGraphMemsetNodeGetParams && d->cuGraphMemsetNodeSetParams &&
           d->cuGraphNodeGetDependencies && d->cuGraphNodeGetDependentNodes &&
           d->cuGraphAddDependencies && d->cuGraphDestroyNode;
}

void workspace_pool_begin(struct workspace_pool **c)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    if (!*c) {
        *c = HEAP_NEW(struct workspace_pool, 1);
        if (can_change(d) && d->cuMemAlloc(&(*c)->pool, PIECE * PIECES) != CUDA_SUCCESS)
            (*c)->pool = 0;
    }
    (*c)->given = 0;
    (*c)->first = NULL;
    (*c)->capturing = (*c)->pool != 0;
}

void *workspace_pool_piece(struct workspace_pool *c, int64_t bytes)
{
    if (!c || !c->capturing || bytes < 1 || bytes > PIECE || c->given == PIECES) return NULL;
    return (void *)(c->pool + (CUdeviceptr)(PIECE * c->given++));
}

/* Returns the piece in which the node, a memset, sets bytes to zero, or -1 if the node does
 * something else. */
static int piece_of(const struct workspace_pool *c, CUgraphNode node)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUDA_MEMSET_NODE_PARAMS p;
    if (d->cuGraphNodeGetType(node, &type) != CUDA_SUCCESS || type != CU_GRAPH_NODE_TYPE_MEMSET)
        return -1;
    if (d->cuGraphMemsetNodeGetParams(node, &p) != CUDA_SUCCESS || p.value != 0 || p.height != 1)
        return -1;
    if (p.dst < c->pool || p.dst >= c->pool + PIECE * PIECES) return -1;
    CUdeviceptr at = p.dst - c->pool;
    return at % PIECE + p.width * p.elementSize <= PIECE ? (int)(at / PIECE) : -1;
}

/* The nodes that depend on `node`, or those it depends on; false: too many, or the query failed. */
static bool neighbors(CUgraphNode node, bool dependents, CUgraphNode ret[NEIGHBORS], size_t *ret_n)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    CUgraphEdgeData edge[NEIGHBORS];
    *ret_n = NEIGHBORS;
    return (dependents ? d->cuGraphNodeGetDependentNodes
                       : d->cuGraphNodeGetDependencies)(node, ret, edge, ret_n) == CUDA_SUCCESS &&
           *ret_n < NEIGHBORS;
}

/* Makes the dependents of the node depend on its dependencies, so that it can be removed. False
 * if the driver refuses; dependencies added until then are harmless. */
static bool bypass(CUgraph graph, CUgraphNode node)
{
    CUgraphNode before[NEIGHBORS], after[NEIGHBORS];
    size_t n_before, n_after;
    if (!neighbors(node, false, before, &n_before) || !neighbors(node, true, after, &n_after))
        return false;
    for (size_t i = 0; i < n_before; i++)
        for (size_t k = 0; k < n_after; k++)
            if (cuda_driver(NULL)->cuGraphAddDependencies(graph, &before[i], &after[k], NULL, 1) !=
                CUDA_SUCCESS)
                return false;
    return true;
}

/* Changes the node to clear all pieces, which are contiguous; false if the driver refuses. */
static bool clear_all_by(struct workspace_pool *c, CUgraphNode node)
{
    const CUDA_MEMSET_NODE_PARAMS p = {
        .dst = c->pool, .elementSize = 4, .width = (size_t)(PIECE / 4 * c->given), .height = 1};
    if (cuda_driver(NULL)->cuGraphMemsetNodeSetParams(node, &p) != CUDA_SUCCESS) return false;
    c->first = node;
    return true;
}

void workspace_pool_end(struct workspace_pool *c, CUgraph graph, const CUgraphNode *node, size_t n,
                        bool *ret)
{
    memset(c->known, 0, sizeof c->known);
    for (size_t i = 0; i < n; i++) {
        int piece = c->capturing ? piece_of(c, node[i]) : -1;
        /* If a matmul clears its piece a second time, the second node is needed. */
        bool second = piece >= 0 && c->known[piece];
        ret[i] = piece >= 0 && !second && c->first;
        if (piece < 0) continue;
        c->known[piece] = true;
        if (!c->first && !clear_all_by(c, node[i])) break;
    }
    for (size_t i = 0; i < n; i++) ret[i] = ret[i] && bypass(graph, node[i]);
    c->capturing = false;
}

void workspace_pool_close(struct workspace_pool *c)
{
    if (c && c->pool) cuda_driver(NULL)->cuMemFree(c->pool);
    free(c);
}

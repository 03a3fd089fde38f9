#include "backend/cuda/cleared.h"

#include <stdlib.h>

/* A piece is a line of the cache, so that products do not share one. */
enum { PIECE = 256, PIECES = 2048, NEIGHBOURS = 16 };

struct cleared {
    CUdeviceptr pool; /* 0: there is none */
    int given;        /* pieces */
    bool recording;
    CUgraphNode first; /* that clears one; NULL: none does */
};

static bool can_change(const struct cuda_driver *d)
{
    return d->cuGraphMemsetNodeGetParams && d->cuGraphMemsetNodeSetParams &&
           d->cuGraphNodeGetDependencies && d->cuGraphNodeGetDependentNodes &&
           d->cuGraphAddDependencies && d->cuGraphDestroyNode;
}

void cleared_begin(struct cleared **c)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    if (!*c) {
        *c = calloc(1, sizeof **c);
        BUG_IF(!*c, "no host memory");
        if (can_change(d) && d->cuMemAlloc(&(*c)->pool, PIECE * PIECES) != CUDA_SUCCESS)
            (*c)->pool = 0;
    }
    (*c)->given = 0;
    (*c)->first = NULL;
    (*c)->recording = (*c)->pool != 0;
}

void *cleared_piece(struct cleared *c, int64_t bytes)
{
    if (!c || !c->recording || bytes < 1 || bytes > PIECE || c->given == PIECES) return NULL;
    return (void *)(c->pool + (CUdeviceptr)(PIECE * c->given++));
}

/* Sets a few bytes of the pool to zero, and nothing else. */
static bool clears_a_piece(const struct cleared *c, CUgraphNode node)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    CUDA_MEMSET_NODE_PARAMS p;
    if (d->cuGraphNodeGetType(node, &type) != CUDA_SUCCESS || type != CU_GRAPH_NODE_TYPE_MEMSET)
        return false;
    return d->cuGraphMemsetNodeGetParams(node, &p) == CUDA_SUCCESS && p.value == 0 &&
           p.height == 1 && p.dst >= c->pool &&
           p.dst + p.width * p.elementSize <= c->pool + PIECE * PIECES;
}

void cleared_find(struct cleared *c, const CUgraphNode *node, size_t n, bool *ret)
{
    for (size_t i = 0; i < n; i++) {
        bool clears = c->recording && clears_a_piece(c, node[i]);
        ret[i] = clears && c->first;
        if (clears && !c->first) c->first = node[i];
    }
    c->recording = false;
}

static enum status neighbours(CUgraphNode node, bool behind, CUgraphNode ret[NEIGHBOURS],
                              size_t *ret_n)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    *ret_n = NEIGHBOURS;
    CUgraphEdgeData edge[NEIGHBOURS];
    TRY(cuda_check((behind ? d->cuGraphNodeGetDependentNodes
                           : d->cuGraphNodeGetDependencies)(node, ret, edge, ret_n),
                   "read a recording"));
    BUG_IF(*ret_n > NEIGHBOURS, "%zu neighbours of a node", *ret_n);
    return ST_OK;
}

static enum status take_out(CUgraph graph, CUgraphNode node)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    CUgraphNode before[NEIGHBOURS], behind[NEIGHBOURS];
    size_t n_before, n_behind;
    TRY(neighbours(node, false, before, &n_before));
    TRY(neighbours(node, true, behind, &n_behind));
    for (size_t i = 0; i < n_before; i++)
        for (size_t k = 0; k < n_behind; k++)
            TRY(cuda_check(d->cuGraphAddDependencies(graph, &before[i], &behind[k], NULL, 1),
                           "change a recording"));
    return cuda_check(d->cuGraphDestroyNode(node), "change a recording");
}

/* The pieces lie one behind the other. */
static enum status clear_all(const struct cleared *c)
{
    const CUDA_MEMSET_NODE_PARAMS p = {
        .dst = c->pool, .elementSize = 4, .width = (size_t)(PIECE / 4 * c->given), .height = 1};
    return cuda_check(cuda_driver(NULL)->cuGraphMemsetNodeSetParams(c->first, &p),
                      "change a recording");
}

enum status cleared_take_out(struct cleared *c, CUgraph graph, const CUgraphNode *node, size_t n,
                             const bool *needless)
{
    if (c->first) TRY(clear_all(c));
    for (size_t i = 0; i < n; i++)
        if (needless[i]) TRY(take_out(graph, node[i]));
    return ST_OK;
}

void cleared_close(struct cleared *c)
{
    if (c && c->pool) cuda_driver(NULL)->cuMemFree(c->pool);
    free(c);
}

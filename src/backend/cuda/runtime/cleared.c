#include "backend/cuda/runtime/cleared.h"

#include <stdlib.h>
#include <string.h>

/* A piece is a line of the cache, so that products do not share one. */
enum { PIECE = 256, PIECES = 2048, NEIGHBOURS = 16 };

struct cleared {
    CUdeviceptr pool; /* 0: there is none */
    int given;        /* pieces */
    bool recording;
    bool known[PIECES]; /* of a recording that has ended: a node that clears it was found */
    CUgraphNode first;  /* that clears one; NULL: none does */
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

/* The piece of which it sets some bytes to zero, and nothing else; -1: it does something else. */
static int piece_of(const struct cleared *c, CUgraphNode node)
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

/* All nodes beside it; false: too many, or the driver does not tell. */
static bool neighbours(CUgraphNode node, bool behind, CUgraphNode ret[NEIGHBOURS], size_t *ret_n)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    CUgraphEdgeData edge[NEIGHBOURS];
    *ret_n = NEIGHBOURS;
    return (behind ? d->cuGraphNodeGetDependentNodes
                   : d->cuGraphNodeGetDependencies)(node, ret, edge, ret_n) == CUDA_SUCCESS &&
           *ret_n < NEIGHBOURS;
}

/* What waits for the node waits for what it waits for, too; false: refused, what was added does no harm. */
static bool lead_around(CUgraph graph, CUgraphNode node)
{
    CUgraphNode before[NEIGHBOURS], behind[NEIGHBOURS];
    size_t n_before, n_behind;
    if (!neighbours(node, false, before, &n_before) || !neighbours(node, true, behind, &n_behind))
        return false;
    for (size_t i = 0; i < n_before; i++)
        for (size_t k = 0; k < n_behind; k++)
            if (cuda_driver(NULL)->cuGraphAddDependencies(graph, &before[i], &behind[k], NULL, 1) !=
                CUDA_SUCCESS)
                return false;
    return true;
}

/* All pieces, which lie one behind the other, are cleared by this node from now on; false: it does not want to. */
static bool clear_all_by(struct cleared *c, CUgraphNode node)
{
    const CUDA_MEMSET_NODE_PARAMS p = {
        .dst = c->pool, .elementSize = 4, .width = (size_t)(PIECE / 4 * c->given), .height = 1};
    if (cuda_driver(NULL)->cuGraphMemsetNodeSetParams(node, &p) != CUDA_SUCCESS) return false;
    c->first = node;
    return true;
}

void cleared_end(struct cleared *c, CUgraph graph, const CUgraphNode *node, size_t n, bool *ret)
{
    memset(c->known, 0, sizeof c->known);
    for (size_t i = 0; i < n; i++) {
        int piece = c->recording ? piece_of(c, node[i]) : -1;
        bool again = piece >= 0 && c->known[piece]; /* within one product: it means it */
        ret[i] = piece >= 0 && !again && c->first;
        if (piece < 0) continue;
        c->known[piece] = true;
        if (!c->first && !clear_all_by(c, node[i])) break;
    }
    for (size_t i = 0; i < n; i++) ret[i] = ret[i] && lead_around(graph, node[i]);
    c->recording = false;
}

void cleared_close(struct cleared *c)
{
    if (c && c->pool) cuda_driver(NULL)->cuMemFree(c->pool);
    free(c);
}

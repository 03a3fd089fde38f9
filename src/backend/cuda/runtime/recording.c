#include "backend/cuda/runtime/recording.h"

#include "backend/cuda/runtime/context.h"
#include "backend/cuda/runtime/fault.h"
#include "backend/cuda/runtime/tracer.h"
#include "backend/cuda/runtime/workspace_pool.h"
#include "base/heap.h"

#include <stdlib.h>

struct recording {
    CUgraphExec run; /* the instantiated graph */
    int number;      /* the number of the graph in traces */
};

enum status cuda_capture_begin(void *context)
{
    workspace_pool_begin(cuda_workspace_pool(context));
    CUresult r = cuda_driver(NULL)->cuStreamBeginCapture(cuda_stream(context),
                                                         CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    if (r != CUDA_SUCCESS) workspace_pool_end(*cuda_workspace_pool(context), NULL, NULL, 0, NULL);
    TRY(cuda_check(r, "capture a run"));
    tracer_capture_begin(cuda_tracer(context));
    return ST_OK;
}

/* All nodes of a captured graph. needless[i] is true if node i can be removed. */
struct nodes {
    CUgraphNode *node;
    bool *needless;
    size_t n;
};

static enum status list_nodes(CUgraph graph, struct nodes *ret)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    TRY(cuda_check(d->cuGraphGetNodes(graph, NULL, &ret->n), "list the nodes of a graph"));
    ret->node = heap_zeroed((int64_t)((ret->n + 1) * sizeof *ret->node));
    ret->needless = heap_zeroed((int64_t)((ret->n + 1) * sizeof *ret->needless));
    return cuda_check(d->cuGraphGetNodes(graph, ret->node, &ret->n), "list the nodes of a graph");
}

static enum status remove_needless(const struct nodes *all)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->needless[i])
            TRY(cuda_check(cuda_driver(NULL)->cuGraphDestroyNode(all->node[i]),
                           "remove a node of a graph"));
    return ST_OK;
}

static enum status instantiate(void *context, CUgraph graph, struct recording *ret)
{
    struct nodes all = {0};
    enum status st = list_nodes(graph, &all);
    workspace_pool_end(*cuda_workspace_pool(context), graph, all.node, st == ST_OK ? all.n : 0,
                       all.needless);
    ret->number = tracer_capture_end(cuda_tracer(context), st == ST_OK ? all.node : NULL,
                                     all.needless, all.n);
    if (st == ST_OK) st = remove_needless(&all);
    if (st == ST_OK)
        st = cuda_check(cuda_driver(NULL)->cuGraphInstantiateWithFlags(&ret->run, graph, 0),
                        "instantiate a graph");
    free(all.node);
    free(all.needless);
    return st;
}

enum status cuda_capture_end(void *context, void **ret_recording)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    CUgraph graph = NULL;
    enum status st =
        cuda_check(d->cuStreamEndCapture(cuda_stream(context), &graph), "capture a run");
    if (st != ST_OK) {
        workspace_pool_end(*cuda_workspace_pool(context), NULL, NULL, 0, NULL);
        tracer_capture_end(cuda_tracer(context), NULL, NULL, 0);
        return st;
    }
    struct recording *ret = HEAP_NEW(struct recording, 1);
    st = instantiate(context, graph, ret);
    d->cuGraphDestroy(graph);
    if (st == ST_OK)
        *ret_recording = ret;
    else
        free(ret);
    return st;
}

enum status cuda_replay(void *context, void *recording)
{
    const struct recording *r = recording;
    fault_replayed();
    tracer_replay_begin(cuda_tracer(context), r->number);
    CUresult launched = cuda_driver(NULL)->cuGraphLaunch(r->run, cuda_stream(context));
    tracer_replay_end(cuda_tracer(context));
    return cuda_check(launched, "replay a graph");
}

void cuda_recording_free(void *, void *recording)
{
    cuda_driver(NULL)->cuGraphExecDestroy(((struct recording *)recording)->run);
    free(recording);
}

#include "backend/cuda/recording.h"

#include "backend/cuda/context.h"
#include "backend/cuda/fault.h"
#include "backend/cuda/tracer.h"

#include <stdlib.h>

struct recording {
    CUgraphExec run; /* what was captured, made ready to be started */
    int number;      /* by which a trace knows it */
};

enum status cuda_capture_begin(void *context)
{
    TRY(cuda_check(cuda_driver(NULL)->cuStreamBeginCapture(cuda_stream(context),
                                                           CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                   "record a run"));
    tracer_record(cuda_tracer(context));
    return ST_OK;
}

enum status cuda_capture_end(void *context, void **ret_recording)
{
    const struct cuda_driver *d = cuda_driver(NULL);
    CUgraph graph = NULL;
    CUresult r = d->cuStreamEndCapture(cuda_stream(context), &graph);
    int number = tracer_recorded(cuda_tracer(context), r == CUDA_SUCCESS ? graph : NULL);
    TRY(cuda_check(r, "record a run"));
    struct recording *ret = malloc(sizeof *ret);
    BUG_IF(!ret, "no host memory");
    *ret = (struct recording){.number = number};
    r = d->cuGraphInstantiateWithFlags(&ret->run, graph, 0);
    d->cuGraphDestroy(graph);
    if (r != CUDA_SUCCESS) free(ret);
    TRY(cuda_check(r, "make a recording ready"));
    *ret_recording = ret;
    return ST_OK;
}

enum status cuda_replay(void *context, void *recording)
{
    const struct recording *r = recording;
    fault_played();
    tracer_play(cuda_tracer(context), r->number);
    CUresult started = cuda_driver(NULL)->cuGraphLaunch(r->run, cuda_stream(context));
    tracer_played(cuda_tracer(context));
    return cuda_check(started, "play a recording");
}

void cuda_recording_free(void *context, void *recording)
{
    (void)context;
    cuda_driver(NULL)->cuGraphExecDestroy(((struct recording *)recording)->run);
    free(recording);
}

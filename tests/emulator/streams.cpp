/* Streams, events, captured graphs. Work on a stream is done when something waits for it, or for
 * later work. */
#include "streams.hpp"

#include "engine.hpp"

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <thread>
#include <utility>

struct piece {
    double ms;
    emu_what what;
    emu_work work;
    unsigned call, recording;
    unsigned long long node;
    bool seen, gone;
    CUgraph graph;
};
struct CUgraph_st {
    std::deque<piece> pieces; /* do not move: each is a node, which waits for the one before it */
    std::set<std::pair<CUgraphNode, CUgraphNode>> added; /* edges */
    piece *beside(const piece *p, int step)
    {
        for (long i = at(p) + step; i >= 0 && i < (long)pieces.size(); i += step)
            if (!pieces[(size_t)i].gone) return &pieces[(size_t)i];
        return NULL;
    }

  private:
    long at(const piece *p) const
    {
        long i = 0;
        while (&pieces[(size_t)i] != p) i++;
        return i;
    }
};
struct CUgraphExec_st {
    std::shared_ptr<const CUgraph_st> graph;
    unsigned number;
    bool seen;
};
struct CUstream_st {
    std::deque<piece> waiting;
    unsigned long long put, done;
    CUgraph recording; /* NULL: none; shared by all streams that joined the capture */
};
/* A position on a stream, or in a graph; records when it was reached. */
struct CUevent_st {
    CUstream stream;
    unsigned long long place;
    CUgraph recording;
    double ms;
    bool reached;
};

namespace
{

/* One thread of the host at a time is in a call, or runs the device's work. */
std::recursive_mutex mutex;
typedef std::lock_guard<std::recursive_mutex> locked;
thread_local bool entered; /* the thread has a current context */

CUstream_st first; /* the stream NULL */
std::set<CUstream> streams = {&first};
CUresult fault = CUDA_SUCCESS;
double clock_ms;
const emu_watcher *watcher;
unsigned calls, recordings;

size_t recording_bytes()
{
    return (size_t)emu_number("EMU_RECORDING", 0);
}

CUstream of(CUstream s)
{
    return s ? s : &first;
}

/* While a trace is recorded, the host waits for the device's clock, as on a real GPU: else steps
 * that follow each other on the device would overlap by the host's clock. */
void keep_pace()
{
    using clock = std::chrono::steady_clock;
    static clock::time_point begun;
    static double begun_ms;
    static bool watched;
    if (watcher && !watched) begun = clock::now(), begun_ms = clock_ms;
    watched = watcher != NULL;
    if (watched)
        std::this_thread::sleep_until(
            begun + std::chrono::nanoseconds((long long)((clock_ms - begun_ms) * 1e6)));
}

CUresult do_until(CUstream s, unsigned long long place)
{
    keep_pace();
    while (fault == CUDA_SUCCESS && s->done < place) {
        piece p = std::move(s->waiting.front());
        s->waiting.pop_front();
        s->done++;
        double from = clock_ms;
        clock_ms += p.ms;
        CUresult r = p.work();
        if (watcher && p.what.kind != EMU_EVENT)
            watcher->done({p.what, p.call, p.recording, p.node, p.seen, from, clock_ms});
        if (fault == CUDA_SUCCESS) fault = r;
    }
    keep_pace();
    return fault;
}

/* Work that refers to an event must not see a later record: it keeps the event's present
 * position. */
emu_work wait_for(CUstream other, unsigned long long place)
{
    return [=] { return do_until(other, place); };
}

} // namespace

CUresult emu_fault()
{
    return fault;
}

bool emu_recording()
{
    for (CUstream s : streams)
        if (s->recording) return true;
    return false;
}

CUresult emu_drain()
{
    for (CUstream s : streams) do_until(s, s->put);
    return fault;
}

void emu_watch(const emu_watcher *w)
{
    watcher = w;
}

double emu_now_ms()
{
    return clock_ms;
}

long long emu_host_ns()
{
    using std::chrono::steady_clock;
    return std::chrono::nanoseconds(steady_clock::now().time_since_epoch()).count();
}

emu_call::emu_call(const char *api) : name(api), from_ns(emu_host_ns())
{
    mutex.lock();
}

emu_call::~emu_call()
{
    if (watcher && watcher->returned) watcher->returned(name, from_ns, emu_host_ns());
    mutex.unlock();
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    entered = context != NULL;
    return fault;
}

static unsigned new_call()
{
    if (watcher) watcher->called(calls + 1);
    return ++calls;
}

static void put(CUstream s, piece p)
{
    static const bool early = emu_number("EMU_EARLY", 0);
    s->waiting.push_back(std::move(p));
    s->put++;
    if (early) do_until(s, s->put);
}

CUresult emu_enqueue(CUstream stream, double ms, const emu_what &what, emu_work work)
{
    locked here(mutex);
    CUstream s = of(stream);
    if (fault != CUDA_SUCCESS) return fault;
    if (!entered) return CUDA_ERROR_INVALID_CONTEXT;
    piece p = {ms, what, std::move(work), new_call(), 0, 0, true, false, s->recording};
    if (s->recording)
        s->recording->pieces.push_back(std::move(p));
    else
        put(s, std::move(p));
    return CUDA_SUCCESS; /* the host gets a failure when it waits */
}

CUresult cuStreamCreate(CUstream *s, unsigned)
{
    locked here(mutex);
    *s = new CUstream_st();
    streams.insert(*s);
    return fault;
}

CUresult cuStreamDestroy(CUstream s)
{
    locked here(mutex);
    do_until(s, s->put);
    streams.erase(s);
    delete s;
    return fault;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    emu_call call("cuStreamSynchronize");
    CUstream s = of(stream);
    return s->recording ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : do_until(s, s->put);
}

/* A stream that waits for a stream under capture joins the capture. */
CUresult cuStreamWaitEvent(CUstream stream, CUevent e, unsigned)
{
    emu_call call("cuStreamWaitEvent");
    CUstream s = of(stream);
    if (e->recording) {
        if (s->recording && s->recording != e->recording) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
        s->recording = e->recording;
        return CUDA_SUCCESS;
    }
    if (s->recording) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    return e->stream ? emu_enqueue(s, 0, {}, wait_for(e->stream, e->place)) : CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *e, unsigned)
{
    *e = new CUevent_st();
    return fault;
}

CUresult cuEventDestroy(CUevent e)
{
    locked here(mutex);
    if (e->stream && streams.count(e->stream)) do_until(e->stream, e->place);
    delete e;
    return fault;
}

CUresult cuEventRecord(CUevent e, CUstream stream)
{
    emu_call call("cuEventRecord");
    CUstream s = of(stream);
    e->recording = s->recording;
    if (s->recording) return CUDA_SUCCESS;
    if (!entered) return CUDA_ERROR_INVALID_CONTEXT;
    e->reached = false;
    e->stream = s;
    e->place = s->put + 1;
    return emu_enqueue(s, 0, {}, [e, place = e->place] {
        if (e->place == place) e->ms = clock_ms, e->reached = true;
        return CUDA_SUCCESS;
    });
}

CUresult cuEventSynchronize(CUevent e)
{
    emu_call call("cuEventSynchronize");
    if (e->recording) return CUDA_ERROR_CAPTURED_EVENT;
    return e->stream ? do_until(e->stream, e->place) : fault;
}

CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to)
{
    if (!from->reached || !to->reached) return fault != CUDA_SUCCESS ? fault : CUDA_ERROR_NOT_READY;
    *ms = (float)(to->ms - from->ms);
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode)
{
    emu_call call("cuStreamBeginCapture");
    CUstream s = of(stream);
    if (s == &first) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (s->recording) return CUDA_ERROR_ILLEGAL_STATE;
    s->recording = new CUgraph_st();
    return fault;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    emu_call call("cuStreamEndCapture");
    CUgraph g = of(stream)->recording;
    *graph = NULL;
    if (!g) return CUDA_ERROR_ILLEGAL_STATE;
    for (CUstream s : streams)
        if (s->recording == g) s->recording = NULL;
    *graph = g;
    return fault;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *run, CUgraph g, unsigned long long)
{
    emu_call call("cuGraphInstantiateWithFlags");
    if (!emu_take(recording_bytes())) return CUDA_ERROR_OUT_OF_MEMORY;
    *run =
        new CUgraphExec_st{std::make_shared<const CUgraph_st>(*g), ++recordings, watcher != NULL};
    return fault;
}

CUresult cuGraphLaunch(CUgraphExec run, CUstream stream)
{
    if (fault != CUDA_SUCCESS) return fault;
    emu_call api("cuGraphLaunch");
    unsigned call = new_call();
    unsigned long long node = (unsigned long long)run->number << 32;
    for (piece p : run->graph->pieces) {
        if (p.gone) continue;
        p.call = call;
        p.recording = run->number;
        p.node = ++node;
        p.seen = run->seen;
        put(of(stream), std::move(p));
    }
    return fault;
}

CUresult cuGraphDestroy(CUgraph g)
{
    delete g;
    return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec run)
{
    emu_give(recording_bytes());
    delete run;
    return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph g, CUgraphNode *node, size_t *n)
{
    size_t i = 0;
    for (piece &p : g->pieces) {
        if (p.gone || (node && i == *n)) continue;
        if (node) node[i] = (CUgraphNode)&p;
        i++;
    }
    *n = i;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    switch (((const piece *)node)->what.kind) {
    case EMU_KERNEL:
        *type = CU_GRAPH_NODE_TYPE_KERNEL;
        break;
    case EMU_COPY:
        *type = CU_GRAPH_NODE_TYPE_MEMCPY;
        break;
    case EMU_FILL:
        *type = CU_GRAPH_NODE_TYPE_MEMSET;
        break;
    case EMU_EVENT:
        *type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *ret)
{
    const emu_what &w = ((const piece *)node)->what;
    if (w.kind != EMU_FILL) return CUDA_ERROR_INVALID_VALUE;
    *ret = {};
    ret->dst = w.to, ret->value = w.byte, ret->elementSize = 1, ret->width = w.bytes,
    ret->height = 1;
    return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params)
{
    piece *p = (piece *)node;
    const CUDA_MEMSET_NODE_PARAMS to = *params;
    if (p->what.kind != EMU_FILL || to.value || to.height != 1) return CUDA_ERROR_INVALID_VALUE;
    p->what.to = to.dst, p->what.byte = 0, p->what.bytes = to.width * to.elementSize;
    p->work = [=] {
        memset((void *)to.dst, 0, to.width * to.elementSize);
        return CUDA_SUCCESS;
    };
    return CUDA_SUCCESS;
}

static CUresult beside(CUgraphNode node, int step, CUgraphNode *ret, size_t *n)
{
    const piece *p = (const piece *)node;
    piece *found = p->graph->beside(p, step);
    if (found && ret && *n) *ret = (CUgraphNode)found;
    *n = found ? 1 : 0;
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *ret, CUgraphEdgeData *,
                                    size_t *n)
{
    return beside(node, -1, ret, n);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *ret, CUgraphEdgeData *,
                                      size_t *n)
{
    return beside(node, 1, ret, n);
}

CUresult cuGraphAddDependencies(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                const CUgraphEdgeData *, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!g->added.insert({from[i], to[i]}).second) return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* Its successors must wait for its predecessors. */
CUresult cuGraphDestroyNode(CUgraphNode node)
{
    piece *p = (piece *)node, *before = p->graph->beside(p, -1), *behind = p->graph->beside(p, 1);
    if (before && behind && !p->graph->added.count({(CUgraphNode)before, (CUgraphNode)behind})) {
        fprintf(stderr, "emulator: a removed node's successors wait for nothing\n");
        abort();
    }
    p->gone = true;
    return CUDA_SUCCESS;
}

/* The driver has three forms of it; the program uses this one. */
extern "C" CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status,
                                              cuuint64_t *, CUgraph *graph, const CUgraphNode **,
                                              size_t *)
{
    *graph = of(stream)->recording;
    *status = *graph ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

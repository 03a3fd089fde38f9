#include "backend/cuda/runtime/tracer.h"

#include "backend/cuda/runtime/cupti.h"
#include "backend/cuda/runtime/cupti_library.h"
#include "base/arena.h"
#include "base/heap.h"

#include <dlfcn.h>
#include <stdlib.h>

/* A mark that was set during a capture, and the number of nodes captured by then. */
struct bound {
    int mark;
    bool beside;
    size_t nodes;
};
struct recorded {
    int *mark; /* the mark of each activity; NULL if the marks are unknown */
    bool *beside;
    int64_t activities;
};

struct tracer {
    CUstream stream;
    bool on, recording;
    bool lost; /* the captured nodes could not be counted */
    bool ran;  /* a kernel ran, so CUPTI must have records */
    bool beside;
    int mark;
    /* Holds the arrays below. They outlive a trace, because a graph may be replayed in a later
     * trace. */
    struct arena arena;
    struct bound *bound;
    int bounds, bounds_capacity;
    struct recorded *recorded;
    int recordings, recordings_capacity;
    int *replayed; /* the number of the graph of each replay */
    int replays, replays_capacity;
};

enum status tracer_begin(struct tracer **t, CUstream stream)
{
    TRY(cupti_begin(false));
    if (!*t) *t = HEAP_NEW(struct tracer, 1);
    (*t)->stream = stream;
    (*t)->on = true;
    (*t)->mark = -1;
    (*t)->replays = 0;
    (*t)->ran = false;
    return ST_OK;
}

void tracer_launched(struct tracer *t)
{
    if (t && !t->recording) t->ran = true;
}

void tracer_close(struct tracer *t)
{
    if (!t) return;
    arena_release(&t->arena);
    free(t);
}

/* --- recordings ------------------------------------------------------------------------------- */

/* cuStreamGetCaptureInfo_v2, which every driver of CUDA 12 and 13 has but no header of CUDA 13
 * declares. If only the graph is queried, the function accepts all kinds of edges. */
typedef CUresult capture_info(CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *,
                              const CUgraphNode **, size_t *);

static capture_info *find_capture_info(void)
{
    static capture_info *found;
    static bool tried;
    Dl_info info;
    if (tried) return found;
    tried = true;
    if (!dladdr((void *)cuda_driver(NULL)->cuGraphGetNodes, &info)) return NULL;
    void *library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    if (library) found = (capture_info *)dlsym(library, "cuStreamGetCaptureInfo_v2");
    return found;
}

static bool count_nodes(const struct tracer *t, size_t *ret)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = NULL;
    capture_info *query = find_capture_info();
    return query && query(t->stream, &status, NULL, &graph, NULL, NULL) == CUDA_SUCCESS &&
           status == CU_STREAM_CAPTURE_STATUS_ACTIVE && graph &&
           cuda_driver(NULL)->cuGraphGetNodes(graph, NULL, ret) == CUDA_SUCCESS;
}

static void bind(struct tracer *t)
{
    struct bound b = {.mark = t->mark, .beside = t->beside};
    if (!count_nodes(t, &b.nodes)) t->lost = true;
    ARENA_GROW(&t->arena, t->bound, t->bounds, t->bounds_capacity);
    t->bound[t->bounds++] = b;
}

void tracer_mark(struct tracer *t, int mark)
{
    if (!t || !t->on) return;
    t->mark = mark;
    cupti_mark(mark);
    if (t->recording) bind(t);
}

void tracer_beside(struct tracer *t, bool beside)
{
    if (!t || !t->on) return;
    t->beside = beside;
    if (t->recording) bind(t);
}

void tracer_capture_begin(struct tracer *t)
{
    if (!t || !t->on) return;
    t->recording = true;
    t->lost = false;
    t->bounds = 0;
    bind(t);
}

static CUgraphNodeType type_of(CUgraphNode node)
{
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    (void)cuda_driver(NULL)->cuGraphNodeGetType(node, &type); /* leaves EMPTY if it fails */
    return type;
}

/* Event and stream-join nodes are not recorded as activities. */
static bool is_activity(CUgraphNodeType type)
{
    return type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
           type == CU_GRAPH_NODE_TYPE_MEMSET;
}

/* Assigns marks to the activities of a captured graph. Nodes are in order of creation, so the nodes
 * of a mark lie between the bound of this mark and the next bound. */
static void keep(struct tracer *t, const CUgraphNode *node, const bool *without, size_t n,
                 struct recorded *ret)
{
    int b = 0;
    ret->mark = ARENA_NEW(&t->arena, int, (int64_t)n + 1);
    ret->beside = ARENA_NEW(&t->arena, bool, (int64_t)n + 1);
    for (size_t i = 0; i < n; i++) {
        while (b + 1 < t->bounds && t->bound[b + 1].nodes <= i) b++;
        CUgraphNodeType type = type_of(node[i]);
        if (without[i] || !is_activity(type)) continue;
        ret->beside[ret->activities] = t->bound[b].beside && type == CU_GRAPH_NODE_TYPE_KERNEL;
        ret->mark[ret->activities++] = t->bound[b].mark;
    }
}

int tracer_capture_end(struct tracer *t, const CUgraphNode *node, const bool *without, size_t n)
{
    if (!t || !t->recording) return RECORDING_UNKNOWN;
    struct recorded r = {.mark = NULL};
    t->recording = false;
    if (node && !t->lost) keep(t, node, without, n, &r);
    ARENA_GROW(&t->arena, t->recorded, t->recordings, t->recordings_capacity);
    t->recorded[t->recordings++] = r;
    return t->recordings - 1;
}

void tracer_replay_begin(struct tracer *t, int recording)
{
    if (!t || !t->on) return;
    cupti_replay(t->replays);
    ARENA_GROW(&t->arena, t->replayed, t->replays, t->replays_capacity);
    t->replayed[t->replays++] = recording;
    t->ran = true;
}

void tracer_replay_end(struct tracer *t)
{
    if (t && t->on) cupti_mark(t->mark);
}

/* --- the end ---------------------------------------------------------------------------------- */

static const struct trace_replay *list_replays(const struct tracer *t, struct arena *a)
{
    struct trace_replay *replay = ARENA_NEW(a, struct trace_replay, t->replays);
    for (int i = 0; i < t->replays; i++) {
        if (t->replayed[i] == RECORDING_UNKNOWN) continue;
        const struct recorded *r = &t->recorded[t->replayed[i]];
        replay[i] = (struct trace_replay){r->mark, r->beside, r->activities};
    }
    return replay;
}

static void report_dropped(struct trace *t, int64_t dropped, struct arena *a)
{
    if (!dropped) return;
    t->dropped = dropped;
    t->why = arena_printf(a, "%lld CUPTI records were dropped because its buffers were full%s%s",
                          (long long)dropped, t->why ? "; " : "", t->why ? t->why : "");
}

enum status tracer_end(struct tracer *t, struct trace *ret, struct arena *a)
{
    struct trace_input in;
    int64_t dropped = 0;
    char version[48];
    BUG_IF(!t || !t->on, "no trace to end");
    t->on = t->recording = false;
    TRY(cupti_end(&in, &dropped, a));
    if (in.records == 0 && t->ran)
        return fail(ST_UNSUPPORTED,
                    "CUPTI recorded no kernels although some ran: another profiler may be attached "
                    "to this process");
    in.replay = list_replays(t, a);
    in.replays = t->replays;
    trace_join(&in, ret, a);
    report_dropped(ret, dropped, a);
    cupti_version(version);
    ret->by = arena_printf(a, "CUPTI%s%s", *version ? " " : "", version);
    return ST_OK;
}

/* trace_join.h - finds for each recorded activity of a GPU the mark that the host had set. Needs no
 * device and no library. Private to backend/cuda. */
#ifndef BACKEND_CUDA_RUNTIME_TRACE_JOIN_H
#define BACKEND_CUDA_RUNTIME_TRACE_JOIN_H

#include "backend/trace.h"

struct arena;

struct trace_record {
    enum activity_kind kind;
    bool replayed; /* part of a graph replay */
    uint32_t call; /* number of the API call that launched the activity or its graph */
    const char *name;
    int64_t start_ns, end_ns, bytes;
};

/* An API call of the host that was made under a mark or that replays a graph. */
enum { NO_REPLAY = -1 };
struct trace_call {
    uint32_t call;
    int mark;
    int replay; /* number of the replay in this trace, or NO_REPLAY */
};

/* One replay of a graph: the marks of its activities, in the order in which they were captured.
 * `mark` is NULL if the marks are unknown. */
struct trace_replay {
    const int *mark;
    const bool *beside; /* of each activity: a kernel of NCCL, on another stream; NULL: none is */
    int64_t activities;
};

struct trace_input {
    struct trace_record *record; /* trace_join sorts them */
    int64_t records;
    struct trace_call *call; /* trace_join sorts them */
    int64_t calls;
    const struct trace_replay *replay; /* in launch order */
    int64_t replays;
    struct api_call *api; /* `thread`: any id; trace_join numbers the threads from 0 */
    int64_t apis;
};

/* Fills all of *ret, in memory of `a`, except `dropped` and `by`. */
void trace_join(struct trace_input *in, struct trace *ret, struct arena *a);

#endif

/* trace_join.h - records of what a GPU did, joined with what the host knows of whose they are. Pure: it asks no device and
 * no library. Private to backend/cuda. */
#ifndef BACKEND_CUDA_RUNTIME_TRACE_JOIN_H
#define BACKEND_CUDA_RUNTIME_TRACE_JOIN_H

#include "backend/trace.h"

struct arena;

struct trace_record {
    enum activity_kind kind;
    bool played;   /* it was part of a recording */
    uint32_t call; /* the number of the call that started it, or its recording */
    const char *name;
    int64_t start_ns, end_ns, bytes;
};

/* A call of the host was made under a mark, or plays a recording. */
enum { NO_PLAY = -1 };
struct trace_call {
    uint32_t call;
    int mark;
    int play; /* number of the play in this trace, else NO_PLAY */
};

/* One play of a recording: the marks of its activities; NULL: they are not known. */
struct trace_play {
    const int *mark;
    int64_t activities;
};

struct trace_input {
    struct trace_record *record; /* are sorted */
    int64_t records;
    struct trace_call *call; /* too */
    int64_t calls;
    const struct trace_play *play; /* in their order */
    int64_t plays;
};

/* Fills all of *ret but `dropped` and `by`; short names are kernel_name's. `a` holds it. */
void trace_join(struct trace_input *in, struct trace *ret, struct arena *a);

#endif

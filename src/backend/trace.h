/* trace.h - the activities of a device, with device times: one for each kernel, copy and fill, with
 * the mark that was set when the host launched it; and the host's calls of the device's API.
 *
 * A backend that can trace its device sets the group struct backend_trace (backend.h). If the group
 * is NULL, or `begin` fails, times come from events of the backend, which may span several kernels.
 *
 * Captured graphs. Marks set during a capture hold for each replay: a graph is captured from one
 * stream, so the i-th activity of a replay is the i-th captured one. Replays are identified by
 * their order and by the number of activities of their graph. If the number does not match, the
 * activities of that replay have no mark, and `why` says so. Marks are known only for graphs that
 * were captured between begin and end of a trace; the library may not even report the kernels of
 * other graphs. So begin a trace, capture, then replay, in this trace or in a later one. */
#ifndef BACKEND_TRACE_H
#define BACKEND_TRACE_H

#include "base/base.h"

enum activity_kind { ACTIVITY_KERNEL, ACTIVITY_COPY, ACTIVITY_FILL, ACTIVITY_KINDS };

enum { ACTIVITY_NAME = 48 };
struct activity {
    enum activity_kind kind;
    int mark;   /* -1: none */
    int replay; /* number of the graph replay in this trace, from 0; -1: launched directly */
    /* A kernel's name as the library reports it, possibly mangled; short_name is without parameters
     * and has at most ACTIVITY_NAME - 1 letters. Other kinds: "copy device to host", "memset". */
    const char *name, *short_name;
    int64_t start_ns, end_ns; /* on the clock of base/clock.h */
    int64_t bytes;            /* of a copy or a fill */
    bool unmatched;           /* part of a replay, with unknown mark (-1) */
};

/* A call of the host to the API of the device: to the driver or to a library's runtime. */
struct api_call {
    const char *name; /* "cuLaunchKernel", without the version that follows some names */
    int thread;       /* host threads are numbered in the order of their first calls */
    int64_t start_ns, end_ns;
};

struct trace {
    struct activity *activity; /* sorted by start time */
    int64_t activities;
    const struct api_call *api; /* sorted by start time, without calls inside another call */
    int64_t apis;
    int64_t dropped;   /* activities lost or without times, as the library's buffers were full */
    int64_t unmatched; /* activities that were recorded, but with unknown mark (-1) */
    const char *why;   /* a sentence about dropped and unmatched activities; NULL: none */
    const char *by;    /* the library that recorded the trace: "CUPTI 13.0.1" */
};

#endif

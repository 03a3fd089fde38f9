/* trace.h - what a device did, in its own time: one activity for each kernel, copy and fill, with the mark that was set when
 * the host started it.
 *
 * A backend that sees its device has the three functions trace_begin, trace_mark, trace_end (backend.h). Where they are NULL,
 * or trace_begin fails, events of the backend tell times, of more than one kernel at once.
 *
 * Recordings. Marks that were set while a run was recorded hold for each of its plays: a recording is one stream, so the
 * i-th activity of a play is the i-th that was recorded. Plays are told apart by their order and by how many activities
 * their recording has; where the count does not fit, the play's activities are nobody's, and `why` says so. That is known
 * of recordings that were made between a trace_begin and its trace_end, and only of these: of another one the library may not
 * even see the kernels. So begin the trace, then record, then play. They may be played in a later trace. */
#ifndef BACKEND_TRACE_H
#define BACKEND_TRACE_H

#include "base/base.h"

enum activity_kind { ACTIVITY_KERNEL, ACTIVITY_COPY, ACTIVITY_FILL, ACTIVITY_KINDS };

enum { ACTIVITY_NAME = 48 };
struct activity {
    enum activity_kind kind;
    int mark; /* -1: nobody's */
    int play; /* which play of a recording in this trace, from 0; -1: it was started by itself */
    /* A kernel's as its maker has it, mangled if it is, and for tables without parameters, of at most ACTIVITY_NAME - 1
     * letters. Of the others what was done: "copy device to host", "memset". */
    const char *name, *short_name;
    int64_t start_ns, end_ns; /* of base/clock.h's clock */
    int64_t bytes;            /* of a copy or a fill */
};

struct trace {
    struct activity *activity; /* in the order of start */
    int64_t activities;
    int64_t dropped;   /* took place and are not here, or without times: the library had no room */
    int64_t unmatched; /* are here, but it is not known whose: their mark is -1 */
    const char *why;   /* says what was dropped or not matched, in a sentence; NULL: nothing */
    const char *by;    /* "CUPTI 13.0.1" */
};

#endif

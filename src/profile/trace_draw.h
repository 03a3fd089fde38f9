/* trace_draw.h - the events of steps, as texts; private to profile/. */
#ifndef PROFILE_TRACE_DRAW_H
#define PROFILE_TRACE_DRAW_H

#include "base/str.h"
#include "engine/memory.h"
#include "profile/collect.h"
#include "profile/trace_file.h"

/* The text of one step, as far as there is room. */
struct writer {
    struct str s;
    int64_t room, events, cut;
    int64_t begun; /* where the event begins that is being written */
};

struct counter {
    const char *name;
    double now; /* what was written last */
    bool any;
};
enum { RATE_BYTES, RATE_FLOPS, RATES };

struct drawing {
    const struct profile *p;
    struct marks marks;
    struct memory_course course;
    int *moment;       /* of each row: that of the course while it runs; -1: none */
    int *row_of;       /* of each mark: its first row; -1: none */
    const char **text; /* of each row: "name":…,"cat":…,"args":{… without the end */
    int *lane;         /* of each activity: a row of the trace; -1: there was none left */
    int lanes[2];      /* that are in use, of kernels and of copies */
    int64_t origin;    /* ns */
    struct writer w;
    struct counter memory[MEMORY_PARTS + 1], rate[RATES];
    struct arena *a;
};

/* Describes rows and finds places for all that steps first ... first + steps - 1 did. `a` holds what it needs. */
void drawing_init(struct drawing *d, const struct profile *p, int first, int steps,
                  struct arena *a);
/* Leaves the step's events in d->w. What people look for first stands first, so that what is cut is the rest. */
void drawing_step(struct drawing *d, int step, int64_t room);
/* A text of JSON, in quotes. */
const char *drawing_quoted(const char *text, struct arena *a);

#endif

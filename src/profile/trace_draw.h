/* trace_draw.h - writes the trace events of steps as JSON text; private to profile/. */
#ifndef PROFILE_TRACE_DRAW_H
#define PROFILE_TRACE_DRAW_H

#include "base/str.h"
#include "engine/memory.h"
#include "profile/collect.h"
#include "profile/trace_file.h"

/* The text of one step, at most `limit` bytes. */
struct writer {
    struct str s;
    int64_t limit, events, cut;
    int64_t begun; /* offset of the event that is being written */
};

struct counter {
    const char *name;
    double now; /* the last value written */
    bool any;
};
enum { RATE_BYTES, RATE_FLOPS, RATES };

struct drawing {
    const struct profile *p;
    struct marks marks;
    struct memory_course course;
    int *moment;       /* per row: its moment in `course`; -1: none */
    int *row_of;       /* per mark: its first row; -1: none */
    const char **text; /* per row: "name":…,"cat":…,"args":{… without the closing brace */
    int *lane;         /* per activity: its row in the trace; -1: no row was free */
    int lanes[2];      /* rows in use, for kernels and for copies */
    int threads;       /* of the host that worked in these steps */
    int64_t arrows;    /* numbers of the arrows so far */
    int64_t origin;    /* ns */
    struct writer w;
    struct counter memory[MEMORY_PARTS + 1], rate[RATES];
    struct arena *a;
};

/* Prepares to draw steps first ... first + steps - 1: texts and trace rows. Allocates in `a`. */
void drawing_init(struct drawing *d, const struct profile *p, int first, int steps,
                  struct arena *a);
/* Writes the step's events to d->w, the most important first: the limit cuts the last ones. */
void drawing_step(struct drawing *d, int step, int64_t limit);
/* The text as a JSON string with quotes. */
const char *drawing_quoted(const char *text, struct arena *a);

#endif

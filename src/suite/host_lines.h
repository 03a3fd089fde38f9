/* host_lines.h - what the host and the copies of a profile did, and what the host's threads waited
 * for; private to suite/. */
#ifndef SUITE_HOST_LINES_H
#define SUITE_HOST_LINES_H

#include "present/sheet.h"
#include "profile/profile.h"

struct host_line {
    int64_t T;
    const char *side, *kind, *name, *within, *thread;
    int steps; /* what follows is the sum of these; 1 for calls before the profiled steps */
    int64_t calls;
    double ms, bytes, share; /* share: of a step */
};
struct host_lines {
    struct host_line *line;
    int lines, capacity;
    struct arena *a;
};

/* Adds, per step, the host's parts, its calls of the device's API, copies and fills. Without a
 * device's record of calls, launches of kernels are those that the host watched. */
void host_lines_add(struct host_lines *h, const char *side, int64_t T, const struct profile *p);
void host_lines_table(const struct host_lines *h, struct sheet *s);

/* Adds, per step and thread of the host, how long it worked and what it waited for. */
void host_waits_add(struct host_lines *h, const char *side, int64_t T, const struct profile *p);
void host_waits_table(const struct host_lines *h, struct sheet *s);

#endif

/* launch.h - what it costs to start work, and ways to start it less often.
 *
 * On a GPU: many small kernels, each y = y + 1, launched in different ways, from one by one with a
 * wait after each to one kernel that does the work of all; and chunks of page-locked memory that
 * are copied in, worked on and copied out, on one stream and on several (pipeline.c). On a CPU: a
 * parallel region with nothing in it, and many small operators with a team of threads for each,
 * one team for all, and fused.
 *
 * Every way is checked before it is timed: each element must be what that many additions make it,
 * which is exact in float up to 2^24. */
#ifndef LAB_LAUNCH_LAUNCH_H
#define LAB_LAUNCH_LAUNCH_H

#include "lab/lab.h"
#include "measure/rounds.h"

enum { LAUNCH_POINTS = 32, LAUNCH_MOST = 1000, LAUNCH_CHUNKS = 16 };

struct launch_options {
    struct device device;
    int launches;  /* of a sample, 1 ... LAUNCH_MOST */
    int64_t bytes; /* of the copies, all chunks together */
    int samples;   /* of each row, at most */
    double limit_ms;
    void (*each)(void *user, double share, const char *what);
    void *user;
};

/* A way to start the work. */
struct launch_way {
    const char *name; /* "one stream" */
    bool base;        /* what the others are compared with */
};

/* One way for one amount of work. Times are milliseconds of a sample: of all launches, or
 * operators, together. */
struct launch_point {
    const struct launch_way *way;
    int64_t floats; /* that a kernel, or operator, works on */
    int additions;  /* to each of them, by one kernel */
    /* By the clock of the host, from the first call until all is done. Of a GPU part 0 is what the
     * launching calls take and part 1 what the host waits besides. */
    struct contender time;
    /* Of a GPU, by events before the first launch and after the last: idle time counts. */
    struct stats device;
};

/* Chunks that are copied in, worked on and copied out. Times are those of all chunks, by events. */
enum launch_part { LAUNCH_IN, LAUNCH_KERNELS, LAUNCH_OUT, LAUNCH_PARTS };
struct launch_pipeline {
    int64_t chunk_bytes; /* 0: not measured */
    int additions;       /* to each float, chosen so that a kernel takes about as long as a copy */
    struct contender alone[LAUNCH_PARTS];
    struct contender overlapped[BACKEND_STREAMS]; /* on i + 1 streams */
};

struct launch_run {
    const struct launch_options *options;
    bool gpu;
    int threads; /* of a CPU */
    struct launch_point point[LAUNCH_POINTS];
    int points;
    struct launch_pipeline pipeline; /* of a GPU */
    /* Two curves over the same work, shortest first: `alone` is the time of a kernel in a replayed
     * graph, or of an operator on one thread, and `started` the time when it is launched on a
     * stream, or gets a team of threads of its own. Milliseconds of one. */
    double alone[LAUNCH_POINTS], started[LAUNCH_POINTS];
    int works;
    int from; /* the first work from which on starting costs nothing (launch_from); -1: none */
};

/* The kernel of a GPU, and that of a CPU; each list ends with one without a name. */
extern const struct lab_rung launch_gpu_kernels[], launch_cpu_kernels[];

/* ST_NUMERIC: a result is wrong. ST_INTERRUPTED: Ctrl-C ended it before every row had a sample. `a`
 * keeps samples. */
enum status launch_measure(const struct launch_options *o, struct launch_run *ret, struct arena *a);

/* --- parts of it, pure ------------------------------------------------------------------------ */

/* The first i for which started[k] <= most * alone[k] for every k >= i; -1: not even the last. */
int launch_from(const double *alone, const double *started, int n, double most);
/* Of the time that overlapping could hide (all parts but the longest), the share that it hid: 1 if
 * `overlapped` is the longest part alone, 0 if it is their sum or more. NAN: nothing to hide. */
double launch_hidden(const double *part, int parts, double overlapped);

#endif

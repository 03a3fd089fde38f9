/* launch.h - measures the cost of starting work, and ways to start work less often.
 *
 * On a GPU, many small kernels, each y = y + 1, are launched in different ways: from one at a time,
 * with a wait after each launch, to one kernel that does the work of all. In addition, chunks of
 * page-locked memory are copied to the GPU, processed and copied back, on one stream and on several
 * streams (pipeline.c). On a CPU, an empty parallel region is timed, and many small operators: with
 * a team of threads for each operator, with one team for all operators, and fused.
 *
 * Every way is checked before it is timed: each element must equal the number of additions, which
 * is exact in float up to 2^24. */
#ifndef LAB_LAUNCH_LAUNCH_H
#define LAB_LAUNCH_LAUNCH_H

#include "lab/lab.h"
#include "measure/rounds.h"

enum { LAUNCH_POINTS = 32, LAUNCH_MOST = 1000, LAUNCH_CHUNKS = 16 };

struct launch_options {
    struct device device;
    int launches;  /* in a sample, 1 ... LAUNCH_MOST */
    int64_t bytes; /* bytes of all chunks together that are copied */
    int samples;   /* at most, of each row */
    double limit_ms;
    void (*each)(void *user, double share, const char *what);
    void *user;
};

/* A way to start the work. */
struct launch_way {
    const char *name; /* "one stream" */
    bool base;        /* the other ways are compared with this one */
};

/* One way for one amount of work. Times are milliseconds of all launches or operators together. */
struct launch_point {
    const struct launch_way *way;
    int64_t floats; /* number of floats that a kernel or operator works on */
    int additions;  /* number of additions of a kernel to each float */
    /* By the host's clock, from the first call until all work is done. On a GPU, part 0 is the time
     * of the launching calls and part 1 the rest, in which the host waits. */
    struct contender time;
    /* GPU only: between events before the first launch and after the last; includes idle time. */
    struct stats device;
};

/* Chunks that are copied to the GPU, processed and copied back. Times are for all chunks. */
enum launch_part { LAUNCH_IN, LAUNCH_KERNELS, LAUNCH_OUT, LAUNCH_PARTS };
struct launch_pipeline {
    int64_t chunk_bytes; /* 0: not measured */
    int additions;       /* per float, chosen so that a kernel takes about as long as a copy */
    struct contender alone[LAUNCH_PARTS];
    struct contender overlapped[BACKEND_STREAMS]; /* on i + 1 streams */
};

struct launch_run {
    const struct launch_options *options;
    bool gpu;
    int threads; /* CPU only */
    struct launch_point point[LAUNCH_POINTS];
    int points;
    struct launch_pipeline pipeline; /* GPU only */
    /* Milliseconds of one kernel or operator, for the same amounts of work in ascending order.
     * `alone`: in a replayed graph, or on one thread. `started`: launched on a stream, or with its
     * own team of threads. */
    double alone[LAUNCH_POINTS], started[LAUNCH_POINTS];
    int works;
    int from; /* from this amount of work on, starting costs nothing (launch_from); -1: none */
};

/* The kernel for a GPU and the kernel for a CPU; each list ends with a rung without a name. */
extern const struct lab_rung launch_gpu_kernels[], launch_cpu_kernels[];

/* Runs all measurements. ST_NUMERIC: a result is wrong. ST_INTERRUPTED: Ctrl-C came before every
 * row had a sample. The samples live in `a`. */
enum status launch_measure(const struct launch_options *o, struct launch_run *ret, struct arena *a);

/* --- pure functions, for tests ---------------------------------------------------------------- */

/* The first i for which started[k] <= most * alone[k] for every k >= i; -1: there is none. */
int launch_from(const double *alone, const double *started, int n, double most);
/* Overlapping can hide the time of all parts except the longest. Returns the share of this time
 * that was hidden: 1 if `overlapped` is the time of the longest part, 0 if `overlapped` is at least
 * the sum of all parts. NAN: there is nothing to hide. */
double launch_hidden(const double *part, int parts, double overlapped);

#endif

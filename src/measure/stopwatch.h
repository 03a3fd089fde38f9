/* stopwatch.h - times repeated calls by the clock of the device that runs them.
 *
 * If the backend can capture graphs, all calls of a sample are captured as one graph. The time is
 * then device time, without the host time for launching many small kernels. */
#ifndef MEASURE_STOPWATCH_H
#define MEASURE_STOPWATCH_H

#include "backend/backend.h"

/* Launches call number i. The call must leave valid inputs for the next call. */
typedef enum status (*stopwatch_fn)(void *user, int i);

struct stopwatch {
    const struct backend *backend;
    void *context;
    stopwatch_fn start;
    void *user;
    bool warm;       /* a call has run, so kernels are compiled and loaded */
    void *recording; /* captured graph of `recorded` calls; NULL: none */
    int recorded;
};

/* Milliseconds per call, over `calls` calls. The very first call is not captured. */
enum status stopwatch_time(struct stopwatch *w, int calls, double *ret_ms);
void stopwatch_release(struct stopwatch *w);

#endif

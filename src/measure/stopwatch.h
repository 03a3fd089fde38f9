/* stopwatch.h - the time of something that runs again and again, by the clock of the device that runs it.
 *
 * Where the backend records, all calls of a sample are one recording: then the time is that of the device
 * alone, and not that of a host that starts one small kernel after the other. */
#ifndef MEASURE_STOPWATCH_H
#define MEASURE_STOPWATCH_H

#include "backend/backend.h"

/* Starts call number i. It must leave what the next one needs. */
typedef enum status (*stopwatch_fn)(void *user, int i);

struct stopwatch {
    const struct backend *backend;
    void *context;
    stopwatch_fn start;
    void *user;
    bool warm;       /* it ran once, so all that is compiled or loaded late is there */
    void *recording; /* of so many calls; NULL: none */
    int recorded;
};

/* Milliseconds of one of `calls` calls. The very first is measured as it comes. */
enum status stopwatch_time(struct stopwatch *w, int calls, double *ret_ms);
void stopwatch_release(struct stopwatch *w);

#endif

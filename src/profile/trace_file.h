/* trace_file.h - writes profiled steps in Chrome's trace format, for Perfetto and similar viewers:
 * activities of host, device and other ranks, parts of the model, memory in use, achieved bandwidth
 * and FLOP/s. docs/PROFILE.md describes the rows. */
#ifndef PROFILE_TRACE_FILE_H
#define PROFILE_TRACE_FILE_H

#include "profile/profile.h"

/* Processes and rows. Overlapping kernels get separate rows, and so do overlapping copies. */
enum { TRACE_HOST = 1, TRACE_DEVICE = 2 }; /* rank r: the process TRACE_DEVICE + r */
enum {
    TRACE_DEEDS = 1,
    TRACE_THREADS = 16, /* the threads of the host follow, if it is the device */
    TRACE_RANGES = 1,
    TRACE_KERNELS = 2,
    TRACE_LANES = 4,
    TRACE_COPIES = TRACE_KERNELS + TRACE_LANES,
    TRACE_COMMUNICATION = TRACE_COPIES + TRACE_LANES
};

struct trace_options {
    int steps;     /* around the step nearest to the median; at least 1 */
    int64_t limit; /* uncompressed bytes: events beyond it are left out and reported */
};

struct trace_said {
    int first, steps; /* the profiled steps in the trace */
    int missing;      /* requested steps that exceed the limit */
    int64_t events;
    int64_t cut; /* events left out of a step */
    int64_t bytes;
};

/* The trace as one JSON object. `version` is the program's version. */
void trace_text(const struct profile *p, const struct trace_options *o, const char *version,
                struct str *ret, struct trace_said *said);
/* Writes trace.json.gz (trace.json if built without zlib) to a folder. Creates the folder and
 * removes an older trace of the other name. ret_words: a sentence with the path and the contents,
 * in `a`. */
enum status trace_write(const struct profile *p, const struct trace_options *o, const char *version,
                        const char *folder, const char **ret_words, struct arena *a);

#endif

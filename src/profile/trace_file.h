/* trace_file.h - some watched steps in Chrome's trace format, for Perfetto and its like: what the host did, what the device did, the
 * parts of the model that it was for, memory in use and what was achieved. docs/PROFILE.md says what stands where. */
#ifndef PROFILE_TRACE_FILE_H
#define PROFILE_TRACE_FILE_H

#include "profile/profile.h"

/* Processes and rows. Kernels that run beside others have rows of their own, and so have copies and fills that do. */
enum { TRACE_HOST = 1, TRACE_DEVICE = 2 };
enum {
    TRACE_DEEDS = 1,
    TRACE_RANGES = 1,
    TRACE_KERNELS = 2,
    TRACE_LANES = 4,
    TRACE_COPIES = TRACE_KERNELS + TRACE_LANES
};

struct trace_options {
    int steps; /* around the one nearest to the median; at least 1 */
    int64_t
        limit; /* bytes, before it is compressed: what goes beyond is left out, and that is said */
};

struct trace_said {
    int first, steps; /* the watched steps that are in it */
    int missing;      /* steps that were asked for, and left out for the limit */
    int64_t events;
    int64_t cut; /* events of a step that alone is too much */
    int64_t bytes;
};

/* As one object of JSON. `version` is that of the program. */
void trace_text(const struct profile *p, const struct trace_options *o, const char *version,
                struct str *ret, struct trace_said *said);
/* Into a folder, as trace.json.gz, or, built without zlib, as trace.json. Makes the folder; leaves no older one of the other name.
 * ret_words: where it is, and what is in it, in a sentence; in `a`. */
enum status trace_write(const struct profile *p, const struct trace_options *o, const char *version,
                        const char *folder, const char **ret_words, struct arena *a);

#endif

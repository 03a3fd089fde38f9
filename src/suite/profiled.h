/* profiled.h - a step of one configuration, profiled; private to suite/. */
#ifndef SUITE_PROFILED_H
#define SUITE_PROFILED_H

#include "profile/profile.h"
#include "suite/parts.h"

struct profiled {
    struct engine engine; /* points into this struct: it must not move */
    struct config config;
    struct profile profile;
    const char *reason; /* why there is no profile; NULL: there is one */
    struct arena arena;
};

/* Opens an engine and profiles it, with `calls` also the calls of the device's API that open it.
 * The engine stays open, because the profile reads it. If it does not fit in memory or is stopped
 * early, `reason` is set. */
enum status profiled_run(struct profiled *p, const struct suite_request *r, const struct config *c,
                         int64_t vocab, int steps, double limit_ms, bool calls);
void profiled_close(struct profiled *p);

#endif

/* profiled.h - a step of one configuration, profiled; private to suite/. */
#ifndef SUITE_PROFILED_H
#define SUITE_PROFILED_H

#include "profile/profile.h"
#include "suite/parts.h"

struct profiled {
    struct engine engine; /* points into this struct: it must not move */
    struct config config;
    struct profile profile;
    const char *reason; /* why there is none; NULL: there is one */
    struct arena arena;
};

/* Opens, watches and keeps the engine, which the profile reads; what does not fit, or was stopped before there is a profile, is a
 * reason. */
enum status profiled_run(struct profiled *p, const struct suite_request *r, const struct config *c,
                         int64_t vocab, int steps, double limit_ms);
void profiled_close(struct profiled *p);

#endif

/* memory_run.h - two steps for the memory that they really take, beside what the plans foretold. */
#ifndef MEASURE_MEMORY_RUN_H
#define MEASURE_MEMORY_RUN_H

#include "engine/memory.h"

struct memory_run {
    int64_t planned; /* bytes of the plans' memory */
    int64_t
        measured; /* by which the process, or what the driver says is taken, grew; -1: unknown */
    bool host;    /* the first of the two */
};

/* On random tokens, on the device of the configuration. Too little memory is ST_UNSUPPORTED before any is asked for. */
enum status memory_run(const struct config *c, int64_t vocab, enum memory_extent extent,
                       struct memory_run *ret);

#endif

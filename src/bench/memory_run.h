/* memory_run.h - measures the memory that two steps use, to compare it with the plans. */
#ifndef BENCH_MEMORY_RUN_H
#define BENCH_MEMORY_RUN_H

#include "engine/memory.h"

struct memory_run {
    int64_t planned;  /* bytes of the plans' memory */
    int64_t measured; /* growth of the process, or of the device's used memory; -1: unknown */
    bool host;        /* `measured` is the growth of the process */
};

/* Runs the steps on random tokens. Fails with ST_UNSUPPORTED, before allocating, if memory does not
 * suffice. */
enum status memory_run(const struct config *c, int64_t vocab, enum memory_extent extent,
                       struct memory_run *ret);

#endif

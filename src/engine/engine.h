/* engine.h - a program with an open device and memory: what runs.
 *
 * An engine compiles a configuration (program.h), tunes what the tuning table lacks (tune.h), opens the device and
 * allocates. The plans of its program share weights, gradients, moments and one arena; sequence.h runs them. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "backend/backend.h"
#include "engine/program.h"

struct engine {
    struct program program;
    const struct backend *backend;
    void *context; /* of the open device */
    struct storage_blocks storage;
    int64_t taken_before; /* bytes of the process or the device before storage was allocated */
};

/* Compiles the plans of `kinds` (a mask, 1 << kind) for the device of the configuration, measures what its tuning table
 * lacks, reports what does not fit, and allocates. `backend`: the name of one. Weights are zero until they are generated
 * or loaded; whoever writes them calls engine_refresh. The configuration must outlive the engine. */
enum status engine_open(struct engine *e, const struct config *c, int64_t vocab, unsigned kinds,
                        const char *backend, struct arena *a);
void engine_close(struct engine *e);
/* Brings what is derived from the weights up to date with them. */
enum status engine_refresh(struct engine *e);
/* The growth of the process, or of the device's used memory, since storage was allocated; -1: unknown.
 * Includes what program_bytes predicts and what libraries allocate; complete after one step. */
int64_t engine_measured_bytes(const struct engine *e);

#endif

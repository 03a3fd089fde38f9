/* engine.h - a program with an open device and allocated memory, ready to run.
 *
 * An engine compiles a configuration (program.h), opens the device, measures missing tuning entries
 * (tune.h) and allocates memory, which all its plans share. sequence.h runs the plans. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "backend/backend.h"
#include "engine/program.h"

struct engine {
    struct program program;
    const struct backend *backend;
    void *context;                     /* the open device */
    struct communicator *communicator; /* of this rank; NULL: there is one rank */
    struct storage_blocks storage;
    int64_t used_before; /* bytes of the process or the device before storage was allocated */
};

/* Compiles the plans of `kinds` (a mask, 1 << kind) for the configuration's device, whose backend
 * is `backend`, measures missing tuning entries, and allocates. Weights are zero; the caller
 * generates or loads them, then calls engine_refresh. `c` must outlive the engine. */
enum status engine_open(struct engine *e, const struct config *c, int64_t vocab, unsigned kinds,
                        const char *backend, struct arena *a);
/* Like engine_open, for one of several ranks. With a communicator, it measures no tuning entries
 * and does not check the free memory. The communicator must outlive the engine; NULL: one rank. */
enum status engine_open_rank(struct engine *e, const struct config *c, int64_t vocab,
                             unsigned kinds, const char *backend, struct communicator *communicator,
                             struct arena *a);
void engine_close(struct engine *e);
/* Rebuilds the copies of the weights (copies.h). */
enum status engine_refresh(struct engine *e);
/* Growth of the process, or of the device's used memory, since just before the storage was
 * allocated, so it includes program_bytes and what libraries allocate. Complete after one step; -1:
 * unknown. */
int64_t engine_measured_bytes(const struct engine *e);

#endif

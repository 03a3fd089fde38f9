/* engine.h - a program (program.h) on a device: its context, its memory, and how its plans are run. The plans share weights,
 * gradients, moments and one arena. */
#ifndef TRAIN_ENGINE_H
#define TRAIN_ENGINE_H

#include "backend/backend.h"
#include "train/program.h"

struct engine {
    struct program program;
    const struct backend *backend;
    void *context;
    struct storage_blocks storage;
    void *recording[GRAPH_COUNT]; /* of a plan's run, with replay=true; NULL: not yet made */
    int64_t runs[GRAPH_COUNT];
    int64_t taken_before; /* bytes of the process or the device before storage was allocated */
};

/* Compiles the plans of `kinds` for the device of the configuration, measures what its tuning table lacks (tune.h), says what does
 * not fit, and allocates. `backend`: the name of one. Weights are zero until they are generated or loaded; whoever writes them
 * calls engine_refresh. The configuration must outlive the engine. */
enum status engine_open(struct engine *e, const struct config *c, int64_t vocab, unsigned kinds,
                        const char *backend, struct arena *a);
void engine_close(struct engine *e);
/* Runs a plan. With replay=true and nobody watching the first run compiles what is missing, the second is recorded, and
 * from then on the recording is played. The device may still be at work when this returns. */
enum status engine_run(struct engine *e, enum graph_kind kind, const struct plan_hooks *hooks);
/* Whether a run with these hooks, which may be NULL, is recorded and played: one that is watched or poisoned is not. Hooks that
 * only mark (plan_hooks.recorded) see the run that is recorded, and none that is played. */
bool engine_replays(const struct engine *e, const struct plan_hooks *hooks);
/* Brings what is derived from the weights up to date with them. */
enum status engine_refresh(struct engine *e);

/* Host side of one plan's run: copies into an input (skips one that the plan does not have), copies an
 * output out. Inputs give their bytes away once they are read, so all are fed before every run. */
enum status engine_feed(struct engine *e, enum graph_kind kind, const char *input, const void *data,
                        int64_t bytes);
enum status engine_read(struct engine *e, enum graph_kind kind, const char *output, void *ret_data,
                        int64_t bytes);
/* Bytes by which the process, or what is taken of the device, has grown since storage was allocated, -1 if unknown: what program_bytes
 * foretold, and what libraries and the run took besides. All of it counts once a step has touched it. */
int64_t engine_measured_bytes(const struct engine *e);
#endif

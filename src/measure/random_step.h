/* random_step.h - training steps on random tokens, to be timed and not to learn from.
 *
 * A model that works on floats gets random normals, generated once (STORAGE_DRAWN). The weights are trained on
 * random tokens and must not be used afterwards. */
#ifndef MEASURE_RANDOM_STEP_H
#define MEASURE_RANDOM_STEP_H

#include "engine/memory.h"
#include "engine/sequence.h"

/* What the host does for a step, one after the other; with lookahead it waits for an earlier step than it starts. */
enum random_step_part {
    RANDOM_STEP_FEEDS,
    RANDOM_STEP_STARTS,
    RANDOM_STEP_WAITS,
    RANDOM_STEP_PARTS
};

struct random_step {
    struct engine *engine;
    /* Called when the host begins and ends such a part of step `iteration`; may be NULL. */
    void (*tell)(void *user, enum random_step_part part, int iteration, bool begins);
    void *user;
    /* random_step_run starts the next step before it waits for this one, as training does where it can. Only for
     * callers that run nothing else in between. */
    bool lookahead;
    double loss;                     /* of the last step that was waited for */
    struct random_step_input *input; /* of a micro-step: ids, positions */
    int inputs;
    struct sequence step; /* all zeros where the engine does not have the plans of training */
    int64_t done_ns;      /* when the last step was done */
    int64_t starts;       /* steps that were started */
    int64_t starting_ns;  /* host time of all these starts together */
};

/* The memory that a step takes, or a part of one. */
enum status random_step_bytes(const struct config *c, int64_t vocab, enum memory_extent extent,
                              int64_t *ret_bytes);
/* More than `room` bytes (-1: unknown, no limit) are ST_UNSUPPORTED; the message gives both figures. */
enum status random_step_check_room(int64_t bytes, int64_t room);
/* Compares that with the memory that is free, before any is allocated. */
enum status random_step_check(const struct config *c, int64_t vocab, enum memory_extent extent);
/* Checks, and opens an engine with the plans of training, on the device of the configuration. */
enum status random_step_open(struct engine *e, const struct config *c, int64_t vocab,
                             struct arena *a);

/* Draws the engine's weights and what else is generated once. `a` holds the tokens. */
enum status random_step_init(struct random_step *n, struct engine *e, struct arena *a);
/* Waits for what was started; before the engine is closed. */
void random_step_close(struct random_step *n);
/* Feeds the inputs of a part of a sequence; the tokens depend on `number` alone. Plans share the memory of
 * their inputs, so a sequence of one part is fed right before it runs. */
enum status random_step_feed(struct random_step *n, struct sequence *s, int part, int number);
/* One whole step, waited for: all micro-steps and the update. Steps are numbered 0, 1 ...; `hooks` may be NULL. ret_ms
 * may be NULL: the time from the start of the step to its end, without the generation of tokens; with lookahead, from the
 * end of the step before. */
enum status random_step_run(struct random_step *n, int iteration, const struct plan_hooks *hooks,
                            double *ret_ms);
/* Waits for a step that lookahead started, if there is one. */
enum status random_step_finish(struct random_step *n);

#endif

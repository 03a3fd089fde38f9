/* random_step.h - training steps on random tokens, for timing only.
 *
 * A model that works on floats gets random normals, generated once (STORAGE_RANDOM). The weights
 * are trained on random tokens and must not be used afterwards. */
#ifndef MEASURE_RANDOM_STEP_H
#define MEASURE_RANDOM_STEP_H

#include "engine/memory.h"
#include "engine/sequence.h"

/* The parts of the host's work for a step, in this order. With lookahead the host waits for an
 * earlier step than the one that it started. */
enum random_step_part {
    RANDOM_STEP_FEEDS,
    RANDOM_STEP_STARTS,
    RANDOM_STEP_WAITS,
    RANDOM_STEP_PARTS
};

/* What rank 0 orders the other ranks to do (engine/crew.h). Either all ranks replay a captured step
 * or none does, since NCCL may handle a captured collective in another way. */
enum { STEP_ORDER_START, STEP_ORDER_REPLAY, STEP_ORDER_WAIT };
struct crew_order;

struct random_step {
    struct engine *engine;
    /* Called before and after each part of the host's work for step `iteration`; may be NULL. */
    void (*tell)(void *user, enum random_step_part part, int iteration, bool begins);
    void *user;
    /* random_step_run launches the next step before it waits for the current one, as training does
     * if the device supports this. Only for callers that run nothing else between steps. */
    bool lookahead;
    int64_t mark; /* passed to the other ranks with each next step (random_crew.h); 0: no mark */
    double loss;  /* loss of the last finished step */
    struct random_step_input *input; /* the inputs of a micro-step: ids, positions */
    int inputs;
    struct sequence step; /* all zeros if the engine does not have the plans of training */
    int64_t done_ns;      /* clock at the end of the last step */
    int64_t starts;       /* number of launched steps */
    int64_t starting_ns;  /* total host time of these launches */
};

/* Bytes of memory that a step, or the part of a step that `extent` names, needs, summed over the
 * ranks on this machine. */
enum status random_step_bytes(const struct config *c, int64_t vocab, enum memory_extent extent,
                              int64_t *ret_bytes);
/* Fails with ST_UNSUPPORTED if `bytes` exceed `memory_limit` (-1: unknown, no limit); the message
 * has both numbers and fit_words (engine/fit.h). */
enum status random_step_check_memory(const struct config *c, int64_t vocab,
                                     enum memory_extent extent, int64_t bytes,
                                     int64_t memory_limit);
/* Fails if a step does not fit in the free memory, with the message of training (fit_check).
 * Allocates no device memory. */
enum status random_step_check(const struct config *c, int64_t vocab, enum memory_extent extent);
/* Opens an engine with the plans of training on the device of the configuration; checks memory.
 * `communicator` is this rank's, or NULL if there is only one rank. */
enum status random_step_open(struct engine *e, const struct config *c, int64_t vocab,
                             struct communicator *communicator, struct arena *a);

/* Initializes the engine's weights and STORAGE_RANDOM. Allocates the tokens in `a`. */
enum status random_step_init(struct random_step *n, struct engine *e, struct arena *a);
/* Waits for steps in flight. Must be called before the engine is closed. */
void random_step_close(struct random_step *n);
/* Feeds the inputs of a part of a sequence; the tokens depend only on `number`. Plans share the
 * memory of their inputs, so feed a sequence of one part right before it runs. */
enum status random_step_feed(struct random_step *n, struct sequence *s, int part, int number);
/* Runs one whole step, all micro-steps and the update, and waits for it. Steps are numbered 0, 1
 * ...; `hooks` may be NULL. *ret_ms is the time from the launch of the step to its end, without
 * generating tokens; with lookahead, the time since the end of the previous step. ret_ms may be
 * NULL. If there are several ranks, rank 0 starts the step on all ranks (random_crew.h). The ranks
 * begin together; each rank has its own tokens and its own time; `loss` is the mean over the
 * ranks. */
enum status random_step_run(struct random_step *n, int iteration, const struct plan_hooks *hooks,
                            double *ret_ms);
/* Waits for a step that lookahead launched, if there is one, on all ranks. */
enum status random_step_finish(struct random_step *n);
/* On the other ranks: starts a step, or waits for one, as rank 0 orders. */
enum status random_step_obey(struct random_step *n, const struct crew_order *o,
                             const struct plan_hooks *hooks);

#endif

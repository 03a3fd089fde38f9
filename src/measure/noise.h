/* noise.h - training steps on random tokens, for whoever wants to time one and not to learn. A model that works on floats
 * gets normals, drawn once (STORAGE_DRAWN).
 *
 * The weights are trained on noise and must not be used afterwards. */
#ifndef MEASURE_NOISE_H
#define MEASURE_NOISE_H

#include "engine/sequence.h"

/* What the host does for a step, one after the other; of steps that are started ahead it waits for an earlier one. */
enum noise_part { NOISE_DRAWS, NOISE_STARTS, NOISE_WAITS, NOISE_PARTS };

struct noise {
    struct engine *engine;
    /* Told when the host begins and ends such a part of step `iteration`; may be NULL. */
    void (*tell)(void *user, enum noise_part part, int iteration, bool begins);
    void *user;
    bool
        ahead; /* noise_step starts the next step before it waits for this one, as training does where it can; for
                         * whoever runs nothing else in between */
    double loss;               /* of the last step that was waited for */
    struct noise_input *input; /* of a micro-step: ids, positions */
    int inputs;
    struct sequence step; /* all zeros where the engine has not the plans of training */
    int64_t done_ns;      /* when the last step was done */
    int64_t starts;       /* steps that were started */
    int64_t starting_ns;  /* that the host took to start them, all together */
};

/* The bytes that training takes. */
enum status noise_bytes(const struct config *c, int64_t vocab, int64_t *ret_bytes);
/* More than `room` bytes (-1: unknown, no limit) are ST_UNSUPPORTED, which says how many. */
enum status noise_check_room(int64_t bytes, int64_t room);
/* The same of what training takes and of the memory that is free, before any is asked for. */
enum status noise_check(const struct config *c, int64_t vocab);
/* Checks, and opens an engine with the plans of training, on the device of the configuration. */
enum status noise_open(struct engine *e, const struct config *c, int64_t vocab, struct arena *a);

/* The engine holds the plans of training. Draws its weights and what else is drawn once. `a` holds the tokens. */
enum status noise_init(struct noise *n, struct engine *e, struct arena *a);
/* Waits for what was started; before the engine is closed. */
void noise_close(struct noise *n);
/* Feeds the inputs of a part of a sequence; what is drawn depends on `number` alone. Plans share the memory of
 * their inputs, so a sequence of one part is fed right before it runs. */
enum status noise_feed(struct noise *n, struct sequence *s, int part, int number);
/* One whole step: all micro-steps and the update, then the host waits. `hooks` may be NULL; ret_ms may be NULL: the time
 * from the start to the end, without the drawing of tokens; of a step that was started before the last one ended, from that
 * end to its own. Steps are numbered 0, 1 ... */
enum status noise_step(struct noise *n, int iteration, const struct plan_hooks *hooks,
                       double *ret_ms);
/* Waits for a step that was started ahead, if there is one: what is run next is not ahead of anything. */
enum status noise_land(struct noise *n);

#endif

/* stepper.h - a training step as one piece of work: its micro-steps and its update, what they are fed and what they tell.
 *
 * The inputs of all its runs go to the device in one copy, while the step before still runs; there each run takes its
 * own. Results are read when the step is done, so the host can start the next step before it asks for them. With
 * replay=true the first step runs kernel by kernel and compiles them, the second is recorded, update included, and
 * from then on the recording is played. */
#ifndef TRAIN_STEPPER_H
#define TRAIN_STEPPER_H

#include "train/engine.h"

enum { STEPPER_AHEAD = 2 }; /* steps that may have been started and not waited for */

struct stepper {
    struct engine *engine;
    int64_t micro_steps;
    /* private to stepper.c */
    struct stepper_input *input; /* of all runs, in their order */
    int inputs;
    int64_t image_bytes; /* of all inputs, aligned */
    char *image;         /* where they are on the host */
    float *reading[STEPPER_AHEAD];
    void *recording; /* NULL: not yet made */
    int64_t begun, done;
};

struct step_result {
    double loss;      /* before the update, the mean of the micro-steps */
    double grad_norm; /* before clipping */
};

/* STORAGE_STAGED: what a step of this program needs besides its plans. */
int64_t stepper_bytes(const struct program *p);
/* The engine has the plans of training, and memory. `a` holds the images. */
void stepper_init(struct stepper *s, struct engine *e, struct arena *a);
/* Waits for what was started. */
void stepper_close(struct stepper *s);

/* Inputs of run 0 ... micro_steps - 1, and of the update, run micro_steps; one that the plan does not have is skipped. What
 * is not fed anew is as in the step before. */
void stepper_feed(struct stepper *s, int64_t run, const char *input, const void *data,
                  int64_t bytes);
/* Starts a step on what was fed. `hooks` may be NULL. */
enum status stepper_start(struct stepper *s, const struct plan_hooks *hooks);
/* Waits for the oldest step that was started. */
enum status stepper_wait(struct stepper *s, struct step_result *ret);
/* Steps that were started and not waited for. */
int64_t stepper_flying(const struct stepper *s);
/* How many of them there may be while the next is started: a host that computes itself has nothing to overlap. */
int64_t stepper_lead(const struct stepper *s);

#endif

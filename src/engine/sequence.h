/* sequence.h - parts of plans that run one after the other as one piece of work: run, captured once, replayed.
 *
 * A training step is the sequence micro, micro_more ..., update; evaluation is the plan eval, a token of a
 * text the plan decode, a line of `bench` some of a plan's steps. With replay=true the first run launches
 * kernel by kernel and compiles them, the second is captured, and from then on the capture is replayed.
 *
 * A sequence of one part is fed straight into its plan. The inputs of several parts are staged: they go to the
 * device in one copy, while the run before is still at work, and there each part takes its own. Their results
 * are read when the run is over, so the host can start the next run before it waits for this one (lookahead). */
#ifndef ENGINE_SEQUENCE_H
#define ENGINE_SEQUENCE_H

#include "engine/engine.h"

enum { SEQUENCE_IN_FLIGHT = 2 }; /* runs that may have been started and not waited for */

struct sequence_part {
    enum graph_kind kind;
    int from, to;       /* steps from ... to - 1 of its plan */
    const char *result; /* an output of one float that sequence_wait returns; NULL: none */
};

struct sequence {
    struct engine *engine;
    struct sequence_part *part;
    int parts;
    /* private to sequence.c */
    struct sequence_input *input; /* of all parts, in their order, where they are staged */
    int inputs;
    int64_t image_bytes; /* of all inputs, aligned */
    char *image;         /* where they are on the host */
    float *result[SEQUENCE_IN_FLIGHT];
    void *capture; /* NULL: not yet made */
    int64_t started, finished;
};

struct step_result {
    double loss;      /* before the update, the mean of the micro-steps */
    double grad_norm; /* before clipping */
};

/* STORAGE_STAGED: what a training step of this program needs besides its plans. */
int64_t sequence_step_bytes(const struct program *p);

/* The engine has memory, and the plans of these parts; only a training step may have several. `a` holds the
 * images. */
void sequence_init(struct sequence *s, struct engine *e, const struct sequence_part *part,
                   int parts, struct arena *a);
/* A training step: part 0 ... parts - 2 are its micro-steps, the last one is the update. */
void sequence_init_step(struct sequence *s, struct engine *e, struct arena *a);
/* One whole plan. */
void sequence_init_plan(struct sequence *s, struct engine *e, enum graph_kind kind,
                        const char *result, struct arena *a);
/* Waits for what was started; before the engine is closed. One that was never initialised may be all zeros. */
void sequence_close(struct sequence *s);

/* Copies an input of a part; one that its plan does not have is skipped. Staged inputs that are not fed again are as in
 * the run before; a plan's own give their bytes away once they are read, so all are fed before every run. */
enum status sequence_feed(struct sequence *s, int part, const char *input, const void *data,
                          int64_t bytes);
/* Starts a run on what was fed. The device may still be at work when this returns. `hooks` may be NULL. */
enum status sequence_start(struct sequence *s, const struct plan_hooks *hooks);
/* Waits for the oldest run in flight; the results of its parts are valid until two more were started. */
enum status sequence_wait(struct sequence *s, const float **ret_result);
/* The same of a training step. */
enum status sequence_wait_step(struct sequence *s, struct step_result *ret);

/* Runs that were started and must still be waited for; of a sequence of one part none must be. */
int64_t sequence_in_flight(const struct sequence *s);
/* How many there may be while the next is started: a host that computes itself has nothing to overlap. */
int64_t sequence_lookahead(const struct sequence *s);
/* Whether a run with these hooks, which may be NULL, is captured and replayed: one that is watched or poisoned is not. Hooks
 * that only mark (plan_hooks.recorded) see the run that is captured, and none that is replayed. */
bool sequence_replays(const struct sequence *s, const struct plan_hooks *hooks);

#endif

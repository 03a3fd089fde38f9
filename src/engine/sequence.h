/* sequence.h - plans, or parts of plans, that run one after another; captured once, then replayed.
 *
 * A training step is the sequence of plans micro, micro_more ..., update. Evaluation runs the plan
 * eval; sampling a token runs decode; a line of `bench` runs a part of a plan. With replay=true the
 * first run launches its kernels, the second is captured, later runs replay the captured graph.
 *
 * If a sequence has one part, its inputs are copied directly into the plan. The inputs of several
 * parts, and of an evaluation, are staged: one copy transfers them to the device while the previous
 * run executes, and each part copies its inputs from there. The host can start the next run before
 * it waits for results (lookahead). Staged sequences of an engine share memory, so only one of them
 * may be in flight. */
#ifndef ENGINE_SEQUENCE_H
#define ENGINE_SEQUENCE_H

#include "engine/engine.h"

enum { SEQUENCE_IN_FLIGHT = 2 }; /* maximum number of runs started and not yet waited for */

struct sequence_part {
    enum graph_kind kind;
    int from, to;       /* steps from ... to - 1 of its plan */
    const char *result; /* an output of one float, returned by sequence_wait; NULL: none */
};

struct sequence {
    struct engine *engine;
    struct sequence_part *part;
    int parts;
    /* private to sequence.c */
    struct sequence_input *input; /* staged inputs of all parts, in order */
    int inputs;
    int64_t image_bytes; /* of all inputs, aligned */
    char *image;         /* the staging buffer on the host; NULL: inputs are not staged */
    float *result[SEQUENCE_IN_FLIGHT];
    void *capture; /* the captured graph; NULL: not yet captured */
    int64_t started, finished;
};

struct step_result {
    double loss;      /* before the update; mean of the micro-steps */
    double grad_norm; /* before clipping */
};

/* Bytes of STORAGE_STAGED that a training step of this program needs. */
int64_t sequence_step_bytes(const struct program *p);

/* The engine must be open and have the plans of these parts; only a training step may have several
 * parts. The staging buffer is allocated in `a`. */
void sequence_init(struct sequence *s, struct engine *e, const struct sequence_part *part,
                   int parts, struct arena *a);
/* A training step: parts 0 ... parts - 2 are the micro-steps, the last part is the update. */
void sequence_init_step(struct sequence *s, struct engine *e, struct arena *a);
/* Initializes a sequence of one whole plan. */
void sequence_init_plan(struct sequence *s, struct engine *e, enum graph_kind kind,
                        const char *result, struct arena *a);
/* The same, with staged inputs and lookahead if the engine's staging memory, which is that of a
 * training step, is large enough. `result` must not be NULL. */
void sequence_init_staged(struct sequence *s, struct engine *e, enum graph_kind kind,
                          const char *result, struct arena *a);
/* Waits for runs in flight. Call before the engine is closed. *s may be all zeros. */
void sequence_close(struct sequence *s);

/* Sets an input of a part; its plan must have an input of this name. Staged inputs keep their
 * values between runs; without staging, set all inputs before each run. */
enum status sequence_feed(struct sequence *s, int part, const char *input, const void *data,
                          int64_t bytes);
/* Starts a run; returns before the device is done. `hooks` may be NULL. */
enum status sequence_start(struct sequence *s, const struct plan_hooks *hooks);
/* Waits for the oldest run in flight. Its results stay valid until two more runs are started. */
enum status sequence_wait(struct sequence *s, const float **ret_result);
/* The same for a training step. */
enum status sequence_wait_step(struct sequence *s, struct step_result *ret);

/* Waits for the runs in flight and drops their results; keeps the current error message. */
void sequence_drop(struct sequence *s);
/* Runs started and not yet waited for; always 0 without staged inputs. */
int64_t sequence_in_flight(const struct sequence *s);
/* The maximum number of runs in flight when the next one starts; 0 without staged inputs, and on
 * the CPU, where nothing would overlap. */
int64_t sequence_lookahead(const struct sequence *s);
/* Whether a run with these hooks (or NULL) is captured and replayed. False if poison is set or the
 * hooks do more than record events (plan_hooks.recorded). Hooks do not run in replays. */
bool sequence_replays(const struct sequence *s, const struct plan_hooks *hooks);

#endif

/* tiny.h - a small GPT on random tokens: open an engine, run steps, compare results. */
#ifndef SUPPORT_TINY_H
#define SUPPORT_TINY_H

#include "train/learner.h"

enum { TINY_VOCAB = 37 };

struct tiny {
    struct arena arena;
    struct config config;
    struct engine engine; /* points into this struct: it must not move */
};

/* 2 layers, 2 heads, 32 columns, 16 positions, batch 3, no dropout, no bias, fp32, fused, flash. */
struct config tiny_config(void);
/* Opens the plans of `kinds` (a mask, 1 << kind) on the CPU and initializes the weights. A failure
 * fails the test with its message. */
void tiny_open(struct tiny *t, const struct config *c, unsigned kinds);
/* The same with another vocabulary and with zero weights. */
void tiny_open_bare(struct tiny *t, const struct config *c, int64_t vocab, unsigned kinds);
void tiny_close(struct tiny *t);
/* Whether this processor can train in that type with pack_weights=true. */
bool tiny_packs(enum precision dtype);
/* Skips the case if tiny_packs is false. */
void tiny_need_packing(enum precision dtype);

/* Feeds a batch that depends only on `step`: tokens follow a rule that can be learned. */
void tiny_feed(struct tiny *t, enum graph_kind kind, int32_t step);
/* Feeds and runs; returns the loss. Afterwards the gradients are in their range. */
float tiny_loss(struct tiny *t, enum graph_kind kind, int32_t step);
/* Feeds and runs the update number `iteration` = 1, 2 ...; returns the norm before clipping. */
float tiny_update(struct tiny *t, int64_t iteration, double lr);
/* A whole training step `step` = 0, 1 ... of GRAPH_MICRO and GRAPH_UPDATE; returns the loss. */
float tiny_step(struct tiny *t, int32_t step, double lr);

/* Iteration `iter` of a learner, from its start to its end. */
enum status tiny_learn(struct learner *l, int64_t iter, struct learner_step *ret_step);

/* One parameter in a range, and the whole range (engine.program.model.elements long). */
float *tiny_parameter(const struct tiny *t, enum storage storage, const struct parameter *p);
float *tiny_range(const struct tiny *t, enum storage storage);
/* A copy of a range that outlives the engine, in `a`. */
float *tiny_copy(const struct tiny *t, enum storage storage, struct arena *a);

#endif

/* small.h - a data set and a model that are small enough to train within a second. */
#ifndef SUPPORT_SMALL_H
#define SUPPORT_SMALL_H

#include "config/config.h"
#include "train/learner.h"

enum { SMALL_VOCABULARY = 8 };

/* Creates the data set "tiny" in a new temporary directory: a few thousand characters, made of a
 * few words in a fixed pseudo-random order. small_remove deletes everything. */
void small_make(void);
void small_remove(void);
/* Two layers of 16 channels, 16 tokens of context, batches of 4, out_dir "run" in the directory,
 * one thread, a high learning rate. */
struct config small_config(void);
/* Opens a learner or ends the test program with the message. */
void small_learner(struct learner *l, const struct config *c, unsigned more, struct arena *a);
/* The weights, for comparisons; valid as long as the learner. */
const float *small_weights(const struct learner *l);

#endif

/* batch.h - copies one batch from a loader into the inputs of a plan. */
#ifndef TRAIN_BATCH_H
#define TRAIN_BATCH_H

#include "data/loader.h"
#include "train/stepper.h"

struct batch {
    int64_t B, T;
    int32_t *tokens, *targets; /* (B,T) */
    int32_t *positions;        /* (T): 0 ... T-1 */
};

void batch_init(struct batch *b, int64_t B, int64_t T, struct arena *a);
/* Loads the next batch and uploads it to a plan, or to one run of the next step; `step` is the
 * dropout counter. */
enum status batch_feed(struct batch *b, struct loader *l, struct engine *e, enum graph_kind kind,
                       int64_t step);
void batch_feed_step(struct batch *b, struct loader *l, struct stepper *s, int64_t run,
                     int64_t step);

#endif

/* batch.h - one batch on its way from a loader into the inputs of a plan. */
#ifndef TRAIN_BATCH_H
#define TRAIN_BATCH_H

#include "data/loader.h"
#include "engine/stepper.h"

struct batch {
    int64_t B, T;
    int32_t *tokens, *targets; /* (B,T) */
    int32_t *positions;        /* (T): 0 ... T-1 */
};

void batch_init(struct batch *b, int64_t B, int64_t T, struct arena *a);
/* Draws the loader's next batch and feeds it to a plan, or to a run of the next step; `step` is the counter of dropout. */
enum status batch_feed(struct batch *b, struct loader *l, struct engine *e, enum graph_kind kind,
                       int64_t step);
void batch_feed_step(struct batch *b, struct loader *l, struct stepper *s, int64_t run,
                     int64_t step);

#endif

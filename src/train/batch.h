/* batch.h - copies one batch from a loader into the inputs of a plan. */
#ifndef TRAIN_BATCH_H
#define TRAIN_BATCH_H

#include "data/loader.h"
#include "engine/sequence.h"

struct batch {
    int64_t B, T;
    int32_t *tokens, *targets; /* (B,T) */
    int32_t *positions;        /* (T): 0 ... T-1 */
};

void batch_init(struct batch *b, int64_t B, int64_t T, struct arena *a);
/* Loads the next random batch into the inputs of a sequence's part; `step` selects dropout
 * masks. */
enum status batch_feed(struct batch *b, struct loader *l, struct sequence *s, int part,
                       int64_t step);

#endif

/* loader.h - batches in an order that depends on the seed alone.
 *
 * Batch number n of a stream is a pure function of (seed, stream, n): block_size+1 tokens from random
 * places, with replacement, as nanoGPT draws them. Evaluation has its own stream, so evaluating more
 * often changes nothing. A loader borrows the dataset. */
#ifndef DATA_LOADER_H
#define DATA_LOADER_H

#include "base/rng.h"
#include "data/dataset.h"

struct loader {
    const struct dataset *dataset;
    enum split split;
    enum rng_stream stream;
    uint32_t seed;
    int64_t B, T;
    int64_t next; /* number of the next batch: all the state there is */
};

/* Fails if the split has fewer than T+1 tokens (says how many it has). */
enum status loader_init(struct loader *l, const struct dataset *d, enum split split,
                        enum rng_stream stream, uint32_t seed, int64_t B, int64_t T);
/* Fills inputs and targets, (B,T) each, and goes on to the next batch. */
void loader_next(struct loader *l, int32_t *inputs, int32_t *targets);

#endif

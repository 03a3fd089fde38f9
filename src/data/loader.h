/* loader.h - batches in an order that depends only on the seed.
 *
 * Batch n of a stream is a pure function of (seed, stream, n). Each row is block_size+1 tokens from
 * a random position, sampled with replacement as in nanoGPT. Evaluation has its own stream, so
 * evaluating more often does not change training. A loader borrows the dataset. */
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
    int64_t next; /* index of the next batch; this is the whole state */
};

/* ST_USAGE if the split has fewer than T+1 tokens; the message states the count. */
enum status loader_init(struct loader *l, const struct dataset *d, enum split split,
                        enum rng_stream stream, uint32_t seed, int64_t B, int64_t T);
/* Fills inputs and targets, (B,T) each, and advances to the next batch. Fails with the errors of
 * dataset_read; then the loader stays at this batch. */
enum status loader_next(struct loader *l, int32_t *inputs, int32_t *targets);

#endif

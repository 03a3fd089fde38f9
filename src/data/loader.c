#include "data/loader.h"

#include <string.h>

enum status loader_init(struct loader *l, const struct dataset *d, enum split split,
                        enum rng_stream stream, uint32_t seed, int64_t B, int64_t T)
{
    BUG_IF(B < 1 || T < 1, "batches of %lld x %lld", (long long)B, (long long)T);
    if (d->count[split] < T + 1)
        return fail(ST_USAGE,
                    "the %s split of %s has %lld tokens, but block_size = %lld needs %lld: use a "
                    "smaller block_size or a longer text",
                    split == SPLIT_TRAIN ? "training" : "validation", d->name,
                    (long long)d->count[split], (long long)T, (long long)T + 1);
    *l = (struct loader){
        .dataset = d, .split = split, .stream = stream, .seed = seed, .B = B, .T = T};
    return ST_OK;
}

/* Reads tokens first ... first + T; targets are the inputs shifted by one token. */
static enum status read_row(const struct loader *l, int64_t first, int32_t *inputs,
                            int32_t *targets)
{
    int64_t T = l->T;
    TRY(dataset_read(l->dataset, l->split, first, T, inputs));
    memcpy(targets, inputs + 1, (size_t)(T - 1) * sizeof *targets);
    return dataset_read(l->dataset, l->split, first + T, 1, targets + T - 1);
}

/* Rows are numbered across batches, so two batches of B/2 rows equal one batch of B: splitting a
 * step into micro-batches does not change its data. */
enum status loader_next(struct loader *l, int32_t *inputs, int32_t *targets)
{
    int64_t positions = l->dataset->count[l->split] - l->T;
    for (int64_t b = 0; b < l->B; b++) {
        uint64_t row = (uint64_t)(l->next * l->B + b);
        int64_t first = rng_below(l->seed, l->stream, (uint32_t)l->split, row, positions);
        TRY(read_row(l, first, inputs + b * l->T, targets + b * l->T));
    }
    l->next++;
    return ST_OK;
}

#include "data/loader.h"

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

/* Rows are numbered across batches, so two batches of B/2 rows equal one batch of B: splitting a
 * step into micro-batches does not change its data. */
void loader_next(struct loader *l, int32_t *inputs, int32_t *targets)
{
    const uint16_t *tokens = l->dataset->tokens[l->split];
    int64_t positions = l->dataset->count[l->split] - l->T;
    for (int64_t b = 0; b < l->B; b++) {
        uint64_t row = (uint64_t)(l->next * l->B + b);
        const uint16_t *from =
            tokens + rng_below(l->seed, l->stream, (uint32_t)l->split, row, positions);
        for (int64_t t = 0; t < l->T; t++) {
            inputs[b * l->T + t] = from[t];
            targets[b * l->T + t] = from[t + 1];
        }
    }
    l->next++;
}

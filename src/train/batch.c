#include "train/batch.h"

void batch_init(struct batch *b, int64_t B, int64_t T, struct arena *a)
{
    *b = (struct batch){B, T, ARENA_NEW(a, int32_t, B * T), ARENA_NEW(a, int32_t, B * T),
                        ARENA_NEW(a, int32_t, T)};
    for (int64_t t = 0; t < T; t++) b->positions[t] = (int32_t)t;
}

enum status batch_feed(struct batch *b, struct loader *l, struct sequence *s, int part,
                       int64_t step)
{
    int64_t row = b->T * (int64_t)sizeof(int32_t);
    int32_t counter = (int32_t)step;
    TRY(loader_next(l, b->tokens, b->targets));
    TRY(sequence_feed(s, part, "tokens", b->tokens, b->B * row));
    TRY(sequence_feed(s, part, "targets", b->targets, b->B * row));
    TRY(sequence_feed(s, part, "positions", b->positions, row));
    return sequence_feed(s, part, "step", &counter, sizeof counter);
}

#include "train/batch.h"

void batch_init(struct batch *b, int64_t B, int64_t T, struct arena *a)
{
    *b = (struct batch){B, T, ARENA_NEW(a, int32_t, B * T), ARENA_NEW(a, int32_t, B * T),
                        ARENA_NEW(a, int32_t, T)};
    for (int64_t t = 0; t < T; t++) b->positions[t] = (int32_t)t;
}

/* All inputs each time: plans share the block that inputs live in. */
enum status batch_feed(struct batch *b, struct loader *l, struct engine *e, enum graph_kind kind,
                       int64_t step)
{
    int64_t row = b->T * (int64_t)sizeof(int32_t);
    int32_t counter = (int32_t)step;
    loader_next(l, b->tokens, b->targets);
    TRY(engine_feed(e, kind, "tokens", b->tokens, b->B * row));
    TRY(engine_feed(e, kind, "targets", b->targets, b->B * row));
    TRY(engine_feed(e, kind, "positions", b->positions, row));
    return engine_feed(e, kind, "step", &counter, sizeof counter);
}

#include "train/batch.h"

void batch_init(struct batch *b, int64_t B, int64_t T, struct arena *a)
{
    *b = (struct batch){B, T, ARENA_NEW(a, int32_t, B * T), ARENA_NEW(a, int32_t, B * T),
                        ARENA_NEW(a, int32_t, T)};
    for (int64_t t = 0; t < T; t++) b->positions[t] = (int32_t)t;
}

enum { INPUTS = 4 };
struct input {
    const char *name;
    const void *data;
    int64_t bytes;
};

static void load_next(struct batch *b, struct loader *l, const int32_t *counter,
                      struct input input[INPUTS])
{
    int64_t row = b->T * (int64_t)sizeof(int32_t);
    loader_next(l, b->tokens, b->targets);
    input[0] = (struct input){"tokens", b->tokens, b->B * row};
    input[1] = (struct input){"targets", b->targets, b->B * row};
    input[2] = (struct input){"positions", b->positions, row};
    input[3] = (struct input){"step", counter, sizeof *counter};
}

/* Uploads all inputs every time, because their bytes are reused once they have been read. */
enum status batch_feed(struct batch *b, struct loader *l, struct engine *e, enum graph_kind kind,
                       int64_t step)
{
    struct input input[INPUTS];
    int32_t counter = (int32_t)step;
    load_next(b, l, &counter, input);
    for (int i = 0; i < INPUTS; i++)
        TRY(engine_feed(e, kind, input[i].name, input[i].data, input[i].bytes));
    return ST_OK;
}

void batch_feed_step(struct batch *b, struct loader *l, struct stepper *s, int64_t run,
                     int64_t step)
{
    struct input input[INPUTS];
    int32_t counter = (int32_t)step;
    load_next(b, l, &counter, input);
    for (int i = 0; i < INPUTS; i++)
        stepper_feed(s, run, input[i].name, input[i].data, input[i].bytes);
}

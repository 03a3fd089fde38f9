#include "measure/bench_engine.h"

#include "backend/backend.h"
#include "base/clock.h"
#include "measure/noise.h"
#include "train/device.h"

#include <stdlib.h>

/* Steps from ... to - 1 of a plan, which run as one. */
struct piece {
    enum graph_kind kind;
    int from, to;
    int64_t runs;
    void *recording; /* with replay=true; NULL: not yet made */
};

struct bench_engine {
    unsigned lines;
    struct engine engine;
    struct noise noise;
    int iteration;
    struct piece inference, forward, backward, both, update;
    float loss;
    struct arena arena;
};

static bool has(unsigned lines, enum bench_line line)
{
    return lines >> line & 1;
}

unsigned bench_kinds(unsigned l)
{
    unsigned kinds = 0;
    if (has(l, BENCH_INFERENCE)) kinds |= 1u << GRAPH_EVAL;
    if (has(l, BENCH_FORWARD) || has(l, BENCH_BACKWARD) || has(l, BENCH_BOTH) || has(l, BENCH_STEP))
        kinds |= 1u << GRAPH_MICRO;
    if (has(l, BENCH_UPDATE) || has(l, BENCH_STEP)) kinds |= 1u << GRAPH_UPDATE;
    return kinds;
}

static struct piece piece_of(const struct engine *e, enum graph_kind kind, int from, int to)
{
    return (struct piece){
        .kind = kind, .from = from, .to = to < 0 ? e->program.plan[kind].steps : to};
}

static void cut_pieces(struct bench_engine *b)
{
    const struct engine *e = &b->engine;
    int turn = e->program.built[GRAPH_MICRO] ? plan_turn(&e->program.plan[GRAPH_MICRO]) : 0;
    b->inference = piece_of(e, GRAPH_EVAL, 0, -1);
    b->forward = piece_of(e, GRAPH_MICRO, 0, turn);
    b->backward = piece_of(e, GRAPH_MICRO, turn, -1);
    b->both = piece_of(e, GRAPH_MICRO, 0, -1);
    b->update = piece_of(e, GRAPH_UPDATE, 0, -1);
}

enum status bench_engine_open(struct bench_engine **ret, const struct config *c, int64_t vocab,
                              unsigned lines)
{
    struct bench_engine *b = calloc(1, sizeof *b);
    BUG_IF(!b, "no host memory");
    b->lines = lines;
    enum status st =
        engine_open(&b->engine, c, vocab, bench_kinds(lines), device_backend(c), &b->arena);
    if (st != ST_OK) {
        arena_release(&b->arena);
        free(b);
        return st;
    }
    cut_pieces(b);
    st = noise_init(&b->noise, &b->engine, &b->arena);
    if (st != ST_OK) {
        bench_engine_close(b);
        return st;
    }
    *ret = b;
    return ST_OK;
}

void bench_engine_close(struct bench_engine *b)
{
    struct piece *piece[] = {&b->inference, &b->forward, &b->backward, &b->both, &b->update};
    noise_close(&b->noise);
    for (int i = 0; i < COUNT_OF(piece); i++)
        if (piece[i]->recording)
            b->engine.backend->recording_free(b->engine.context, piece[i]->recording);
    engine_close(&b->engine);
    arena_release(&b->arena);
    free(b);
}

static enum status record(struct engine *e, struct piece *p)
{
    TRY(e->backend->capture_begin(e->context));
    enum status st = plan_run_part(&e->program.plan[p->kind], p->from, p->to, NULL);
    struct failure first;
    fail_keep(&first);
    enum status ended = e->backend->capture_end(e->context, &p->recording);
    if (st == ST_OK) return ended;
    fail_again(&first);
    return st;
}

/* As engine_run does a whole plan: the first run compiles what is missing, the second is recorded and played. */
static enum status run(struct engine *e, struct piece *p)
{
    if (p->from == p->to) return ST_OK;
    if (!engine_replays(e, NULL) || p->runs++ == 0)
        return plan_run_part(&e->program.plan[p->kind], p->from, p->to, NULL);
    if (!p->recording) TRY(record(e, p));
    return e->backend->replay(e->context, p->recording);
}

/* The device is idle before and after. */
static enum status time_piece(struct bench_engine *b, struct piece *p, double *ret_ms)
{
    const struct engine *e = &b->engine;
    TRY(e->backend->sync(e->context));
    int64_t start = clock_ns();
    TRY(run(&b->engine, p));
    TRY(e->backend->sync(e->context));
    *ret_ms = clock_ms(start, clock_ns());
    return ST_OK;
}

static enum status feed_and_time(struct bench_engine *b, struct piece *p, double *ret_ms)
{
    TRY(noise_feed(&b->noise, p->kind, b->iteration));
    return time_piece(b, p, ret_ms);
}

enum status bench_engine_step(struct bench_engine *b, double ret_ms[BENCH_LINES])
{
    unsigned l = b->lines;
    struct engine *e = &b->engine;
    if (has(l, BENCH_INFERENCE)) {
        TRY(feed_and_time(b, &b->inference, &ret_ms[BENCH_INFERENCE]));
        TRY(engine_read(e, GRAPH_EVAL, "loss", &b->loss, sizeof b->loss));
    }
    if (has(l, BENCH_FORWARD) || has(l, BENCH_BACKWARD))
        TRY(feed_and_time(b, &b->forward, &ret_ms[BENCH_FORWARD]));
    if (has(l, BENCH_BACKWARD)) TRY(time_piece(b, &b->backward, &ret_ms[BENCH_BACKWARD]));
    if (has(l, BENCH_BOTH)) {
        TRY(feed_and_time(b, &b->both, &ret_ms[BENCH_BOTH]));
        TRY(engine_read(e, GRAPH_MICRO, "loss", &b->loss, sizeof b->loss));
        ret_ms[BENCH_DIFFERENCE] = ret_ms[BENCH_BOTH] - ret_ms[BENCH_FORWARD];
    }
    if (has(l, BENCH_STEP)) {
        TRY(e->backend->sync(e->context));
        TRY(noise_step(&b->noise, b->iteration, NULL, &ret_ms[BENCH_STEP]));
        b->loss = (float)b->noise.loss;
    }
    /* Last, so that the first loss of every line is of the weights as they were drawn. */
    if (has(l, BENCH_UPDATE)) TRY(feed_and_time(b, &b->update, &ret_ms[BENCH_UPDATE]));
    b->iteration++;
    return ST_OK;
}

double bench_engine_loss(const struct bench_engine *b)
{
    return (double)b->loss;
}

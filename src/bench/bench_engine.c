#include "bench/bench_engine.h"

#include "backend/backend.h"
#include "base/clock.h"
#include "base/heap.h"
#include "engine/device.h"
#include "engine/memory.h"
#include "measure/random_crew.h"
#include "measure/random_step.h"

#include <stdlib.h>

struct bench_engine {
    unsigned lines;
    struct random_crew_job job;
    struct crew crew; /* the other ranks */
    struct engine engine;
    struct random_step random_step;
    int iteration;
    struct sequence inference, forward, backward, both, update;
    float loss;
    struct arena arena;
};

static bool has(unsigned lines, enum bench_line line)
{
    return lines >> line & 1;
}

unsigned bench_kinds(const struct config *c, unsigned l)
{
    unsigned kinds = has(l, BENCH_STEP) ? memory_kinds(c, EXTENT_STEP) : 0;
    if (has(l, BENCH_INFERENCE)) kinds |= 1u << GRAPH_EVAL;
    if (has(l, BENCH_FORWARD) || has(l, BENCH_BACKWARD) || has(l, BENCH_BOTH))
        kinds |= 1u << GRAPH_MICRO;
    if (has(l, BENCH_UPDATE)) kinds |= 1u << GRAPH_UPDATE;
    return kinds;
}

static void init_sequences(struct bench_engine *b)
{
    struct engine *e = &b->engine;
    const struct plan *micro = &e->program.plan[GRAPH_MICRO];
    int backward_start = e->program.built[GRAPH_MICRO] ? plan_backward_start(micro) : 0;
    struct sequence_part forward = {GRAPH_MICRO, 0, backward_start, NULL};
    struct sequence_part backward = {GRAPH_MICRO, backward_start, micro->steps, NULL};
    sequence_init_plan(&b->inference, e, GRAPH_EVAL, "loss", &b->arena);
    sequence_init(&b->forward, e, &forward, 1, &b->arena);
    sequence_init(&b->backward, e, &backward, 1, &b->arena);
    sequence_init_plan(&b->both, e, GRAPH_MICRO, "loss", &b->arena);
    sequence_init_plan(&b->update, e, GRAPH_UPDATE, NULL, &b->arena);
}

static enum status open(struct bench_engine *b)
{
    const struct config *c = b->job.config;
    unsigned kinds = bench_kinds(c, b->lines);
    if (c->ranks.count > 1 && b->lines != 1u << BENCH_STEP)
        return fail(ST_UNSUPPORTED,
                    "with several ranks only whole steps can be timed: use --phase=step alone, or "
                    "--ranks=1");
    TRY(random_crew_open(&b->crew, &b->job));
    TRY(engine_open_rank(&b->engine, c, b->job.vocab, kinds, device_backend(c),
                         b->crew.communicator, &b->arena));
    init_sequences(b);
    return random_step_init(&b->random_step, &b->engine, &b->arena);
}

enum status bench_engine_open(struct bench_engine **ret, const struct config *c, int64_t vocab,
                              unsigned lines)
{
    struct bench_engine *b = HEAP_NEW(struct bench_engine, 1);
    *b = (struct bench_engine){.lines = lines, .job = {.config = c, .vocab = vocab}};
    enum status st = open(b);
    if (st == ST_OK)
        *ret = b;
    else
        bench_engine_close(b);
    return st;
}

void bench_engine_close(struct bench_engine *b)
{
    struct sequence *all[] = {&b->inference, &b->forward, &b->backward, &b->both, &b->update};
    crew_close(&b->crew);
    random_step_close(&b->random_step);
    for (int i = 0; i < COUNT_OF(all); i++) sequence_close(all[i]);
    engine_close(&b->engine);
    arena_release(&b->arena);
    free(b);
}

/* Times a sequence, from an idle device to an idle device. */
static enum status run_timed(struct bench_engine *b, struct sequence *s, double *ret_ms)
{
    const struct engine *e = &b->engine;
    TRY(e->backend->stream.sync(e->context));
    int64_t start = clock_ns();
    TRY(sequence_start(s, NULL));
    TRY(e->backend->stream.sync(e->context));
    *ret_ms = clock_ms(start, clock_ns());
    return ST_OK;
}

static enum status feed_and_time(struct bench_engine *b, struct sequence *s, double *ret_ms)
{
    TRY(random_step_feed(&b->random_step, s, 0, b->iteration));
    return run_timed(b, s, ret_ms);
}

static enum status read_loss(struct bench_engine *b, struct sequence *s)
{
    const float *loss;
    TRY(sequence_wait(s, &loss));
    b->loss = *loss;
    return ST_OK;
}

enum status bench_engine_step(struct bench_engine *b, double ret_ms[BENCH_LINES])
{
    unsigned l = b->lines;
    const struct engine *e = &b->engine;
    if (has(l, BENCH_INFERENCE)) {
        TRY(feed_and_time(b, &b->inference, &ret_ms[BENCH_INFERENCE]));
        TRY(read_loss(b, &b->inference));
    }
    if (has(l, BENCH_FORWARD) || has(l, BENCH_BACKWARD))
        TRY(feed_and_time(b, &b->forward, &ret_ms[BENCH_FORWARD]));
    if (has(l, BENCH_BACKWARD)) TRY(run_timed(b, &b->backward, &ret_ms[BENCH_BACKWARD]));
    if (has(l, BENCH_BOTH)) {
        TRY(feed_and_time(b, &b->both, &ret_ms[BENCH_BOTH]));
        TRY(read_loss(b, &b->both));
        ret_ms[BENCH_DIFFERENCE] = ret_ms[BENCH_BOTH] - ret_ms[BENCH_FORWARD];
    }
    if (has(l, BENCH_STEP)) {
        TRY(e->backend->stream.sync(e->context));
        TRY(random_step_run(&b->random_step, b->iteration, NULL, &ret_ms[BENCH_STEP]));
        b->loss = (float)b->random_step.loss;
    }
    /* The lines that change the weights, step and update, come after the others, so that the first
     * loss of the others uses the initial weights. */
    if (has(l, BENCH_UPDATE)) TRY(feed_and_time(b, &b->update, &ret_ms[BENCH_UPDATE]));
    b->iteration++;
    return ST_OK;
}

double bench_engine_loss(const struct bench_engine *b)
{
    return (double)b->loss;
}

void bench_engine_setup(const struct bench_engine *b, struct kernel_setup *ret)
{
    const struct engine *e = &b->engine;
    *ret = (struct kernel_setup){0};
    if (e->backend->launches) e->backend->launches->setup(e->context, ret);
}

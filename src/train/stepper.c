#include "train/stepper.h"

#include "backend/backend.h"

#include <string.h>

enum { ALIGNMENT = 64 };

struct stepper_input {
    int64_t run;
    const char *name;
    value v;
    int64_t offset, bytes; /* in the image */
};

static enum graph_kind kind_of(int64_t run, int64_t micro_steps)
{
    return run == micro_steps ? GRAPH_UPDATE : run ? GRAPH_MICRO_MORE : GRAPH_MICRO;
}

static int64_t aligned(int64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Lists the inputs of every run, if `input` is not NULL, and how many bytes they are. */
static int list_inputs(const struct program *p, struct stepper_input *input, int64_t *ret_bytes)
{
    int64_t micro_steps = p->config->train.gradient_accumulation_steps, bytes = 0;
    int inputs = 0;
    for (int64_t run = 0; run <= micro_steps; run++) {
        const struct graph *g = &p->graph[kind_of(run, micro_steps)];
        for (int id = 0; id < g->nodes; id++) {
            const struct node *n = &g->node[id];
            if (n->op != OP_LEAF || n->attr.leaf.storage != STORAGE_INPUT) continue;
            int64_t size = type_bytes(graph_type(g, n->out[0]));
            if (input)
                input[inputs] = (struct stepper_input){run, n->scope, n->out[0], bytes, size};
            bytes += aligned(size);
            inputs++;
        }
    }
    *ret_bytes = bytes;
    return inputs;
}

static int64_t reading_bytes(int64_t micro_steps)
{
    return (micro_steps + 1) * (int64_t)sizeof(float);
}

/* The image as it comes, the image of the step that runs, its results. */
int64_t stepper_bytes(const struct program *p)
{
    int64_t image;
    list_inputs(p, NULL, &image);
    return 2 * image + reading_bytes(p->config->train.gradient_accumulation_steps);
}

void stepper_init(struct stepper *s, struct engine *e, struct arena *a)
{
    *s = (struct stepper){.engine = e,
                          .micro_steps = e->program.config->train.gradient_accumulation_steps};
    s->inputs = list_inputs(&e->program, NULL, &s->image_bytes);
    s->input = ARENA_NEW(a, struct stepper_input, s->inputs);
    list_inputs(&e->program, s->input, &s->image_bytes);
    s->image = ARENA_NEW(a, char, s->image_bytes);
    for (int i = 0; i < STEPPER_AHEAD; i++) s->reading[i] = ARENA_NEW(a, float, s->micro_steps + 1);
}

void stepper_close(struct stepper *s)
{
    const struct engine *e = s->engine;
    if (!e || !e->backend) return;
    struct failure before;
    fail_keep(&before);
    if (stepper_flying(s)) (void)!e->backend->sync(e->context);
    fail_again(&before);
    if (s->recording) e->backend->recording_free(e->context, s->recording);
    s->recording = NULL;
}

void stepper_feed(struct stepper *s, int64_t run, const char *input, const void *data,
                  int64_t bytes)
{
    for (int i = 0; i < s->inputs; i++) {
        const struct stepper_input *in = &s->input[i];
        if (in->run != run || strcmp(in->name, input) != 0) continue;
        BUG_IF(in->bytes != bytes, "input %s of %lld bytes", input, (long long)bytes);
        memcpy(s->image + in->offset, data, (size_t)bytes);
    }
}

/* --- what happens on the device ---------------------------------------------------------------- */

static char *staged(const struct stepper *s)
{
    return s->engine->storage.base[STORAGE_STAGED];
}

static char *taken(const struct stepper *s)
{
    return staged(s) + s->image_bytes;
}

static char *results(const struct stepper *s)
{
    return taken(s) + s->image_bytes;
}

/* Copies input *i from the image, and with it those behind it that lie behind it in the plan, too. */
static enum status take(struct stepper *s, const struct plan *p, int *i)
{
    const struct stepper_input *first = &s->input[*i], *last = first;
    char *to = plan_address(p, first->v);
    for (; *i + 1 < s->inputs && last[1].run == first->run; last++, ++*i)
        if ((char *)plan_address(p, last[1].v) - to != last[1].offset - first->offset) break;
    return s->engine->backend->copy(s->engine->context, to, taken(s) + first->offset,
                                    last->offset + last->bytes - first->offset);
}

static enum status run(struct stepper *s, int64_t number, const struct plan_hooks *hooks)
{
    struct engine *e = s->engine;
    enum graph_kind kind = kind_of(number, s->micro_steps);
    struct plan *p = &e->program.plan[kind];
    for (int i = 0; i < s->inputs; i++)
        if (s->input[i].run == number) TRY(take(s, p, &i));
    TRY(plan_run(p, hooks));
    const float *result = plan_output(p, kind == GRAPH_UPDATE ? "grad_norm" : "loss");
    return e->backend->copy(e->context, results(s) + number * (int64_t)sizeof *result, result,
                            sizeof *result);
}

static enum status run_all(struct stepper *s, const struct plan_hooks *hooks)
{
    for (int64_t number = 0; number <= s->micro_steps; number++) TRY(run(s, number, hooks));
    return ST_OK;
}

static enum status record(struct stepper *s, const struct plan_hooks *hooks)
{
    const struct engine *e = s->engine;
    TRY(e->backend->capture_begin(e->context));
    enum status st = run_all(s, hooks);
    struct failure first;
    fail_keep(&first);
    enum status ended = e->backend->capture_end(e->context, &s->recording);
    if (st == ST_OK) return ended;
    fail_again(&first);
    return st;
}

static enum status run_or_replay(struct stepper *s, const struct plan_hooks *hooks)
{
    const struct engine *e = s->engine;
    if (!engine_replays(e, hooks) || s->begun == 0) return run_all(s, hooks);
    if (!s->recording) TRY(record(s, hooks));
    return e->backend->replay(e->context, s->recording);
}

enum status stepper_start(struct stepper *s, const struct plan_hooks *hooks)
{
    const struct engine *e = s->engine;
    const struct backend *b = e->backend;
    int slot = (int)(s->begun % STEPPER_AHEAD);
    BUG_IF(stepper_flying(s) == STEPPER_AHEAD, "%d steps are on their way", STEPPER_AHEAD);
    TRY(b->stage(e->context, staged(s), s->image, s->image_bytes));
    TRY(b->unstage(e->context, taken(s), staged(s), s->image_bytes));
    TRY(run_or_replay(s, hooks));
    TRY(b->download_later(e->context, s->reading[slot], results(s), reading_bytes(s->micro_steps)));
    TRY(b->mark(e->context, EVENT_STEPS + slot));
    s->begun++;
    return ST_OK;
}

enum status stepper_wait(struct stepper *s, struct step_result *ret)
{
    const struct engine *e = s->engine;
    int slot = (int)(s->done % STEPPER_AHEAD);
    double sum = 0;
    BUG_IF(!stepper_flying(s), "no step is on its way");
    TRY(e->backend->reached(e->context, EVENT_STEPS + slot));
    for (int64_t i = 0; i < s->micro_steps; i++) sum += (double)s->reading[slot][i];
    *ret = (struct step_result){sum / (double)s->micro_steps,
                                (double)s->reading[slot][s->micro_steps]};
    s->done++;
    return ST_OK;
}

int64_t stepper_flying(const struct stepper *s)
{
    return s->begun - s->done;
}

int64_t stepper_lead(const struct stepper *s)
{
    return s->engine->backend->host_memory ? 0 : STEPPER_AHEAD - 1;
}

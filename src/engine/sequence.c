#include "engine/sequence.h"

#include "backend/backend.h"

#include <string.h>

enum { ALIGNMENT = 64 };

struct sequence_input {
    int part;
    const char *name;
    value v;
    int64_t offset, bytes; /* in the image */
};

/* --- the parts of a sequence and their inputs ------------------------------------------------- */

static struct sequence_part plan_part(const struct program *p, enum graph_kind kind,
                                      const char *result)
{
    return (struct sequence_part){kind, 0, p->plan[kind].steps, result};
}

static struct sequence_part *step_parts(const struct program *p, int *ret_parts, struct arena *a)
{
    int micro_steps = (int)micro_steps_of(p->config);
    struct sequence_part *part = ARENA_NEW(a, struct sequence_part, micro_steps + 1);
    for (int i = 0; i < micro_steps; i++)
        part[i] = plan_part(p, micro_step_kind(p->config, i), "loss");
    part[micro_steps] = plan_part(p, GRAPH_UPDATE, "grad_norm");
    *ret_parts = micro_steps + 1;
    return part;
}

/* Counts the inputs of all parts and their bytes; lists them if `input` is not NULL. */
static int list_inputs(const struct program *p, const struct sequence_part *part, int parts,
                       struct sequence_input *input, int64_t *ret_bytes)
{
    int64_t bytes = 0;
    int inputs = 0;
    for (int i = 0; i < parts; i++) {
        const struct graph *g = &p->graph[part[i].kind];
        for (int id = 0; id < g->nodes; id++) {
            const struct node *n = &g->node[id];
            if (n->op != OP_LEAF || n->attr.leaf.storage != STORAGE_INPUT) continue;
            int64_t size = type_bytes(graph_type(g, n->out[0]));
            if (input) input[inputs] = (struct sequence_input){i, n->scope, n->out[0], bytes, size};
            bytes += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
            inputs++;
        }
    }
    *ret_bytes = bytes;
    return inputs;
}

static int64_t result_bytes(int parts)
{
    return parts * (int64_t)sizeof(float);
}

int64_t sequence_step_bytes(const struct program *p)
{
    struct arena scratch = {0};
    int64_t image;
    int parts;
    const struct sequence_part *part = step_parts(p, &parts, &scratch);
    list_inputs(p, part, parts, NULL, &image);
    arena_release(&scratch);
    return 2 * image + result_bytes(parts);
}

/* Whether the memory of staged inputs is large enough for these parts. */
static bool staged_fits(const struct engine *e, int64_t image_bytes, int parts)
{
    return 2 * image_bytes + result_bytes(parts) <= e->storage.bytes[STORAGE_STAGED];
}

static void stage_inputs(struct sequence *s, struct arena *a)
{
    const struct program *p = &s->engine->program;
    int inputs = list_inputs(p, s->part, s->parts, NULL, &s->image_bytes);
    s->input = ARENA_NEW(a, struct sequence_input, inputs);
    s->inputs = list_inputs(p, s->part, s->parts, s->input, &s->image_bytes);
    s->image = ARENA_NEW(a, char, s->image_bytes);
}

void sequence_init(struct sequence *s, struct engine *e, const struct sequence_part *part,
                   int parts, struct arena *a)
{
    *s = (struct sequence){.engine = e, .parts = parts};
    s->part = ARENA_NEW(a, struct sequence_part, parts);
    memcpy(s->part, part, (size_t)parts * sizeof *part);
    for (int i = 0; i < SEQUENCE_IN_FLIGHT; i++) s->result[i] = ARENA_NEW(a, float, parts);
    if (parts > 1) stage_inputs(s, a);
    BUG_IF(parts > 1 && !staged_fits(e, s->image_bytes, parts),
           "staged inputs and results of %d parts need more than the reserved %lld bytes", parts,
           (long long)e->storage.bytes[STORAGE_STAGED]);
}

void sequence_init_step(struct sequence *s, struct engine *e, struct arena *a)
{
    int parts;
    const struct sequence_part *part = step_parts(&e->program, &parts, a);
    sequence_init(s, e, part, parts, a);
}

void sequence_init_plan(struct sequence *s, struct engine *e, enum graph_kind kind,
                        const char *result, struct arena *a)
{
    struct sequence_part part = plan_part(&e->program, kind, result);
    sequence_init(s, e, &part, 1, a);
}

void sequence_init_staged(struct sequence *s, struct engine *e, enum graph_kind kind,
                          const char *result, struct arena *a)
{
    int64_t image_bytes;
    sequence_init_plan(s, e, kind, result, a);
    list_inputs(&e->program, s->part, 1, NULL, &image_bytes);
    if (staged_fits(e, image_bytes, 1)) stage_inputs(s, a);
}

void sequence_close(struct sequence *s)
{
    const struct engine *e = s->engine;
    if (!e || !e->backend) return;
    struct failure before;
    fail_keep(&before);
    if (s->capture || sequence_in_flight(s)) (void)!e->backend->stream.sync(e->context);
    fail_restore(&before);
    if (s->capture) e->backend->recording->free(e->context, s->capture);
    s->capture = NULL;
}

enum status sequence_feed(struct sequence *s, int part, const char *input, const void *data,
                          int64_t bytes)
{
    if (!s->image)
        return plan_feed(&s->engine->program.plan[s->part[part].kind], input, data, bytes);
    const struct sequence_input *in = s->input, *end = in + s->inputs;
    while (in < end && (in->part != part || strcmp(in->name, input) != 0)) in++;
    BUG_IF(in == end, "part %d has no input %s", part, input);
    BUG_IF(in->bytes != bytes, "input %s has %lld bytes, not %lld", input, (long long)in->bytes,
           (long long)bytes);
    memcpy(s->image + in->offset, data, (size_t)bytes);
    return ST_OK;
}

/* --- running on the device -------------------------------------------------------------------- */

/* Parts of the staging memory: inputs of the next run; inputs and results of the current run. */
enum staged { NEXT, CURRENT, RESULTS };

static char *staged(const struct sequence *s, enum staged what)
{
    return (char *)s->engine->storage.base[STORAGE_STAGED] + what * s->image_bytes;
}

/* Copies input *i into the plan, with the following inputs if they are contiguous there. */
static enum status copy_in(struct sequence *s, const struct plan *p, int *i)
{
    const struct sequence_input *first = &s->input[*i], *last = first;
    char *to = plan_address(p, first->v);
    for (; *i + 1 < s->inputs && last[1].part == first->part; last++, ++*i)
        if ((char *)plan_address(p, last[1].v) - to != last[1].offset - first->offset) break;
    return s->engine->backend->memory.copy(s->engine->context, to,
                                           staged(s, CURRENT) + first->offset,
                                           last->offset + last->bytes - first->offset);
}

static enum status run_part(struct sequence *s, int number, const struct plan_hooks *hooks)
{
    struct engine *e = s->engine;
    const struct sequence_part *part = &s->part[number];
    struct plan *p = &e->program.plan[part->kind];
    for (int i = 0; i < s->inputs; i++)
        if (s->input[i].part == number) TRY(copy_in(s, p, &i));
    TRY(plan_run_part(p, part->from, part->to, hooks));
    if (!s->image) return ST_OK;
    return e->backend->memory.copy(e->context, staged(s, RESULTS) + result_bytes(number),
                                   plan_output(p, part->result), sizeof(float));
}

static enum status run_parts(struct sequence *s, const struct plan_hooks *hooks)
{
    for (int number = 0; number < s->parts; number++) TRY(run_part(s, number, hooks));
    return ST_OK;
}

static enum status capture(struct sequence *s, const struct plan_hooks *hooks)
{
    const struct engine *e = s->engine;
    TRY(e->backend->recording->begin(e->context));
    enum status st = run_parts(s, hooks);
    struct failure first;
    fail_keep(&first);
    enum status ended = e->backend->recording->end(e->context, &s->capture);
    if (st == ST_OK) return ended;
    fail_restore(&first);
    return st;
}

bool sequence_replays(const struct sequence *s, const struct plan_hooks *hooks)
{
    const struct config_plan *c = &s->engine->program.config->plan;
    bool watched = hooks && !hooks->recorded && (hooks->before || hooks->after);
    return c->replay == REPLAY_TRUE && s->engine->backend->recording && !watched && !c->poison;
}

static enum status run_or_replay(struct sequence *s, const struct plan_hooks *hooks)
{
    const struct engine *e = s->engine;
    if (!sequence_replays(s, hooks) || s->started == 0) return run_parts(s, hooks);
    if (!s->capture) TRY(capture(s, hooks));
    return e->backend->recording->replay(e->context, s->capture);
}

static enum status start_staged(struct sequence *s, const struct plan_hooks *hooks)
{
    const struct engine *e = s->engine;
    const struct backend *b = e->backend;
    int slot = (int)(s->started % SEQUENCE_IN_FLIGHT);
    BUG_IF(sequence_in_flight(s) == SEQUENCE_IN_FLIGHT, "%d runs are in flight",
           SEQUENCE_IN_FLIGHT);
    TRY(b->memory.stage(e->context, staged(s, NEXT), s->image, s->image_bytes));
    TRY(b->memory.unstage(e->context, staged(s, CURRENT), staged(s, NEXT), s->image_bytes));
    TRY(run_or_replay(s, hooks));
    TRY(b->memory.download_later(e->context, s->result[slot], staged(s, RESULTS),
                                 result_bytes(s->parts)));
    return b->stream.event_record(e->context, EVENT_STEPS + slot);
}

enum status sequence_start(struct sequence *s, const struct plan_hooks *hooks)
{
    TRY(s->image ? start_staged(s, hooks) : run_or_replay(s, hooks));
    s->started++;
    return ST_OK;
}

enum status sequence_wait(struct sequence *s, const float **ret_result)
{
    const struct engine *e = s->engine;
    float *result = s->result[s->finished % SEQUENCE_IN_FLIGHT];
    *ret_result = result;
    if (!s->image)
        return s->part->result ? plan_read(&e->program.plan[s->part->kind], s->part->result, 0,
                                           result, sizeof *result)
                               : e->backend->stream.sync(e->context);
    BUG_IF(!sequence_in_flight(s), "no run is in flight");
    TRY(e->backend->stream.event_wait(e->context,
                                      EVENT_STEPS + (int)(s->finished % SEQUENCE_IN_FLIGHT)));
    s->finished++;
    return ST_OK;
}

enum status sequence_wait_step(struct sequence *s, struct step_result *ret)
{
    const float *result;
    double sum = 0;
    int micro_steps = s->parts - 1;
    TRY(sequence_wait(s, &result));
    for (int i = 0; i < micro_steps; i++) sum += (double)result[i];
    *ret = (struct step_result){sum / (double)micro_steps, (double)result[micro_steps]};
    return ST_OK;
}

int64_t sequence_in_flight(const struct sequence *s)
{
    return s->image ? s->started - s->finished : 0;
}

void sequence_drop(struct sequence *s)
{
    struct failure before;
    fail_keep(&before);
    if (sequence_in_flight(s)) (void)s->engine->backend->stream.sync(s->engine->context);
    fail_restore(&before);
    s->finished = s->started;
}

int64_t sequence_lookahead(const struct sequence *s)
{
    return !s->image || s->engine->backend->host_memory ? 0 : SEQUENCE_IN_FLIGHT - 1;
}

#include "plan/plan.h"

#include "backend/backend.h"
#include "base/checked.h"
#include "plan/liveness.h"

#include <string.h>

static const struct kernel *choose(const struct plan *p, const struct node *n,
                                   const struct kernel_call *call)
{
    const struct kernel *k;
    if (p->options.variant)
        for (int i = 0; (k = p->backend->kernels.find((int)n->op, call, i)); i++)
            if (!strcmp(k->variant, p->options.variant)) return k;
    return p->backend->kernels.find((int)n->op, call, 0);
}

static enum status plan_step(struct plan *p, int id, const struct target *target)
{
    const struct graph *g = p->graph;
    const struct node *n = &g->node[id];
    struct step *s = &p->step[id];
    s->node = id;
    s->call = (struct kernel_call){.attr = &n->attr,
                                   .numerics = n->numerics,
                                   .n_in = n->n_in,
                                   .n_out = n->n_out,
                                   .target = target,
                                   .tuning = p->options.tuning,
                                   .lookups = p->options.lookups};
    for (int i = 0; i < n->n_in; i++) s->call.in_type[i] = *graph_type(g, n->in[i]);
    for (int i = 0; i < n->n_out; i++) s->call.out_type[i] = *graph_type(g, n->out[i]);
    if (n->op == OP_LEAF || op_def(n->op)->flags & OP_VIEW) return ST_OK;
    s->kernel = choose(p, n, &s->call);
    if (!s->kernel) {
        char t[TYPE_TEXT];
        return fail(ST_UNSUPPORTED, "backend %s has no kernel for %s on %s (%s)", p->backend->name,
                    op_def(n->op)->name, type_text(t, &s->call.out_type[0]), n->scope);
    }
    s->cost = graph_node_cost(g, n);
    if (s->kernel->scratch_bytes) s->scratch_bytes = s->kernel->scratch_bytes(s->kernel, &s->call);
    return ST_OK;
}

/* With this limit, sums over all storage fit in 64 bits. */
#define PLAN_BYTES_MOST ((int64_t)1 << 58)

enum { INPUT_ALIGNMENT = 64 }; /* place.c and the staging buffer of inputs use the same alignment */

/* Sets the offset of each small input within their common span, and returns that span. */
static struct place_span place_inputs(struct plan *p)
{
    struct place_span all = {0};
    for (int v = 1; v < p->graph->values; v++) {
        if (!is_small_input(p, v)) continue;
        p->span[v].offset = all.bytes;
        all.bytes += round_up(p->span[v].bytes, INPUT_ALIGNMENT);
        all.last = p->span[v].last;
    }
    return all;
}

static enum status place_arena(struct plan *p, struct arena *scratch)
{
    int n = 1, values = p->graph->values;
    struct place_span *place = ARENA_NEW(scratch, struct place_span, values + p->steps + 1);
    int *owner = ARENA_NEW(scratch, int, values + p->steps + 1); /* value, or minus index of step */
    place[0] = place_inputs(p);
    for (int v = 1; v < values; v++) {
        const struct span *s = &p->span[v];
        if (s->root != v || s->storage != STORAGE_ARENA || is_small_input(p, v)) continue;
        owner[n] = v;
        place[n++] = (struct place_span){s->bytes, s->first, s->last, 0};
    }
    for (int id = 0; id < p->steps; id++) {
        if (!p->step[id].scratch_bytes || !p->step[id].kernel) continue;
        owner[n] = -id;
        place[n++] = (struct place_span){p->step[id].scratch_bytes, id, id, 0};
    }
    if (p->options.no_reuse)
        for (int i = 0; i < n; i++) place[i].first = 0, place[i].last = p->steps;
    p->arena_bytes = place_spans(place, n, scratch);
    if (p->arena_bytes > PLAN_BYTES_MOST)
        return fail(ST_MEMORY,
                    "the values of this graph need more than %lld TiB together; lower batch_size, "
                    "block_size, n_layer or n_embd",
                    (long long)(PLAN_BYTES_MOST >> 40));
    BUG_IF(n < 4096 && !place_valid(place, n),
           "two values with overlapping live ranges share bytes");
    for (int v = 1; v < values; v++)
        if (is_small_input(p, v)) p->span[v].offset += place[0].offset;
    for (int i = 1; i < n; i++) {
        if (owner[i] > 0)
            p->span[owner[i]].offset = place[i].offset;
        else
            p->step[-owner[i]].scratch_offset = place[i].offset;
    }
    for (int v = 1; v < values; v++)
        if (p->span[v].root != v)
            p->span[v].offset = p->span[p->span[v].root].offset + p->span[v].within;
    /* The offset of a root was that of its whole unit; now it becomes that of its own bytes. */
    for (int v = 1; v < values; v++)
        if (p->span[v].root == v) p->span[v].offset += p->span[v].within;
    return ST_OK;
}

enum status plan_build(struct plan *p, const struct graph *g, const struct target *target,
                       const struct plan_options *options, struct arena *a)
{
    TRY(graph_verify(g));
    *p = (struct plan){.graph = g, .backend = target->backend};
    if (options) p->options = *options;
    p->step = ARENA_NEW(a, struct step, g->nodes);
    p->span = ARENA_NEW(a, struct span, g->values);
    for (int id = 0; id < g->nodes; id++) TRY(plan_step(p, id, target));
    p->steps = g->nodes;
    struct arena scratch = {0};
    liveness_find(p, &scratch);
    enum status st = place_arena(p, &scratch);
    arena_release(&scratch);
    return st;
}

void plan_release(struct plan *p)
{
    for (int id = 0; id < p->steps; id++) {
        struct step *s = &p->step[id];
        if (p->bound && s->kernel && s->kernel->release) s->kernel->release(&s->call);
    }
    p->bound = false;
    p->steps = 0;
}

void storage_reserve(struct storage_blocks *s, const struct plan *p)
{
    if (p->arena_bytes > s->bytes[STORAGE_ARENA]) s->bytes[STORAGE_ARENA] = p->arena_bytes;
    for (int v = 1; v < p->graph->values; v++) {
        const struct span *span = &p->span[v];
        if (span->storage == STORAGE_ARENA) continue;
        int64_t end = span->offset + span->bytes;
        if (end > s->bytes[span->storage]) s->bytes[span->storage] = end;
    }
}

enum status storage_alloc(struct storage_blocks *s)
{
    for (int i = 0; i < STORAGE_COUNT; i++)
        if (s->bytes[i] && !s->base[i])
            TRY(s->backend->memory.alloc(s->context, s->bytes[i], &s->base[i]));
    return ST_OK;
}

void storage_free(struct storage_blocks *s)
{
    for (int i = 0; i < STORAGE_COUNT; i++) {
        if (s->base[i]) s->backend->memory.free(s->context, s->base[i]);
        s->base[i] = NULL;
    }
}

static enum status prepare(struct plan *p, void *context, struct communicator *communicator)
{
    p->context = context;
    p->bound = true;
    for (int id = 0; id < p->steps; id++) {
        struct step *s = &p->step[id];
        s->call.context = context;
        s->call.communicator = communicator;
        if (!s->kernel || !s->kernel->prepare) continue;
        enum status st = s->kernel->prepare(s->kernel, &s->call);
        if (st == ST_OK) continue;
        const struct node *n = &p->graph->node[id];
        st = fail_in(st, "node %d %s %s", id, op_def(n->op)->name, n->scope);
        p->steps = id; /* plan_release then releases only the steps that were prepared */
        plan_release(p);
        return st;
    }
    return ST_OK;
}

enum status plan_bind(struct plan *p, const struct storage_blocks *s)
{
    TRY(prepare(p, s->context, s->communicator));
    struct storage_blocks needed = {.backend = s->backend};
    storage_reserve(&needed, p);
    for (int i = 0; i < STORAGE_COUNT; i++) {
        BUG_IF(needed.bytes[i] > s->bytes[i], "storage %d was not reserved for this plan", i);
        p->base[i] = s->base[i];
    }
    for (int id = 0; id < p->steps; id++) {
        const struct node *n = &p->graph->node[id];
        struct kernel_call *call = &p->step[id].call;
        for (int i = 0; i < n->n_in; i++) call->in[i] = plan_address(p, n->in[i]);
        for (int i = 0; i < n->n_out; i++) call->out[i] = plan_address(p, n->out[i]);
        if (p->step[id].scratch_bytes)
            call->scratch = p->base[STORAGE_ARENA] + p->step[id].scratch_offset;
    }
    return ST_OK;
}

void *plan_address(const struct plan *p, value v)
{
    const struct span *s = &p->span[v.i];
    return p->base[s->storage] ? p->base[s->storage] + s->offset : NULL;
}

void *plan_input(const struct plan *p, const char *name)
{
    value v = graph_find_leaf(p->graph, STORAGE_INPUT, name);
    return v.i ? plan_address(p, v) : NULL;
}

void *plan_output(const struct plan *p, const char *name)
{
    value v = graph_find_output(p->graph, name);
    return v.i ? plan_address(p, v) : NULL;
}

enum status plan_feed(const struct plan *p, const char *input, const void *data, int64_t bytes)
{
    value v = graph_find_leaf(p->graph, STORAGE_INPUT, input);
    BUG_IF(!v.i, "no input %s", input);
    BUG_IF(type_bytes(graph_type(p->graph, v)) != bytes, "input %s does not have %lld bytes", input,
           (long long)bytes);
    return p->backend->memory.upload(p->context, plan_address(p, v), data, bytes);
}

enum status plan_read(const struct plan *p, const char *output, int64_t from, void *ret_data,
                      int64_t bytes)
{
    value v = graph_find_output(p->graph, output);
    BUG_IF(!v.i, "no output %s", output);
    BUG_IF(type_bytes(graph_type(p->graph, v)) < from + bytes, "output %s is smaller", output);
    return p->backend->memory.download(p->context, ret_data, (char *)plan_address(p, v) + from,
                                       bytes);
}

int plan_kernels(const struct plan *p)
{
    int kernels = 0;
    for (int id = 0; id < p->steps; id++) kernels += p->step[id].kernel != NULL;
    return kernels;
}

struct cost plan_cost(const struct plan *p)
{
    struct cost sum = {0, 0};
    for (int id = 0; id < p->steps; id++) {
        if (!p->step[id].kernel) continue;
        sum.flops += p->step[id].cost.flops;
        sum.bytes += p->step[id].cost.bytes;
    }
    return sum;
}

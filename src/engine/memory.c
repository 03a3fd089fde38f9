#include "engine/memory.h"

#include "engine/facts.h"
#include "engine/fit.h"
#include "engine/optimizer.h"

#include <stdlib.h>
#include <string.h>

static const char *const extents[EXTENTS] = {"inference", "backward", "step"};

const char *memory_extent_name(enum memory_extent extent)
{
    return extents[extent];
}

unsigned memory_kinds(const struct config *c, enum memory_extent extent)
{
    if (extent == EXTENT_INFERENCE) return 1u << GRAPH_EVAL;
    unsigned kinds = 0;
    for (int64_t i = 0; i < micro_steps_of(c); i++) kinds |= 1u << micro_step_kind(c, i);
    return extent == EXTENT_STEP ? kinds | 1u << GRAPH_UPDATE : kinds;
}

/* The graphs that a course shows: evaluation, then the graphs of a training step in order.
 * GRAPH_REFRESH is left out, because it runs only before the first step. */
static const enum graph_kind order[] = {GRAPH_EVAL, GRAPH_MICRO, GRAPH_MICRO_MORE, GRAPH_MICRO_LAST,
                                        GRAPH_UPDATE};

void memory_course(const struct program *program, struct memory_course *ret, struct arena *a)
{
    struct arena scratch = {0};
    int kernels = 0;
    for (int i = 0; i < COUNT_OF(order); i++)
        if (program->built[order[i]]) kernels += plan_kernels(&program->plan[order[i]]);
    *ret = (struct memory_course){.moment = ARENA_NEW(a, struct memory_moment, kernels)};
    for (int i = 0; i < COUNT_OF(order); i++) {
        const struct plan *p = &program->plan[order[i]];
        struct timeline t;
        if (!program->built[order[i]]) continue;
        plan_timeline(p, program->bytes, &t, &scratch);
        ret->total = t.total_bytes;
        for (int id = 0; id < p->steps; id++) {
            if (!p->step[id].kernel) continue;
            struct memory_moment *m = &ret->moment[ret->moments];
            *m = (struct memory_moment){
                order[i], id, {0}, t.total_bytes - t.bytes[id][MEMORY_UNUSED]};
            memcpy(m->bytes, t.bytes[id], sizeof m->bytes);
            if (m->used > ret->moment[ret->peak].used) ret->peak = ret->moments;
            ret->moments++;
        }
    }
    arena_release(&scratch);
}

static int run_length(const struct memory_course *c, int from)
{
    int n = 1;
    while (from + n < c->moments && c->moment[from + n].kind == c->moment[from].kind) n++;
    return n;
}

int memory_columns(const struct memory_course *c, int columns, int *ret)
{
    int width[COUNT_OF(order)], first[COUNT_OF(order)], runs = 0, widest = 0, sum = 0, at = 0;
    if (columns > c->moments) columns = c->moments;
    for (int from = 0; from < c->moments; from += run_length(c, from)) {
        int n = (int)((int64_t)run_length(c, from) * columns / c->moments);
        first[runs] = from;
        width[runs] = n ? n : 1;
        sum += width[runs];
        if (width[runs] > width[widest]) widest = runs;
        runs++;
    }
    if (runs) width[widest] += columns - sum;
    for (int r = 0; r < runs; r++)
        for (int i = 0, n = run_length(c, first[r]); i < width[r]; i++) {
            int from = first[r] + (int)((int64_t)i * n / width[r]);
            int to = first[r] + (int)((int64_t)(i + 1) * n / width[r]);
            int most = from;
            for (int k = from; k < to; k++)
                if (c->moment[k].used > c->moment[most].used) most = k;
            ret[at++] = most;
        }
    return at;
}

/* --- tensors ---------------------------------------------------------------------------------- */

static int larger_first(const void *a, const void *b)
{
    const struct memory_tensor *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    if (x->first != y->first) return x->first - y->first;
    int by_name = strcmp(x->name, y->name);
    return by_name ? by_name : (int)x->part - (int)y->part;
}

static void add_tensor(struct memory_tensors *list, struct memory_tensor t)
{
    list->bytes += t.bytes;
    list->tensor[list->n++] = t;
}

static void sort(struct memory_tensors *list)
{
    qsort(list->tensor, (size_t)list->n, sizeof *list->tensor, larger_first);
}

static struct memory_tensor tensor_of(const struct plan *p, const struct residency *s)
{
    const struct node *by = graph_producer(p->graph, s->v);
    return (struct memory_tensor){by->scope,
                                  by->op == OP_LEAF ? "" : op_def(by->op)->name,
                                  p->graph->info[s->v.i].index,
                                  by->layer,
                                  s->part,
                                  *graph_type(p->graph, s->v),
                                  s->bytes,
                                  s->offset,
                                  s->first,
                                  s->last};
}

/* Adds the weights and the ranges that have the same layout. */
static void add_parameters(const struct program *program, int last, struct memory_tensors *list)
{
    const struct optimizer *o = optimizer_of(program->config);
    const struct {
        enum storage storage;
        enum memory_part part;
        int64_t size; /* bytes per element; all optimizer states are shown as one tensor */
    } ranges[] = {{STORAGE_WEIGHTS, MEMORY_WEIGHTS, 4},
                  {STORAGE_GRADIENTS, MEMORY_GRADIENTS, 4},
                  {o->state[0].storage, MEMORY_OPTIMIZER, 4 * o->states},
                  {STORAGE_COPY, MEMORY_COPIES, 2},
                  {STORAGE_REDUCED, MEMORY_GRADIENTS, 2}};
    for (int r = 0; r < COUNT_OF(ranges); r++) {
        int64_t bytes = program->bytes[ranges[r].storage];
        if (!ranges[r].size || !bytes) continue;
        int64_t elements = bytes / (ranges[r].size == 2 ? 2 : 4);
        if (elements < program->model.elements) { /* the range is sharded */
            add_tensor(list, (struct memory_tensor){.name = "shards of this rank",
                                                    .op = "",
                                                    .layer = -1,
                                                    .part = ranges[r].part,
                                                    .bytes = elements * ranges[r].size,
                                                    .offset = -1,
                                                    .last = last});
            continue;
        }
        for (int i = 0; i < program->model.parameters; i++) {
            const struct parameter *p = &program->model.parameter[i];
            struct memory_tensor t = {.name = p->name,
                                      .op = "",
                                      .layer = model_parameter_layer(p),
                                      .part = ranges[r].part,
                                      .type = p->type,
                                      .offset = -1,
                                      .last = last};
            t.bytes = type_elements(&p->type) * ranges[r].size;
            if (ranges[r].size == 2) t.type.dtype = DT_BF16;
            add_tensor(list, t);
        }
    }
}

static void add_block(const struct program *program, enum storage storage, enum memory_part part,
                      const char *name, int last, struct memory_tensors *list)
{
    int64_t bytes = program->bytes[storage];
    if (bytes)
        add_tensor(list, (struct memory_tensor){name, "", 0, -1, part, {0}, bytes, -1, 0, last});
}

void memory_tensors(const struct program *program, const struct memory_moment *m,
                    struct memory_tensors *ret, struct arena *a)
{
    const struct plan *p = &program->plan[m->kind];
    const struct step *step = &p->step[m->step];
    const struct node *n = &p->graph->node[m->step];
    struct residencies residencies;
    plan_residencies(p, &residencies, a);
    enum { BLOCKS = 5, RANGES = 5 };
    int most = residencies.n + RANGES * program->model.parameters + BLOCKS + 1;
    *ret = (struct memory_tensors){.tensor = ARENA_NEW(a, struct memory_tensor, most)};
    for (int i = 0; i < residencies.n; i++)
        if (residencies.residency[i].first <= m->step && m->step <= residencies.residency[i].last)
            add_tensor(ret, tensor_of(p, &residencies.residency[i]));
    if (step->kernel && step->scratch_bytes)
        add_tensor(ret, (struct memory_tensor){n->scope,
                                               op_def(n->op)->name,
                                               0,
                                               n->layer,
                                               MEMORY_WORKSPACE,
                                               {0},
                                               step->scratch_bytes,
                                               step->scratch_offset,
                                               m->step,
                                               m->step});
    add_parameters(program, p->steps, ret);
    add_block(program, STORAGE_PACKED, MEMORY_COPIES, "packed weights", p->steps, ret);
    add_block(program, STORAGE_AMAX, MEMORY_COPIES, "largest magnitudes", p->steps, ret);
    add_block(program, STORAGE_CACHE, MEMORY_CACHE, "cache", p->steps, ret);
    add_block(program, STORAGE_STAGED, MEMORY_INPUTS, "inputs of the next step", p->steps, ret);
    add_block(program, STORAGE_RANDOM, MEMORY_INPUTS, "random inputs", p->steps, ret);
    sort(ret);
}

void memory_saved(const struct program *program, int layer, struct memory_tensors *ret,
                  struct arena *a)
{
    struct residencies residencies = {0};
    const struct plan *p = &program->plan[GRAPH_MICRO];
    if (program->built[GRAPH_MICRO]) plan_residencies(p, &residencies, a);
    *ret = (struct memory_tensors){.tensor = ARENA_NEW(a, struct memory_tensor, residencies.n + 1)};
    for (int i = 0; i < residencies.n; i++) {
        const struct residency *s = &residencies.residency[i];
        if (s->part == MEMORY_SAVED && graph_producer(p->graph, s->v)->layer == layer)
            add_tensor(ret, tensor_of(p, s));
    }
    sort(ret);
}

/* --- variants --------------------------------------------------------------------------------- */

static enum status plan_variant(const struct config *c, int64_t vocab, unsigned kinds,
                                const struct target *target, const struct tuning *tuning,
                                struct memory_variant *v)
{
    struct arena a = {0};
    struct program p;
    enum status st = program_compile(&p, c, vocab, target, tuning, kinds, &a);
    if (st == ST_OK) {
        struct memory_course course;
        struct facts f = facts_of(&p);
        memory_course(&p, &course, &a);
        v->total = (int64_t)f.total;
        v->flops = f.flops;
        for (int i = 0; i < course.moments; i++)
            if (course.moment[i].bytes[MEMORY_SAVED] > v->saved)
                v->saved = course.moment[i].bytes[MEMORY_SAVED];
    }
    arena_release(&a);
    return st;
}

static bool differs(const struct memory_variant *v, const struct memory_variant *none)
{
    return v->flops != none->flops || v->total != none->total || v->saved != none->saved;
}

enum status memory_variants(const struct config *c, int64_t vocab, unsigned kinds,
                            const struct target *target, const struct tuning *tuning, int64_t limit,
                            void (*each)(void *user, int done, int all), void *user,
                            struct memory_variant ret[MEMORY_VARIANTS], int *ret_n)
{
    int64_t layers = model_layers(&c->model);
    int n = 0, kept = 0;
    /* None, GELU, then regions of 1, 2, 4 ... and all blocks. `own`, the number of blocks that the
     * configuration sets, is inserted where it belongs in this order. */
    ret[n++].recompute = RECOMPUTE_NONE;
    ret[n++].recompute = RECOMPUTE_GELU;
    for (int blocks = 1; blocks <= layers; blocks *= 2) {
        int own = (int)c->plan.recompute - RECOMPUTE_BLOCK + 1;
        if (own > blocks / 2 && own < blocks) ret[n++].recompute = c->plan.recompute;
        ret[n++].recompute = (enum recompute)(RECOMPUTE_BLOCK + blocks - 1);
        bool last = 2 * blocks > layers;
        if (own > blocks && last) ret[n++].recompute = c->plan.recompute;
        if (blocks < layers && last && own != layers)
            ret[n++].recompute = (enum recompute)(RECOMPUTE_BLOCK + layers - 1);
    }
    for (int i = 0; i < n; i++) {
        struct config other = *c;
        struct memory_variant v = {.recompute = ret[i].recompute};
        other.plan.recompute = v.recompute;
        TRY(plan_variant(&other, vocab, kinds, target, tuning, &v));
        if (i == 0 || differs(&v, &ret[0]) || v.recompute == c->plan.recompute) {
            if (limit) TRY(fit_batch(&other, vocab, kinds, target, tuning, limit, &v.batch));
            ret[kept++] = v;
        }
        if (each) each(user, i + 1, n);
    }
    *ret_n = kept;
    return ST_OK;
}

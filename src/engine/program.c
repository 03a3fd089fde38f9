#include "engine/program.h"

#include "backend/backend.h"
#include "backend/kernel.h"
#include "base/log.h"
#include "base/str.h"
#include "engine/copies.h"
#include "engine/device.h"
#include "engine/optimizer.h"
#include "engine/sequence.h"
#include "engine/shards.h"
#include "graph/build.h"

#include <string.h>

static const char *const kind_names[GRAPH_COUNT] = {
    "micro", "micro_more", "micro_last", "update", "refresh", "eval", "logits", "decode"};

const char *graph_kind_name(enum graph_kind kind)
{
    return kind_names[kind];
}

int64_t micro_steps_of(const struct config *c)
{
    int64_t all = c->train.gradient_accumulation_steps;
    return c->ranks.count > 1 ? all / c->ranks.count : all;
}

enum graph_kind micro_step_kind(const struct config *c, int64_t i)
{
    bool sums = c->ranks.count > 1 && i == micro_steps_of(c) - 1 && !shards_weights(c);
    return i == 0 ? GRAPH_MICRO : sums ? GRAPH_MICRO_LAST : GRAPH_MICRO_MORE;
}

/* The number of ranks that a graph's collectives span; 1: the graph has no collectives. */
static int ranks_of(enum graph_kind kind, const struct config *c)
{
    if (c->ranks.count <= 1) return 1;
    if (shards_weights(c)) return kind == GRAPH_UPDATE ? 1 : (int)c->ranks.count;
    return kind == micro_step_kind(c, micro_steps_of(c) - 1) ? (int)c->ranks.count : 1;
}

static struct pass_units units_of(enum graph_kind kind, const struct config *c,
                                  const struct model *m)
{
    if (!shards_weights(c) || kind == GRAPH_UPDATE) return (struct pass_units){0};
    return (struct pass_units){m->units, m->unit, (int)c->ranks.rank, kind != GRAPH_MICRO};
}

static struct pass_options options_of(enum graph_kind kind, const struct config *c,
                                      const struct model *m, const struct pass_packing *packing,
                                      const struct pass_kernels *kernels)
{
    static const enum pass_rung rungs[] = {
        [FUSION_PRIMITIVE] = RUNG_PRIMITIVE, [FUSION_OP] = RUNG_OP, [FUSION_FULL] = RUNG_FULL};
    static const enum pass_region regions[] = {[RECOMPUTE_NONE] = REGION_NONE,
                                               [RECOMPUTE_GELU] = REGION_GELU,
                                               [RECOMPUTE_BLOCK] = REGION_BLOCK};
    BUG_IF(c->plan.dtype == PRECISION_AUTO || c->plan.replay == REPLAY_AUTO,
           "dtype or replay was not chosen before the plan");
    int blocks = (int)c->plan.recompute - RECOMPUTE_BLOCK + 1;
    enum dtype compute = precision_is_mixed(c->plan.dtype) ? DT_BF16 : DT_F32;
    /* Evaluation and sampling with dtype=float8 compute in bf16. */
    bool trains = kind == GRAPH_MICRO || kind == GRAPH_MICRO_MORE || kind == GRAPH_MICRO_LAST;
    enum dtype gradients = c->plan.float8_gradients == FLOAT8_E4M3 ? DT_E4M3 : DT_E5M2;
    return (struct pass_options){
        .rung = rungs[c->plan.fusion],
        .region = regions[blocks > 1 ? RECOMPUTE_BLOCK : c->plan.recompute],
        .region_blocks = blocks,
        .flash = c->plan.flash,
        .compute = compute,
        .float8_gradients = c->plan.dtype == PRECISION_FLOAT8 && trains ? gradients : DT_F32,
        .numerics = {.tf32 = c->plan.dtype == PRECISION_TFLOAT32,
                     .deterministic = c->plan.deterministic,
                     .portable = !c->plan.hopper},
        .ranks = ranks_of(kind, c),
        .overlap = c->ranks.overlap == OVERLAP_NONE        ? SHARD_NONE
                   : c->ranks.overlap == OVERLAP_PARAMETER ? SHARD_PARAMETER
                                                           : SHARD_BUCKET,
        .bucket_elements = shard_bucket_elements(c),
        .reduce = shards_reduce_bf16(c) ? DT_BF16 : DT_F32,
        .zero = shards_state(c),
        .units = units_of(kind, c, m),
        .packing = packing,
        .kernels = kernels};
}

/* The gradient of the loss, 1 / gradient_accumulation_steps, that starts the backward pass. */
static value first_gradient(struct graph *g, const struct config *c)
{
    g->phase = PHASE_BACKWARD;
    struct graph_scope top = graph_enter(g, "loss", -1);
    double share = 1.0 / (double)c->train.gradient_accumulation_steps;
    value dloss = g_fill(g, type_scalar(DT_F32), share);
    graph_leave(g, top);
    return dloss;
}

static value weight_at(const struct graph *g, int64_t offset)
{
    for (int id = 0; id < g->nodes; id++) {
        const struct node *n = &g->node[id];
        if (n->op == OP_LEAF && n->attr.leaf.storage == STORAGE_WEIGHTS &&
            n->attr.leaf.offset == offset)
            return n->out[0];
    }
    return (value){0};
}

/* The weight leaves in the order of the parameters; the pass `join` joins some. */
static enum status weights_of(const struct graph *g, const struct model *m, value *ret, int *ret_n)
{
    int64_t end = 0;
    *ret_n = 0;
    for (int i = 0; i < m->parameters; i++) {
        const struct parameter *p = &m->parameter[i];
        value v = weight_at(g, p->offset);
        if (v.i) {
            ret[(*ret_n)++] = v;
            end = p->offset + type_elements(graph_type(g, v));
        } else if (!i || p->offset + type_elements(&p->type) > end) {
            return fail(ST_USAGE, "the loss does not depend on %s", p->name);
        }
    }
    return ST_OK;
}

/* Stores every parameter's gradient in the gradient range, or adds it if `accumulate`. */
static enum status differentiate(struct graph *g, const struct config *c, const struct model *m,
                                 value loss, bool accumulate)
{
    value *wrt = ARENA_NEW(g->arena, value, m->parameters);
    value *gradient = ARENA_NEW(g->arena, value, m->parameters);
    int n;
    TRY(weights_of(g, m, wrt, &n));
    value dloss = first_gradient(g, c);
    TRY(graph_differentiate(g, loss, dloss, n, wrt, gradient));
    struct graph_scope top = {g->scope, g->layer};
    for (int i = 0; i < n; i++) {
        const struct node *w = graph_producer(g, wrt[i]);
        const char *name = w->scope;
        value leaf =
            g_leaf(g, STORAGE_GRADIENTS, name, *graph_type(g, wrt[i]), w->attr.leaf.offset);
        g->scope = name;
        if (accumulate)
            g_accumulate(g, leaf, gradient[i]);
        else
            g_store(g, leaf, gradient[i]);
        graph_leave(g, top);
    }
    return graph_status(g);
}

/* For a model without parameters: the gradient of its random input. */
static enum status differentiate_input(struct graph *g, const struct config *c, value loss)
{
    value x = graph_find_leaf(g, STORAGE_RANDOM, "x"), dx;
    value dloss = first_gradient(g, c);
    TRY(graph_differentiate(g, loss, dloss, 1, &x, &dx));
    graph_output(g, "dx", dx);
    return graph_status(g);
}

static enum status check_logits(const struct model *m, enum graph_kind kind)
{
    if (m->def->logits) return ST_OK;
    return fail(ST_UNSUPPORTED, "model = %s cannot generate text: it has no graph %s",
                model_words[m->config.kind], graph_kind_name(kind));
}

static enum status forward_graph(enum graph_kind kind, const struct config *c,
                                 const struct model *m, const struct pass_packing *packing,
                                 struct graph *g, value *ret_loss)
{
    int64_t B = c->data.batch_size, T = m->config.block_size;
    switch (kind) {
    case GRAPH_MICRO:
    case GRAPH_MICRO_MORE:
    case GRAPH_MICRO_LAST:
    case GRAPH_EVAL:
        *ret_loss = m->def->loss(m, g, B, T, kind == GRAPH_EVAL ? MODEL_EVAL : MODEL_TRAIN);
        graph_output(g, "loss", *ret_loss);
        break;
    case GRAPH_LOGITS:
        TRY(check_logits(m, kind));
        graph_output(g, "logits", m->def->logits(m, g, 1, T, MODEL_EVAL));
        break;
    case GRAPH_DECODE:
        TRY(check_logits(m, kind));
        graph_output(g, "logits", m->def->logits(m, g, 1, 1, MODEL_CACHED));
        break;
    case GRAPH_UPDATE:
        optimizer_update(g, m, c, optimizer_of(c));
        copies_pack(g, c, m, packing);
        break;
    case GRAPH_REFRESH:
        copies_refresh(g, c, m, packing);
        break;
    case GRAPH_COUNT:
        break;
    }
    return graph_status(g);
}

static enum status fail_unknown_pass(const char *name)
{
    struct str known = {0};
    for (const struct pass *p = passes; p->name; p++) str_printf(&known, ", %s", p->name);
    enum status st =
        fail(ST_USAGE, "there is no pass %s; the passes are model%s", name, str_text(&known));
    str_release(&known);
    return st;
}

enum status program_graph(enum graph_kind kind, const struct config *c, const struct model *m,
                          const struct pass_packing *packing, const struct pass_kernels *kernels,
                          const char *last, struct graph *ret_g, struct arena *a)
{
    struct pass_options o = options_of(kind, c, m, packing, kernels);
    struct graph g;
    value loss = {0};
    graph_init(&g, a);
    TRY(forward_graph(kind, c, m, packing, &g, &loss));
    TRY(graph_verify(&g));
    const struct pass *stop = last ? pass_find(last) : NULL;
    if (last && !stop && strcmp(last, "model") != 0) return fail_unknown_pass(last);
    if (last && !stop) {
        *ret_g = g;
        return ST_OK;
    }
    TRY(passes_run(BEFORE_GRADIENT, &g, &o, last));
    bool go_on = !stop || stop->time != BEFORE_GRADIENT;
    if (go_on && loss.i && kind != GRAPH_EVAL) {
        loss = graph_find_output(&g, "loss");
        /* With sharded weights, gradients are accumulated after the sum over the ranks. */
        bool accumulate = kind != GRAPH_MICRO && !o.units.n;
        TRY(m->parameters ? differentiate(&g, c, m, loss, accumulate)
                          : differentiate_input(&g, c, loss));
        TRY(graph_verify(&g));
    }
    if (go_on) TRY(passes_run(AFTER_GRADIENT, &g, &o, last));
    *ret_g = g;
    return ST_OK;
}

/* Tells the passes whether a fused operator is faster on the target. */
struct fusion_check {
    const struct program *program;
    struct tuning_lookups *lookups;
};

static bool kernel_is_faster(const void *user, const struct node *n, const struct type *in,
                             const struct type *out)
{
    const struct fusion_check *g = user;
    const struct backend *b = g->program->target->backend;
    struct kernel_call call = {.attr = &n->attr,
                               .numerics = n->numerics,
                               .n_in = n->n_in,
                               .n_out = n->n_out,
                               .target = g->program->target,
                               .tuning = g->program->tuning,
                               .lookups = g->lookups};
    for (int i = 0; i < n->n_in; i++) call.in_type[i] = in[i];
    for (int i = 0; i < n->n_out; i++) call.out_type[i] = out[i];
    return b->kernels.fusion_pays && b->kernels.fusion_pays((int)n->op, &call);
}

static void warn_if_no_float8(const struct program *p, enum graph_kind kind)
{
    if (kind != GRAPH_MICRO || p->config->plan.dtype != PRECISION_FLOAT8) return;
    for (int id = 0; id < p->graph[kind].nodes; id++)
        if (p->graph[kind].node[id].op == OP_MATMUL_SCALED) return;
    log_warning(
        "dtype=float8 has no effect, all matmuls stay in bfloat16: float8 needs matrix sizes, and "
        "batch_size times block_size, that are multiples of 16");
}

static enum status build_graph(struct program *p, enum graph_kind kind, const char *last,
                               struct arena *a)
{
    struct fusion_check g = {p, &p->lookups};
    struct pass_kernels kernels = {kernel_is_faster, &g};
    return program_graph(kind, p->config, &p->model, p->packing, &kernels, last, &p->graph[kind],
                         a);
}

static enum status build(struct program *p, enum graph_kind kind, struct arena *a)
{
    const struct config_plan *c = &p->config->plan;
    struct plan_options o = {
        .no_reuse = !c->reuse, .poison = c->poison, .tuning = p->tuning, .lookups = &p->lookups};
    struct storage_blocks storage = {.backend = p->target->backend};
    TRY(build_graph(p, kind, NULL, a));
    warn_if_no_float8(p, kind);
    TRY(plan_build(&p->plan[kind], &p->graph[kind], p->target, &o, a));
    p->built[kind] = true;
    storage_reserve(&storage, &p->plan[kind]);
    for (int i = 0; i < STORAGE_COUNT; i++)
        if (p->bytes[i] < storage.bytes[i]) p->bytes[i] = storage.bytes[i];
    return ST_OK;
}

/* Enlarges unsharded ranges to the padded model size, because some code writes whole ranges. */
static void reserve_ranges(struct program *p)
{
    for (int i = STORAGE_WEIGHTS; i <= STORAGE_REDUCED; i++) {
        enum dtype dtype = i >= STORAGE_COPY ? DT_BF16 : DT_F32;
        bool state = i == STORAGE_MOMENT1 || i == STORAGE_MOMENT2;
        if (state ? shards_state(p->config) : shards_weights(p->config)) continue;
        int64_t unsharded = p->model.elements * dtype_size(dtype);
        if (p->bytes[i] && p->bytes[i] < unsharded) p->bytes[i] = unsharded;
    }
}

static const unsigned many_rows =
    1u << GRAPH_MICRO | 1u << GRAPH_MICRO_MORE | 1u << GRAPH_MICRO_LAST | 1u << GRAPH_EVAL;

/* Checks the configuration and sets the fields that all graphs use. */
static enum status begin(struct program *p, const struct config *c, int64_t vocab,
                         const struct target *target, const struct tuning *tuning, unsigned kinds,
                         struct arena *a)
{
    struct target *kept = ARENA_NEW(a, struct target, 1);
    *kept = *target;
    *p = (struct program){.config = c, .target = kept, .tuning = tuning, .lookups = {.arena = a}};
    TRY(device_check(c, target->backend, target->backend->name));
    TRY(device_check_type(c, target));
    model_init(&p->model, &c->model, vocab, (uint32_t)c->train.seed, a);
    if (shards_weights(c)) model_cut(&p->model, (int)c->ranks.count, a);
    if (kinds & many_rows) p->packing = copies_packing(c, &p->model, kept, a);
    if (kinds & many_rows && c->plan.pack_weights == PACKING_TRUE && !p->packing)
        return fail(ST_UNSUPPORTED,
                    "pack_weights=true: this device has no kernel that packs weights (oneDNN has; "
                    "`strobe info` shows whether it is used); use pack_weights=auto");
    return ST_OK;
}

enum status program_compile(struct program *p, const struct config *c, int64_t vocab,
                            const struct target *target, const struct tuning *tuning,
                            unsigned kinds, struct arena *a)
{
    TRY(begin(p, c, vocab, target, tuning, kinds, a));
    if (p->packing || copies_bf16(c)) kinds |= 1u << GRAPH_REFRESH;
    for (int kind = 0; kind < GRAPH_COUNT; kind++)
        if (kinds >> kind & 1) TRY(build(p, (enum graph_kind)kind, a));
    reserve_ranges(p);
    if (p->built[GRAPH_MICRO] && p->built[GRAPH_UPDATE])
        p->bytes[STORAGE_STAGED] = sequence_step_bytes(p);
    return ST_OK;
}

enum status program_compile_to(struct program *p, const struct config *c, int64_t vocab,
                               const struct target *target, const struct tuning *tuning,
                               enum graph_kind kind, const char *last, struct arena *a)
{
    TRY(begin(p, c, vocab, target, tuning, many_rows, a));
    return build_graph(p, kind, last, a);
}

int64_t program_bytes(const struct program *p)
{
    int64_t sum = 0;
    for (int i = 0; i < STORAGE_COUNT; i++) sum += p->bytes[i];
    return sum;
}

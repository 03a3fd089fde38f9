#include "engine/facts.h"

#include "base/str.h"
#include "graph/attr.h"

static void add_step(struct hash *h, const struct plan *p, int id)
{
    const struct step *step = &p->step[id];
    const struct node *n = &p->graph->node[id];
    struct str s = {0};
    char type[TYPE_TEXT];
    str_printf(&s, "%s %s", op_def(n->op)->name, step->kernel ? step->kernel->variant : "-");
    attr_print(n->op, &n->attr, &n->numerics, &s);
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        value v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        const struct span *at = &p->span[v.i];
        str_printf(&s, " %s %d+%lld", type_text(type, graph_type(p->graph, v)), (int)at->storage,
                   (long long)at->offset);
    }
    str_printf(&s, " scratch %lld+%lld\n", (long long)step->scratch_offset,
               (long long)step->scratch_bytes);
    hash_add(h, str_text(&s), s.len);
    str_release(&s);
}

int64_t runs_per_step(const struct config *c, enum graph_kind kind)
{
    int64_t runs = kind == GRAPH_UPDATE;
    for (int64_t i = 0; i < micro_steps_of(c); i++) runs += micro_step_kind(c, i) == kind;
    return runs;
}

static void hash_work(const struct program *p, char ret[HASH_HEX])
{
    struct hash *h = hash_open();
    for (int kind = 0; kind < GRAPH_COUNT; kind++) {
        int64_t runs = runs_per_step(p->config, (enum graph_kind)kind);
        if (!p->built[kind] || !runs) continue;
        hash_add(h, &runs, sizeof runs);
        for (int id = 0; id < p->plan[kind].steps; id++) add_step(h, &p->plan[kind], id);
    }
    bool replays = p->config->plan.replay == REPLAY_TRUE;
    hash_add(h, &replays, sizeof replays);
    hash_close(h, ret);
}

struct facts facts_of(const struct program *program)
{
    const struct config *c = program->config;
    const int64_t *b = program->bytes;
    int64_t sequences = c->train.gradient_accumulation_steps * c->data.batch_size;
    struct facts f = {
        .unit = program->model.def->unit,
        .parameters = (double)model_count(&program->model, false),
        .parameters_all = (double)model_count(&program->model, true),
        .sequences = (double)sequences,
        .tokens = (double)(sequences * c->model.block_size),
        .weights = (double)b[STORAGE_WEIGHTS],
        .gradients = (double)(b[STORAGE_GRADIENTS] + b[STORAGE_REDUCED]),
        .optimizer = (double)(b[STORAGE_MOMENT1] + b[STORAGE_MOMENT2]),
        .copies = (double)(b[STORAGE_COPY] + b[STORAGE_PACKED] + b[STORAGE_AMAX]),
        .magnitudes = (double)b[STORAGE_AMAX],
        .inputs = (double)(b[STORAGE_STAGED] + b[STORAGE_RANDOM]),
        .random = (double)b[STORAGE_RANDOM],
        .activations = (double)b[STORAGE_ARENA],
        .total = (double)program_bytes(program),
    };
    hash_work(program, f.work);
    for (int kind = 0; kind < GRAPH_COUNT; kind++) {
        if (!program->built[kind]) continue;
        struct cost cost = plan_cost(&program->plan[kind]);
        int64_t runs = runs_per_step(c, (enum graph_kind)kind);
        f.kernels += (double)(runs * plan_kernels(&program->plan[kind]));
        f.flops += (double)runs * cost.flops;
        f.bytes += (double)runs * cost.bytes;
    }
    return f;
}

void facts_print(const struct facts *f, struct str *s)
{
    char a[32], b[32], c[32], d[32];
    str_printf(s, "parameters   %s", str_thousands(a, (int64_t)f->parameters));
    if (f->parameters_all > f->parameters)
        str_printf(s, " (%s with positions)", str_thousands(b, (int64_t)f->parameters_all));
    str_printf(s, "\na step       %s %s, %s kernels, %s, %s read and written\n",
               str_thousands(a, (int64_t)f->tokens), f->unit, str_thousands(b, (int64_t)f->kernels),
               str_flops(d, f->flops), str_bytes(c, f->bytes));
    str_printf(s, "memory       weights %s, gradients %s, optimizer %s", str_bytes(a, f->weights),
               str_bytes(b, f->gradients), str_bytes(c, f->optimizer));
    double copies = f->copies - f->magnitudes;
    if (copies > 0) str_printf(s, ", copies of weights %s", str_bytes(a, copies));
    if (f->magnitudes > 0) str_printf(s, ", magnitudes %s", str_bytes(a, f->magnitudes));
    if (f->random > 0) str_printf(s, ", random inputs %s", str_bytes(a, f->random));
    str_printf(s, ", activations %s: %s\n", str_bytes(a, f->activations), str_bytes(b, f->total));
}

json_t *facts_json(const struct facts *f)
{
    return record_add(json_pack("{s:i}", "v", 1), facts_record, f);
}

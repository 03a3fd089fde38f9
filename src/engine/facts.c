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
    const int64_t *bytes = program->bytes;
    int64_t micro_steps = c->train.gradient_accumulation_steps;
    struct facts f = {
        .unit = program->model.def->unit,
        .parameters = model_count(&program->model, false),
        .parameters_all = model_count(&program->model, true),
        .sequences = micro_steps * c->data.batch_size,
        .tokens = micro_steps * c->data.batch_size * c->model.block_size,
        .weights = bytes[STORAGE_WEIGHTS],
        .gradients = bytes[STORAGE_GRADIENTS] + bytes[STORAGE_REDUCED],
        .optimizer = bytes[STORAGE_MOMENT1] + bytes[STORAGE_MOMENT2],
        .copies = bytes[STORAGE_COPY] + bytes[STORAGE_PACKED] + bytes[STORAGE_AMAX],
        .magnitudes = bytes[STORAGE_AMAX],
        .inputs = bytes[STORAGE_STAGED] + bytes[STORAGE_RANDOM],
        .random = bytes[STORAGE_RANDOM],
        .activations = bytes[STORAGE_ARENA],
        .total = program_bytes(program),
    };
    hash_work(program, f.work);
    for (int kind = 0; kind < GRAPH_COUNT; kind++) {
        if (!program->built[kind]) continue;
        struct cost cost = plan_cost(&program->plan[kind]);
        int64_t runs = runs_per_step(c, (enum graph_kind)kind);
        f.kernels += runs * plan_kernels(&program->plan[kind]);
        f.flops += (double)runs * cost.flops;
        f.bytes += (double)runs * cost.bytes;
    }
    return f;
}

void facts_print(const struct facts *f, struct str *s)
{
    char a[32], b[32], c[32], d[32];
    str_printf(s, "parameters   %s", str_thousands(a, f->parameters));
    if (f->parameters_all > f->parameters)
        str_printf(s, " (%s with positions)", str_thousands(b, f->parameters_all));
    str_printf(s, "\na step       %s %s, %s kernels, %s, %s read and written\n",
               str_thousands(a, f->tokens), f->unit, str_thousands(b, f->kernels),
               str_flops(d, f->flops), str_bytes(c, f->bytes));
    str_printf(s, "memory       weights %s, gradients %s, optimizer %s",
               str_bytes(a, (double)f->weights), str_bytes(b, (double)f->gradients),
               str_bytes(c, (double)f->optimizer));
    int64_t copies = f->copies - f->magnitudes;
    if (copies) str_printf(s, ", copies of weights %s", str_bytes(a, (double)copies));
    if (f->magnitudes) str_printf(s, ", magnitudes %s", str_bytes(a, (double)f->magnitudes));
    if (f->random) str_printf(s, ", random inputs %s", str_bytes(a, (double)f->random));
    str_printf(s, ", activations %s: %s\n", str_bytes(a, (double)f->activations),
               str_bytes(b, (double)f->total));
}

json_t *facts_memory(const struct facts *f)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "weights", (json_int_t)f->weights,
                     "gradients", (json_int_t)f->gradients, "optimizer", (json_int_t)f->optimizer,
                     "copies", (json_int_t)f->copies, "inputs", (json_int_t)f->inputs,
                     "activations", (json_int_t)f->activations, "total", (json_int_t)f->total);
}

json_t *facts_json(const struct facts *f)
{
    json_t *object = json_pack(
        "{s:i, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:s, s:o}", "v", 1, "parameters",
        (json_int_t)f->parameters, "parameters_all", (json_int_t)f->parameters_all,
        "sequences_per_step", (json_int_t)f->sequences, "tokens_per_step", (json_int_t)f->tokens,
        "kernels_per_step", (json_int_t)f->kernels, "flops_per_step", f->flops, "bytes_per_step",
        f->bytes, "plan_sha256", f->work, "memory", facts_memory(f));
    BUG_IF(!object, "cannot encode the facts as JSON");
    return object;
}

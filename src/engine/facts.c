#include "engine/facts.h"

#include "base/str.h"

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
        .gradients = bytes[STORAGE_GRADIENTS],
        .optimizer = bytes[STORAGE_MOMENT1] + bytes[STORAGE_MOMENT2],
        .copies = bytes[STORAGE_COPY] + bytes[STORAGE_PACKED] + bytes[STORAGE_AMAX],
        .magnitudes = bytes[STORAGE_AMAX],
        .inputs = bytes[STORAGE_STAGED] + bytes[STORAGE_RANDOM],
        .random = bytes[STORAGE_RANDOM],
        .activations = bytes[STORAGE_ARENA],
        .total = program_bytes(program),
    };
    const int64_t runs[GRAPH_COUNT] = {
        [GRAPH_MICRO] = 1, [GRAPH_MICRO_MORE] = micro_steps - 1, [GRAPH_UPDATE] = 1};
    for (int kind = 0; kind < GRAPH_COUNT; kind++) {
        if (!program->built[kind]) continue;
        struct cost cost = plan_cost(&program->plan[kind]);
        f.kernels += runs[kind] * plan_kernels(&program->plan[kind]);
        f.flops += (double)runs[kind] * cost.flops;
        f.bytes += (double)runs[kind] * cost.bytes;
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
    json_t *object = json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:o}", "v", 1,
                               "parameters", (json_int_t)f->parameters, "parameters_all",
                               (json_int_t)f->parameters_all, "sequences_per_step",
                               (json_int_t)f->sequences, "tokens_per_step", (json_int_t)f->tokens,
                               "kernels_per_step", (json_int_t)f->kernels, "flops_per_step",
                               f->flops, "bytes_per_step", f->bytes, "memory", facts_memory(f));
    BUG_IF(!object, "cannot encode the facts as JSON");
    return object;
}

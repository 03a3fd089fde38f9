/* strobe plan CONFIG: prints the kernels of a training step in order, without running them. */
#include "base/json.h"
#include "cli/command.h"
#include "cli/planned.h"
#include "engine/facts.h"
#include "engine/tune.h"
#include "present/table_form.h"
#include "view/launches_view.h"

#include <jansson.h>

static void print_head(struct planned *p, struct str *s)
{
    struct facts f = facts_of(&p->program);
    str_printf(s, "plan         %s\n", planned_words(p));
    facts_print(&f, s);
}

static void print_text(struct planned *p, bool summary, struct str *s)
{
    print_head(p, s);
    for (int kind = 0; kind < GRAPH_COUNT && !summary; kind++) {
        if (!p->program.built[kind]) continue;
        long long runs = runs_per_step(&p->config, (enum graph_kind)kind);
        str_printf(s, "\n# %s, ", graph_kind_name((enum graph_kind)kind));
        str_printf(s,
                   runs == 0   ? "once, after weights were initialized or loaded\n"
                   : runs == 1 ? "once a step\n"
                               : "%lld times a step\n",
                   runs);
        plan_print(&p->program.plan[kind], s);
    }
    if (!summary) tune_print(&p->program, s);
}

static json_t *step_json(const struct plan *p, int id)
{
    const struct step *step = &p->step[id];
    const struct node *n = &p->graph->node[id];
    char type[TYPE_TEXT];
    return json_pack("{s:i, s:s, s:s, s:s, s:i, s:s, s:s, s:f, s:f, s:I}", "step", id, "op",
                     op_def(n->op)->name, "kernel", step->kernel->variant, "phase",
                     phase_name(n->phase), "layer", n->layer, "scope", n->scope, "type",
                     type_text(type, &step->call.out_type[0]), "flops", step->cost.flops, "bytes",
                     step->cost.bytes, "scratch", (json_int_t)step->scratch_bytes);
}

static json_t *plan_json(const struct plan *p, const char *kind, int64_t runs)
{
    json_t *steps = json_array();
    for (int id = 0; id < p->steps; id++)
        if (p->step[id].kernel) json_array_append_new(steps, step_json(p, id));
    return json_pack("{s:s, s:I, s:i, s:I, s:o}", "kind", kind, "runs_per_step", (json_int_t)runs,
                     "kernels", plan_kernels(p), "arena_bytes", (json_int_t)p->arena_bytes, "steps",
                     steps);
}

static void print_json(const struct planned *p, struct str *s)
{
    struct facts f = facts_of(&p->program);
    json_t *all = facts_json(&f), *plans = json_array();
    for (int kind = 0; kind < GRAPH_COUNT; kind++)
        if (p->program.built[kind])
            json_array_append_new(
                plans, plan_json(&p->program.plan[kind], graph_kind_name((enum graph_kind)kind),
                                 runs_per_step(&p->config, (enum graph_kind)kind)));
    json_object_set_new(all, "vocabulary", json_integer(p->vocab));
    json_object_set_new(all, "plans", plans);
    json_object_set_new(all, "tuning", tune_json(&p->program));
    json_print_with(all, JSON_COMPACT, s);
}

static enum status print_occupancy(struct planned *p, bool json, struct str *s)
{
    struct step_launches all;
    struct sheet sheet;
    struct table_form form = {0};
    TRY(step_launches_of(&p->program, &all, p->arena));
    launches_sheet(&all, p->program.target, &sheet, p->arena);
    if (json) {
        json_print(sheet_json(&sheet), s);
    } else {
        print_head(p, s);
        str_append(s, "\n");
        table_form_sheet(&form, &sheet, s);
    }
    return ST_OK;
}

enum status cmd_plan(int argc, char **argv, struct arena *a)
{
    const char *backend = NULL, *tuning = NULL;
    bool json = false, summary = false, occupancy = false;
    int64_t vocab = 0;
    const struct opt options[] = {
        {"summary", OPT_FLAG, &summary, NULL, "leave out the tables of kernels"},
        {"occupancy", OPT_FLAG, &occupancy, NULL,
         "instead, each kernel of a GPU's step once: its launches, registers, shared memory, and "
         "the "
         "blocks and warps that a multiprocessor holds (--device=cuda, also without a GPU)"},
        {"backend", OPT_TEXT, &backend, "NAME",
         "plan for that backend (that of the device; `null` has every operator and runs nothing)"},
        {"json", OPT_FLAG, &json, NULL, "print JSON"},
        {"vocab", OPT_INT, &vocab, "N", "size of the vocabulary (default: the data set's)"},
        PLANNED_TUNING(&tuning),
        {0},
    };
    struct planned p;
    struct str s = {0};
    TRY(opt_parse(options, &argc, argv, config_is_key));
    if (occupancy && summary)
        return fail(ST_USAGE, "--occupancy and --summary exclude each other; leave one out");
    TRY(planned_read(&p, argc, argv, vocab, tuning, a));
    TRY(planned_training_plans(&p, backend));
    if (occupancy)
        TRY(print_occupancy(&p, json, &s));
    else if (json)
        print_json(&p, &s);
    else
        print_text(&p, summary, &s);
    command_print(&s);
    return ST_OK;
}

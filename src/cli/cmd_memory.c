/* strobe memory CONFIG: where the bytes of training go, before anything runs. */
#include "backend/backend.h"
#include "base/opt.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/planned.h"
#include "plan/footprint.h"
#include "train/facts.h"
#include "train/fit.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/* The plan that needs most of the arena: it decides how large the arena is. */
static enum graph_kind largest(const struct engine *e)
{
    enum graph_kind most = GRAPH_MICRO;
    for (int kind = 0; kind < GRAPH_COUNT; kind++)
        if (e->built[kind] && e->plan[kind].arena_bytes > e->plan[most].arena_bytes)
            most = (enum graph_kind)kind;
    return most;
}

static void print_row(struct str *s, const char *what, int64_t bytes, int64_t of, const char *note)
{
    char text[32];
    str_printf(s, "%-24s %12s %6.1f %%%s%s\n", what, str_bytes(text, (double)bytes),
               100.0 * (double)bytes / (double)of, *note ? "  " : "", note);
}

static void print_storage(const struct planned *p, const struct facts *f, struct str *s)
{
    const struct engine *e = &p->engine;
    int64_t cache = e->storage.bytes[STORAGE_CACHE];
    str_printf(s, "%-24s %12s %8s\n", "memory of training", "bytes", "share");
    print_row(s, "weights", f->weights, f->total, "");
    print_row(s, "gradients", f->gradients, f->total, "");
    print_row(s, "optimizer", f->optimizer, f->total, "two moments of AdamW");
    if (f->copies)
        print_row(s, "copies of weights", f->copies, f->total, "what products read: bf16, packed");
    print_row(s, "inputs", f->inputs, f->total, "of a step, on their way to its runs");
    print_row(s, "activations", f->activations, f->total, "one block, in which values come and go");
    if (cache) print_row(s, "cache", cache, f->total, "");
    print_row(s, "total", f->total, f->total, "");
}

static void print_footprint(const struct plan *p, enum graph_kind kind, const struct footprint *f,
                            struct str *s)
{
    const struct node *n = &p->graph->node[f->step];
    str_printf(s, "\nactivations when most are alive: graph %s, step %d of %d, %s %s\n",
               graph_kind_name(kind), f->step, p->steps, op_def(n->op)->name, n->scope);
    for (int i = 0; i < MEMORY_UNUSED; i++) {
        if (!f->part[i]) continue;
        print_row(s, memory_part_name((enum memory_part)i), f->part[i], p->arena_bytes, "");
    }
    print_row(s, "between them", f->part[MEMORY_UNUSED], p->arena_bytes,
              "what placing them in one block costs");
    print_row(s, "total", p->arena_bytes, p->arena_bytes, "");
    if (f->kept_ops) str_printf(s, "\nsaved for backward, by the operator that made it\n");
    for (int i = 0; i < f->kept_ops; i++) {
        char note[64];
        snprintf(note, sizeof note, "%d value%s", f->kept[i].values,
                 f->kept[i].values == 1 ? "" : "s");
        print_row(s, op_def(f->kept[i].op)->name, f->kept[i].bytes, f->part[MEMORY_SAVED], note);
    }
}

static void print_text(struct planned *p, int64_t rows, struct str *s)
{
    struct facts f = facts_of(&p->engine);
    enum graph_kind kind = largest(&p->engine);
    const struct plan *most = &p->engine.plan[kind];
    struct footprint foot;
    plan_footprint(most, &foot);
    str_printf(s, "plan         %s\n\n", planned_words(p));
    print_storage(p, &f, s);
    print_footprint(most, kind, &foot, s);
    str_append(s, "\n");
    plan_print_memory(most, (int)rows, s);
}

static json_t *map_json(const struct plan *p, int step)
{
    struct arena scratch = {0};
    struct stays stays;
    json_t *map = json_array();
    plan_stays(p, &stays, &scratch);
    for (int i = 0; i < stays.n; i++) {
        const struct stay *stay = &stays.stay[i];
        if (step < stay->first || stay->last < step) continue;
        const struct node *by = graph_producer(p->graph, stay->v);
        const struct span *span = &p->span[stay->v.i];
        char type[TYPE_TEXT];
        json_array_append_new(map, json_pack("{s:I, s:I, s:i, s:i, s:s, s:s, s:s, s:i}", "bytes",
                                             (json_int_t)span->bytes, "offset",
                                             (json_int_t)span->offset, "first", span->first, "last",
                                             span->last, "op", op_def(by->op)->name, "type",
                                             type_text(type, graph_type(p->graph, stay->v)),
                                             "scope", by->scope, "layer", by->layer));
    }
    arena_release(&scratch);
    return map;
}

static void print_json(const struct planned *p, struct str *s)
{
    struct facts f = facts_of(&p->engine);
    enum graph_kind kind = largest(&p->engine);
    const struct plan *most = &p->engine.plan[kind];
    struct footprint foot;
    plan_footprint(most, &foot);
    json_t *parts = json_object(), *kept = json_array();
    for (int i = 0; i < MEMORY_UNUSED; i++)
        json_object_set_new(parts, memory_part_id((enum memory_part)i), json_integer(foot.part[i]));
    for (int i = 0; i < foot.kept_ops; i++)
        json_array_append_new(
            kept, json_pack("{s:s, s:i, s:I}", "op", op_def(foot.kept[i].op)->name, "values",
                            foot.kept[i].values, "bytes", (json_int_t)foot.kept[i].bytes));
    json_t *peak =
        json_pack("{s:s, s:i, s:s, s:s, s:I, s:o, s:o, s:o}", "kind", graph_kind_name(kind), "step",
                  foot.step, "op", op_def(most->graph->node[foot.step].op)->name, "scope",
                  most->graph->node[foot.step].scope, "bytes", (json_int_t)foot.bytes, "parts",
                  parts, "kept", kept, "map", map_json(most, foot.step));
    json_t *all = json_pack("{s:i, s:I, s:o, s:o}", "v", 1, "vocabulary", (json_int_t)p->vocab,
                            "memory", facts_memory(&f), "peak", peak);
    char *text = json_dumps(all, JSON_COMPACT);
    BUG_IF(!text, "the memory map is no JSON");
    str_printf(s, "%s\n", text);
    free(text);
    json_decref(all);
}

/* "batch_size = 97 is the largest that fits into 8 GiB" */
static enum status print_fit(struct planned *p, double gib, bool json, struct str *s)
{
    int64_t batch, bytes = (int64_t)(gib * (1 << 30));
    TRY(fit_batch(&p->config, p->vocab, planned_kinds(&p->config), p->engine.backend->name, bytes,
                  &batch));
    if (json)
        str_printf(s, "{\"v\":1,\"bytes\":%lld,\"batch_size\":%lld}\n", (long long)bytes,
                   (long long)batch);
    else if (batch)
        str_printf(s, "batch_size = %lld is the largest that fits into %g GiB\n", (long long)batch,
                   gib);
    else
        str_printf(s, "not even batch_size = 1 fits into %g GiB\n", gib);
    return ST_OK;
}

enum status cmd_memory(int argc, char **argv)
{
    const char *backend = NULL;
    bool json = false;
    int64_t vocab = 0, rows = 20;
    double fit = 0;
    const struct opt options[] = {
        {"rows", OPT_INT, &rows, "N", "of the map: the N largest values (20)"},
        {"fit", OPT_REAL, &fit, "GIB",
         "only: the largest batch_size that fits into so much memory"},
        {"backend", OPT_TEXT, &backend, "NAME", "whose kernels (those that would train)"},
        {"json", OPT_FLAG, &json, NULL, "for programs"},
        {"vocab", OPT_INT, &vocab, "N", "size of the vocabulary (that of the data set)"},
        {0},
    };
    struct planned p;
    struct str s = {0};
    enum status st = ST_OK;
    TRY(opt_parse(options, &argc, argv, config_is_key));
    if (!(fit >= 0 && fit <= 1e6))
        return fail(ST_USAGE, "--fit takes a size in GiB, up to 1000000");
    if (rows < 0 || rows > 1000000) return fail(ST_USAGE, "--rows is 0 to 1000000");
    TRY(planned_read(&p, argc, argv, vocab));
    TRY_OUT(st, planned_train(&p, backend));
    if (fit > 0)
        TRY_OUT(st, print_fit(&p, fit, json, &s));
    else if (json)
        print_json(&p, &s);
    else
        print_text(&p, rows, &s);
    fputs(str_text(&s), stdout);
out:
    str_release(&s);
    planned_release(&p);
    return st;
}

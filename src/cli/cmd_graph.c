/* strobe graph CONFIG: prints the graph of a step, after all passes or up to one of them. */
#include "backend/backend.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/planned.h"

#include <jansson.h>
#include <string.h>

/* "61 nodes: 12 STORE, 10 MATMUL, ...": most frequent first. */
static void print_counts(const struct graph *g, struct str *s)
{
    int count[OP_COUNT] = {0}, left = g->nodes;
    for (int id = 0; id < g->nodes; id++) count[g->node[id].op]++;
    str_printf(s, "%d nodes:", g->nodes);
    while (left > 0) {
        int most = 0;
        for (int op = 1; op < OP_COUNT; op++)
            if (count[op] > count[most]) most = op;
        left -= count[most];
        str_printf(s, " %d %s%s", count[most], op_def((enum op)most)->name, left ? "," : "\n");
        count[most] = 0;
    }
}

static json_t *value_json(const struct graph *g, value v)
{
    const struct type *t = graph_type(g, v);
    json_t *shape = json_array();
    for (int i = 0; i < t->rank; i++) json_array_append_new(shape, json_integer(t->dim[i]));
    return json_pack("{s:i, s:s, s:o}", "value", v.i, "type", dtype_name(t->dtype), "shape", shape);
}

static json_t *node_json(const struct graph *g, int id)
{
    const struct node *n = &g->node[id];
    struct cost cost = graph_node_cost(g, n);
    json_t *in = json_array(), *out = json_array();
    for (int i = 0; i < n->n_in; i++) json_array_append_new(in, json_integer(n->in[i].i));
    for (int i = 0; i < n->n_out; i++) json_array_append_new(out, value_json(g, n->out[i]));
    return json_pack("{s:i, s:s, s:s, s:i, s:s, s:o, s:o, s:f, s:f}", "node", id, "op",
                     op_def(n->op)->name, "phase", phase_name(n->phase), "layer", n->layer, "scope",
                     n->scope, "in", in, "out", out, "flops", cost.flops, "bytes", cost.bytes);
}

static void print_json(const struct graph *g, const char *kind, struct str *s)
{
    json_t *nodes = json_array(), *outputs = json_object();
    for (int id = 0; id < g->nodes; id++) json_array_append_new(nodes, node_json(g, id));
    for (int i = 0; i < g->outputs; i++)
        json_object_set_new(outputs, g->output[i].name, json_integer(g->output[i].v.i));
    json_t *all =
        json_pack("{s:i, s:s, s:o, s:o}", "v", 1, "kind", kind, "nodes", nodes, "outputs", outputs);
    json_print_with(all, JSON_COMPACT, s);
}

static enum status find_kind(const char *name, enum graph_kind *ret_kind)
{
    for (int kind = 0; kind < GRAPH_COUNT; kind++)
        if (!strcmp(graph_kind_name((enum graph_kind)kind), name)) {
            *ret_kind = (enum graph_kind)kind;
            return ST_OK;
        }
    struct str known = {0};
    for (int kind = 0; kind < GRAPH_COUNT; kind++)
        str_printf(&known, "%s%s", kind ? ", " : "", graph_kind_name((enum graph_kind)kind));
    enum status st =
        fail(ST_USAGE, "there is no graph %s; the graphs are %s", name, str_text(&known));
    str_release(&known);
    return st;
}

/* --- generated kernels -------------------------------------------------------------------- */

/* A generated kernel and the nodes that use it, one line each. */
struct generated {
    const char *source, *nodes;
};

struct kernels {
    struct arena *arena;
    struct generated *kernel;
    int n, capacity;
};

static void add_kernel(struct kernels *l, const char *source, const char *node)
{
    for (int i = 0; i < l->n; i++) {
        struct generated *known = &l->kernel[i];
        if (strcmp(known->source, source) != 0) continue;
        known->nodes = arena_printf(l->arena, "%s%s", known->nodes, node);
        return;
    }
    ARENA_GROW(l->arena, l->kernel, l->n, l->capacity);
    l->kernel[l->n++] = (struct generated){arena_strdup(l->arena, source), node};
}

static const char *types_text(const struct type *t, int n, struct arena *a)
{
    const char *all = "";
    char text[TYPE_TEXT];
    for (int i = 0; i < n; i++)
        all = arena_printf(a, "%s%s%s", all, i ? ", " : "", type_text(text, &t[i]));
    return all;
}

/* "// update, node 5 CHAIN clip: f32 (1) -> f32 (1), f32 (1)" */
static const char *node_line(const struct plan *p, int id, enum graph_kind kind, struct arena *a)
{
    const struct node *n = &p->graph->node[id];
    const struct kernel_call *c = &p->step[id].call;
    return arena_printf(a, "// %s, node %d %s %s: %s -> %s\n", graph_kind_name(kind), id,
                        op_def(n->op)->name, n->scope, types_text(c->in_type, c->n_in, a),
                        types_text(c->out_type, c->n_out, a));
}

static void find_kernels(struct kernels *l, const struct plan *p, enum graph_kind kind)
{
    if (!p->backend->launches) return;
    for (int id = 0; id < p->steps; id++) {
        struct str source = {0};
        const struct step *s = &p->step[id];
        if (s->kernel && p->backend->launches->generated(s->kernel, &s->call, &source))
            add_kernel(l, str_text(&source), node_line(p, id, kind, l->arena));
        str_release(&source);
    }
}

/* Each source once, after the nodes that use it; one sentence if there is none. */
static void print_generated(const struct program *p, struct str *s, struct arena *a)
{
    struct kernels l = {.arena = a};
    for (int kind = 0; kind < GRAPH_COUNT; kind++)
        if (p->built[kind]) find_kernels(&l, &p->plan[kind], (enum graph_kind)kind);
    for (int i = 0; i < l.n; i++)
        str_printf(s, "%s%s%s", i ? "\n" : "", l.kernel[i].nodes, l.kernel[i].source);
    if (!l.n)
        str_append(s, "this plan has no generated kernels; they are generated for fused pointwise "
                      "chains, on a GPU with fusion=full\n");
}

/* Prints generated kernels: of one graph, or of those of a training step. */
static enum status print_kernels(struct planned *p, bool one, enum graph_kind kind)
{
    struct str s = {0};
    TRY(one ? planned_plan(p, 1u << kind, NULL) : planned_training_plans(p, NULL));
    print_generated(&p->program, &s, p->arena);
    command_print(&s);
    return ST_OK;
}

static enum status print_graph(struct planned *p, enum graph_kind kind, const char *after, bool dot,
                               bool json)
{
    struct str s = {0};
    TRY(planned_graph(p, kind, after));
    const struct graph *g = &p->program.graph[kind];
    if (json) {
        print_json(g, graph_kind_name(kind), &s);
    } else if (dot) {
        graph_print_dot(g, &s);
    } else {
        graph_print(g, &s);
        print_counts(g, &s);
    }
    command_print(&s);
    return ST_OK;
}

enum status cmd_graph(int argc, char **argv, struct arena *a)
{
    const char *after = NULL, *kind_name = NULL;
    bool update = false, eval = false, dot = false, json = false, kernels = false;
    int64_t vocab = 0;
    const char *tuning = NULL;
    const struct opt options[] = {
        {"after", OPT_TEXT, &after, "PASS", "stop after that pass; `model`: before all passes"},
        {"kind", OPT_TEXT, &kind_name, "KIND",
         "micro, micro_more, micro_last, update, eval, logits or decode (default: micro, a "
         "training step)"},
        {"update", OPT_FLAG, &update, NULL, "short for --kind=update: clipping and the optimizer"},
        {"eval", OPT_FLAG, &eval, NULL, "short for --kind=eval: the loss only"},
        {"dot", OPT_FLAG, &dot, NULL, "for Graphviz: strobe graph CONFIG --dot | dot -Tsvg"},
        {"json", OPT_FLAG, &json, NULL, "print JSON"},
        {"kernels", OPT_FLAG, &kernels, NULL,
         "print the source of its generated kernels instead (--device=cuda); of all graphs of "
         "training if no graph is given"},
        {"vocab", OPT_INT, &vocab, "N", "size of the vocabulary (default: the data set's)"},
        PLANNED_TUNING(&tuning),
        {0},
    };
    struct planned p;
    enum graph_kind kind = GRAPH_MICRO;
    TRY(opt_parse(options, &argc, argv, config_is_key));
    bool one = update || eval || kind_name;
    if (update + eval + (kind_name != NULL) > 1)
        return fail(ST_USAGE, "give one of --kind, --update and --eval");
    if (kernels && (dot || json || after))
        return fail(ST_USAGE, "--kernels cannot be combined with --after, --dot or --json");
    TRY(find_kind(kind_name ? kind_name : update ? "update" : eval ? "eval" : "micro", &kind));
    TRY(planned_read(&p, argc, argv, vocab, tuning, a));
    return kernels ? print_kernels(&p, one, kind) : print_graph(&p, kind, after, dot, json);
}

#include "base/str.h"
#include "graph/attr.h"
#include "graph/graph.h"

static const char *const phase_names[PHASE_COUNT] = {"forward", "backward", "update"};

const char *phase_name(enum phase phase)
{
    return phase_names[phase];
}

void graph_print(const struct graph *g, struct str *s)
{
    enum phase phase = PHASE_COUNT;
    for (int id = 0; id < g->nodes; id++) {
        const struct node *n = &g->node[id];
        char type[TYPE_TEXT];
        if (n->phase != phase) {
            phase = n->phase;
            str_printf(s, "# %s\n", phase_name(phase));
        }
        str_printf(s, "%4d  ", id);
        for (int i = 0; i < n->n_out; i++) str_printf(s, "%s%%%d", i ? " " : "", n->out[i].i);
        str_printf(s, " = %s", op_def(n->op)->name);
        for (int i = 0; i < n->n_in; i++) str_printf(s, " %%%d", n->in[i].i);
        attr_print(n->op, &n->attr, &n->numerics, s);
        str_printf(s, "  %s  %s\n", type_text(type, graph_type(g, n->out[0])), n->scope);
    }
    for (int i = 0; i < g->outputs; i++)
        str_printf(s, "output %s = %%%d\n", g->output[i].name, g->output[i].v.i);
}

void graph_print_dot(const struct graph *g, struct str *s)
{
    static const char *const colors[PHASE_COUNT] = {"#dbe9f6", "#fde3cf", "#e0f0dc"};
    str_append(s, "digraph strobe {\n  rankdir=TB;\n  node [shape=box, style=filled, "
                  "fontname=\"sans-serif\", fontsize=10];\n");
    for (int id = 0; id < g->nodes; id++) {
        const struct node *n = &g->node[id];
        char type[TYPE_TEXT];
        bool leaf = n->op == OP_LEAF;
        str_printf(s, "  n%d [label=\"%s\\n%s\\n%s\", fillcolor=\"%s\"%s];\n", id,
                   op_def(n->op)->name, n->scope, type_text(type, graph_type(g, n->out[0])),
                   leaf ? "#ffffff" : colors[n->phase], leaf ? ", shape=ellipse" : "");
        for (int i = 0; i < n->n_in; i++)
            str_printf(s, "  n%d -> n%d;\n", g->info[n->in[i].i].producer, id);
    }
    for (int i = 0; i < g->outputs; i++)
        str_printf(s, "  o%d [label=\"%s\", shape=plaintext, style=\"\"];\n  n%d -> o%d;\n", i,
                   g->output[i].name, g->info[g->output[i].v.i].producer, i);
    str_append(s, "}\n");
}

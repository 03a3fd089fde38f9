#include "base/str.h"
#include "graph/chain.h"
#include "graph/graph.h"

static const char *const phase_names[PHASE_COUNT] = {"forward", "backward", "update"};
static const char *const storage_names[STORAGE_COUNT] = {
    [STORAGE_INPUT] = "input",     [STORAGE_WEIGHTS] = "weights", [STORAGE_GRADIENTS] = "gradients",
    [STORAGE_MOMENT1] = "moment1", [STORAGE_MOMENT2] = "moment2", [STORAGE_COPY] = "copy",
    [STORAGE_PACKED] = "packed",   [STORAGE_CACHE] = "cache",     [STORAGE_STAGED] = "staged",
    [STORAGE_DRAWN] = "drawn",     [STORAGE_ARENA] = "arena",     [STORAGE_AMAX] = "amax",
};

const char *phase_name(enum phase phase)
{
    return phase_names[phase];
}

/* " [SQRT OFFSET DIV]" */
static void print_chain(const struct chain *c, struct str *s)
{
    for (int k = 0; k < c->steps; k++)
        str_printf(s, "%s%s", k ? " " : " [", op_def(c->step[k].op)->name);
    str_append(s, "]");
}

static void print_attr(const struct node *n, struct str *s)
{
    const union attr *a = &n->attr;
    switch (n->op) {
    case OP_LEAF:
        str_printf(s, " [%s", storage_names[a->leaf.storage]);
        if (a->leaf.storage != STORAGE_INPUT) str_printf(s, " + %lld", (long long)a->leaf.offset);
        str_printf(s, "]");
        break;
    case OP_FILL:
    case OP_SCALE:
    case OP_OFFSET:
    case OP_AT_MOST:
    case OP_CAUSAL_MASK:
        str_printf(s, " [%.6g]", a->constant.value);
        break;
    case OP_COLUMN_MASK:
        str_printf(s, " [from %lld: %.6g]", (long long)a->column_mask.columns,
                   a->column_mask.value);
        break;
    case OP_MATMUL:
    case OP_MATMUL_SUM:
        if (a->matmul.ta || a->matmul.tb)
            str_printf(s, " [%s%s]", a->matmul.ta ? "ta" : "", a->matmul.tb ? "tb" : "");
        if (a->matmul.tf32) str_append(s, " [tf32]");
        if (a->matmul.deterministic) str_append(s, " [deterministic]");
        break;
    case OP_QUANTISE_GELU:
    case OP_QUANTISE_GELU_GRAD:
        str_printf(s, " [%s %s]", dtype_name(a->quantise.to), a->quantise.tanh ? "tanh" : "erf");
        break;
    case OP_QUANTISE_ADD_LAYERNORM:
        str_printf(s, " [%s", dtype_name(a->quantise.to));
        if (a->quantise.drop.threshold)
            str_printf(s, " drop %d/256 site %u", a->quantise.drop.threshold,
                       a->quantise.drop.site);
        str_append(s, "]");
        break;
    case OP_QUANTISE:
        str_printf(s, " [%s]", dtype_name(a->quantise.to));
        break;
    case OP_MATMUL_GELU_GRAD:
        str_printf(s, " [%s%s%s%s]", a->matmul.tb ? "tb " : "", a->matmul.tanh ? "tanh" : "erf",
                   a->matmul.tf32 ? " tf32" : "", a->matmul.portable ? " portable" : "");
        break;
    case OP_LINEAR_GELU:
        str_printf(s, " [%s%s%s]", a->linear.tanh ? "tanh" : "erf", a->linear.tf32 ? " tf32" : "",
                   a->linear.portable ? " portable" : "");
        break;
    case OP_LINEAR:
        if (a->linear.tf32) str_append(s, " [tf32]");
        if (a->linear.deterministic) str_append(s, " [deterministic]");
        break;
    case OP_GELU:
    case OP_GELU_GRAD:
        str_printf(s, " [%s]", a->gelu.tanh ? "tanh" : "erf");
        break;
    case OP_ROPE:
        str_printf(s, " [%d heads%s]", a->rope.heads, a->rope.back ? " back" : "");
        break;
    case OP_ROPE_TABLE:
        str_printf(s, " [theta %.6g]", a->rope.theta);
        break;
    case OP_DROPOUT:
    case OP_DROPOUT_MASK:
    case OP_EMBED_SUM:
        if (a->drop.threshold)
            str_printf(s, " [drop %d/256 site %u]", a->drop.threshold, a->drop.site);
        break;
    case OP_ATTENTION:
    case OP_ATTENTION_GRAD:
        str_printf(s, " [%d heads", a->attention.heads);
        if (attention_kv_heads(a) != a->attention.heads)
            str_printf(s, " over %d", a->attention.kv_heads);
        if (a->attention.causal) str_append(s, " causal");
        if (a->attention.drop.threshold)
            str_printf(s, " drop %d/256 site %u", a->attention.drop.threshold,
                       a->attention.drop.site);
        str_printf(s, "%s%s%s]", a->attention.tf32 ? " tf32" : "",
                   a->attention.deterministic ? " deterministic" : "",
                   a->attention.portable ? " portable" : "");
        break;
    case OP_ADAMW:
        str_printf(s, " [decay %.6g on %lld]", a->adamw.weight_decay,
                   (long long)a->adamw.decay_elements);
        break;
    case OP_CHAIN:
        print_chain(a->chain, s);
        break;
    default:
        break;
    }
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
        print_attr(n, s);
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

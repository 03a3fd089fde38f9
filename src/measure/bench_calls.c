/* Which calls a training step makes, each distinct one once. */
#include "backend/backend.h"
#include "base/str.h"
#include "graph/chain.h"
#include "measure/bench_kernels.h"

#include <string.h>

/* Where the attributes of an operator keep the site of a dropout: calls that differ in it alone are one. */
static const struct {
    enum op op;
    size_t site;
} sites[] = {
    {OP_DROPOUT, offsetof(union attr, drop.site)},
    {OP_DROPOUT_MASK, offsetof(union attr, drop.site)},
    {OP_EMBED_SUM, offsetof(union attr, drop.site)},
    {OP_ADD_LAYERNORM, offsetof(union attr, norm.drop.site)},
    {OP_ATTENTION, offsetof(union attr, attention.drop.site)},
    {OP_ATTENTION_GRAD, offsetof(union attr, attention.drop.site)},
    {OP_SCORE_SOFTMAX, offsetof(union attr, score.drop.site)},
    {OP_SCORE_SOFTMAX_GRAD, offsetof(union attr, score.drop.site)},
};

static union attr without_site(enum op op, const union attr *attr)
{
    union attr copy = *attr;
    for (int i = 0; i < COUNT_OF(sites); i++)
        if (sites[i].op == op) memset((char *)&copy + sites[i].site, 0, sizeof(uint32_t));
    return copy;
}

static bool same_chain(const struct chain *x, const struct chain *y)
{
    struct chain a = *x, b = *y;
    for (int k = 0; k < a.steps; k++) {
        a.step[k].attr = without_site(a.step[k].op, &x->step[k].attr);
        b.step[k].attr = without_site(b.step[k].op, &y->step[k].attr);
    }
    return memcmp(&a, &b, sizeof a) == 0;
}

static bool same_types(int n, const struct type *x, const struct type *y)
{
    for (int i = 0; i < n; i++)
        if (!type_same(&x[i], &y[i])) return false;
    return true;
}

static bool same_call(enum op op, const struct kernel_call *x, const struct kernel_call *y)
{
    if (x->n_in != y->n_in || x->n_out != y->n_out) return false;
    if (!same_types(x->n_in, x->in_type, y->in_type)) return false;
    if (!same_types(x->n_out, x->out_type, y->out_type)) return false;
    if (op == OP_CHAIN) return same_chain(x->attr->chain, y->attr->chain);
    union attr a = without_site(op, x->attr), b = without_site(op, y->attr);
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Of a product, whose attributes are of one of two kinds. */
static bool is_linear(enum op op)
{
    return op == OP_LINEAR || op == OP_LINEAR_GELU;
}

/* "768 x 384 x 128 tb": M x N x K, and how many of them. */
static const char *product_shape(const struct kernel_call *c, enum op op, struct arena *a)
{
    const struct type *out = &c->out_type[0], *in = &c->in_type[0];
    bool ta = !is_linear(op) && c->attr->matmul.ta;
    bool tb = is_linear(op) ? c->attr->linear.tb : c->attr->matmul.tb;
    bool packed = is_linear(op) ? c->attr->linear.packed : c->attr->matmul.packed;
    bool many = c->in_type[1].rank > 2;
    int64_t N = type_columns(out), M = many ? out->dim[out->rank - 2] : type_rows(out);
    int64_t batch = type_rows(out) / M, K = in->dim[in->rank - (ta ? 2 : 1)];
    const char *text =
        arena_printf(a, "%lld x %lld x %lld%s%s%s", (long long)M, (long long)N, (long long)K,
                     ta ? " ta" : "", tb ? " tb" : "", packed ? " packed" : "");
    return batch == 1 ? text : arena_printf(a, "%lld of %s", (long long)batch, text);
}

/* The largest tensor that the call touches, inputs before outputs. */
static const char *tensor_shape(const struct kernel_call *c, struct arena *a)
{
    const struct type *largest = c->n_in ? &c->in_type[0] : &c->out_type[0];
    for (int i = 1; i < c->n_in; i++)
        if (type_bytes(&c->in_type[i]) > type_bytes(largest)) largest = &c->in_type[i];
    for (int i = 0; i < c->n_out; i++)
        if (type_bytes(&c->out_type[i]) > type_bytes(largest)) largest = &c->out_type[i];
    char text[TYPE_TEXT];
    return arena_strdup(a, type_text(text, largest));
}

static enum dtype dtype_of(const struct kernel_call *c)
{
    for (int i = 0; i < c->n_in; i++)
        if (dtype_is_float(c->in_type[i].dtype)) return c->in_type[i].dtype;
    return c->out_type[0].dtype;
}

/* A GPU may round the operands of a product to TF32. */
static bool is_tf32(enum op op, const union attr *attr)
{
    if (products_include(op)) return is_linear(op) ? attr->linear.tf32 : attr->matmul.tf32;
    return (op == OP_ATTENTION || op == OP_ATTENTION_GRAD) && attr->attention.tf32;
}

static struct bench_row *rows_of(const struct backend *b, enum op op, const struct step *s,
                                 int *ret_n, struct arena *a)
{
    int n = 0;
    while (b->kernel((int)op, &s->call, n)) n++;
    struct bench_row *row = ARENA_NEW(a, struct bench_row, n);
    for (int i = 0; i < n; i++) {
        row[i].kernel = b->kernel((int)op, &s->call, i);
        row[i].taken = row[i].kernel == s->kernel;
    }
    *ret_n = n;
    return row;
}

struct finding {
    const struct engine *engine;
    struct bench_kernels *found;
    int capacity;
    struct arena *a;
};

static void meet(struct finding *f, enum graph_kind kind, int id, int64_t runs)
{
    const struct plan *p = &f->engine->plan[kind];
    const struct step *s = &p->step[id];
    const struct node *n = &p->graph->node[id];
    struct bench_kernels *k = f->found;
    for (int i = 0; i < k->calls; i++) {
        struct bench_call *c = &k->call[i];
        if (c->op != n->op) continue;
        if (!same_call(n->op, &f->engine->plan[c->kind].step[c->step].call, &s->call)) continue;
        c->per_step += runs;
        return;
    }
    ARENA_GROW(f->a, k->call, k->calls, f->capacity);
    struct bench_call *c = &k->call[k->calls++];
    *c = (struct bench_call){.kind = kind, .step = id, .op = n->op, .per_step = runs};
    c->cost = s->cost;
    c->where = n->scope;
    c->dtype = dtype_of(&s->call);
    c->products = machine_precision(c->dtype, is_tf32(n->op, s->call.attr));
    c->shape = products_include(n->op) ? product_shape(&s->call, n->op, f->a)
                                       : tensor_shape(&s->call, f->a);
    c->row = rows_of(p->backend, n->op, s, &c->rows, f->a);
    k->rows += c->rows;
}

void bench_calls_find(const struct engine *e, enum op op, struct bench_kernels *ret,
                      struct arena *a)
{
    static const enum graph_kind kinds[] = {GRAPH_MICRO, GRAPH_MICRO_MORE, GRAPH_UPDATE};
    struct finding f = {.engine = e, .found = ret, .a = a};
    *ret = (struct bench_kernels){.micro_steps = e->config->train.gradient_accumulation_steps};
    for (int k = 0; k < COUNT_OF(kinds); k++) {
        if (!e->built[kinds[k]]) continue;
        const struct plan *p = &e->plan[kinds[k]];
        for (int id = 0; id < p->steps; id++)
            if (p->step[id].kernel && (op == OP_COUNT || p->graph->node[id].op == op))
                meet(&f, kinds[k], id, kinds[k] == GRAPH_MICRO_MORE ? ret->micro_steps - 1 : 1);
    }
}

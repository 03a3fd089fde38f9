#include "backend/backend.h"
#include "bench/bench_kernels.h"
#include "bench/call.h"
#include "graph/attr.h"

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
    return numerics_same(&x->numerics, &y->numerics) && attr_same(op, x->attr, y->attr, false);
}

static struct bench_row *rows_of(const struct backend *b, enum op op, const struct step *s,
                                 int *ret_n, struct arena *a)
{
    int n = 0;
    while (b->kernels.find((int)op, &s->call, n)) n++;
    struct bench_row *row = ARENA_NEW(a, struct bench_row, n);
    for (int i = 0; i < n; i++) {
        row[i].kernel = b->kernels.find((int)op, &s->call, i);
        row[i].taken = row[i].kernel == s->kernel;
    }
    *ret_n = n;
    return row;
}

struct finding {
    const struct program *program;
    struct bench_kernels *found;
    int capacity;
    struct arena *a;
};

static void add_call(struct finding *f, enum graph_kind kind, int id, int64_t runs)
{
    const struct plan *p = &f->program->plan[kind];
    const struct step *s = &p->step[id];
    const struct node *n = &p->graph->node[id];
    struct bench_kernels *k = f->found;
    for (int i = 0; i < k->calls; i++) {
        struct bench_call *c = &k->call[i];
        if (c->op != n->op) continue;
        if (!same_call(n->op, &f->program->plan[c->kind].step[c->step].call, &s->call)) continue;
        c->per_step += runs;
        return;
    }
    ARENA_GROW(f->a, k->call, k->calls, f->capacity);
    struct bench_call *c = &k->call[k->calls++];
    *c = (struct bench_call){.kind = kind, .step = id, .op = n->op, .per_step = runs};
    c->cost = s->cost;
    c->where = n->scope;
    c->dtype = call_dtype(&s->call);
    c->precision = call_precision(&s->call);
    c->shape = call_shape(n->op, &s->call, f->a);
    c->row = rows_of(p->backend, n->op, s, &c->rows, f->a);
    k->rows += c->rows;
}

void bench_calls_find(const struct program *program, enum op op, struct bench_kernels *ret,
                      struct arena *a)
{
    static const enum graph_kind kinds[] = {GRAPH_MICRO, GRAPH_MICRO_MORE, GRAPH_UPDATE};
    struct finding f = {.program = program, .found = ret, .a = a};
    *ret =
        (struct bench_kernels){.micro_steps = program->config->train.gradient_accumulation_steps};
    for (int k = 0; k < COUNT_OF(kinds); k++) {
        if (!program->built[kinds[k]]) continue;
        const struct plan *p = &program->plan[kinds[k]];
        for (int id = 0; id < p->steps; id++)
            if (p->step[id].kernel && (op == OP_COUNT || p->graph->node[id].op == op))
                add_call(&f, kinds[k], id, kinds[k] == GRAPH_MICRO_MORE ? ret->micro_steps - 1 : 1);
    }
}

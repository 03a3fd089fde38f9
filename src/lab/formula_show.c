/* Shows the fused kernels of a formula as text. */
#include "base/str.h"
#include "graph/attr.h"
#include "lab/formula_run.h"
#include "plan/plan.h"

#include <string.h>

struct shown {
    const struct backend *backend;
    void *context; /* for --ptx; else NULL */
    struct str *out;
};

/* "// forward: CHAIN [steps SCALE value 2, EXP]" */
static void head(const struct shown *w, const struct plan *p, int id)
{
    const struct node *n = &p->graph->node[id];
    str_printf(w->out, "%s// %s: %s", w->out->len ? "\n" : "", phase_name(n->phase),
               op_def(n->op)->name);
    attr_print(n->op, &n->attr, &n->numerics, w->out);
    str_append(w->out, "\n");
}

static enum status show_step(const struct shown *w, const struct plan *p, int id, bool ptx)
{
    struct str source = {0};
    const struct step *s = &p->step[id];
    const struct backend_launches *launches = w->backend->launches;
    enum status st = ST_OK;
    head(w, p, id);
    if (!launches || !launches->generated(s->kernel, &s->call, &source))
        str_printf(w->out, "// kernel \"%s\" of this operator; no text is generated for it\n",
                   s->kernel->variant);
    else if (ptx)
        st = w->backend->texts->assembly(
            w->context, &(struct kernel_text){"chain.cu", str_text(&source), "", "chain"}, w->out);
    else
        str_append(w->out, str_text(&source));
    str_release(&source);
    return st;
}

static enum status show_all(const struct shown *w, const struct formula_options *o, bool ptx,
                            struct arena *a)
{
    const struct backend *b = o->device.backend;
    const struct formula_shape shape = {o->dtype, o->n, true, true};
    struct graph g;
    struct plan p;
    struct target target;
    enum status st = ST_OK;
    TRY(backend_target(b, o->device.number, &target));
    TRY(formula_graph(o->formula, o->values, &shape, &g, a));
    TRY(plan_build(&p, &g, &target, NULL, a));
    for (int id = 0; id < p.steps && st == ST_OK; id++)
        if (p.step[id].kernel) st = show_step(w, &p, id, ptx);
    plan_release(&p);
    return st;
}

enum status formula_show(const struct formula_options *o, bool ptx, struct str *s)
{
    const struct backend *b = o->device.backend;
    struct shown w = {.backend = b, .out = s};
    struct arena a = {0};
    if (ptx && !b->texts)
        return fail(ST_UNSUPPORTED, "--ptx shows what the compiler makes of a kernel for a GPU; "
                                    "use --show for the steps of a CPU's kernels");
    if (ptx) TRY(b->open(o->device.number, &w.context));
    enum status st = show_all(&w, o, ptx, &a);
    if (w.context) b->close(w.context);
    arena_release(&a);
    return st;
}

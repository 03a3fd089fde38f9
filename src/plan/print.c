#include "base/str.h"
#include "plan/timeline.h"

#include <stdio.h>
#include <stdlib.h>

void plan_print(const struct plan *p, struct str *s)
{
    char text[TYPE_TEXT], flops[32], bytes[32];
    str_printf(s, "%5s  %-20s %-9s %10s %10s  %-24s %s\n", "step", "operator", "kernel", "MFLOP",
               "bytes", "result", "scope");
    for (int id = 0; id < p->steps; id++) {
        const struct step *step = &p->step[id];
        const struct node *n = &p->graph->node[id];
        if (!step->kernel) continue;
        snprintf(flops, sizeof flops, "%.3f", step->cost.flops * 1e-6);
        str_printf(s, "%5d  %-20s %-9s %10s %10s  %-24s %s\n", id, op_def(n->op)->name,
                   step->kernel->variant, flops, str_bytes(bytes, step->cost.bytes),
                   type_text(text, &step->call.out_type[0]), n->scope);
    }
    struct cost sum = plan_cost(p);
    str_printf(s, "%d kernels, %s, %s read and written\n", plan_kernels(p),
               str_flops(flops, sum.flops), str_bytes(bytes, sum.bytes));
}

static int larger_first(const void *a, const void *b)
{
    const struct residency *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->v.i - y->v.i;
}

void plan_print_memory(const struct plan *p, int rows, struct str *s)
{
    struct arena scratch = {0};
    struct timeline t;
    struct residencies residencies;
    plan_timeline(p, NULL, &t, &scratch);
    plan_residencies(p, &residencies, &scratch);
    int peak = t.peak, n = 0;
    const struct node *peak_node = &p->graph->node[peak];
    char bytes[32], total[32], text[TYPE_TEXT];
    struct residency *live = residencies.residency;
    for (int i = 0; i < residencies.n; i++)
        if (live[i].first <= peak && peak <= live[i].last) live[n++] = live[i];
    qsort(live, (size_t)n, sizeof *live, larger_first);
    str_printf(s, "arena %s; peak at step %d (%s %s): %s in %d values\n",
               str_bytes(total, (double)p->arena_bytes), peak, op_def(peak_node->op)->name,
               peak_node->scope, str_bytes(bytes, (double)t.peak_bytes), n);
    str_printf(s, "%12s  %-13s %-18s %-24s %s\n", "bytes", "steps", "operator", "type", "scope");
    for (int i = 0; i < n && i < rows; i++) {
        const struct node *by = graph_producer(p->graph, live[i].v);
        const struct span *span = &p->span[live[i].v.i];
        char range[32];
        snprintf(range, sizeof range, "%d-%d", span->first, span->last);
        str_printf(s, "%12s  %-13s %-18s %-24s %s\n", str_bytes(bytes, (double)live[i].bytes),
                   range, op_def(by->op)->name, type_text(text, graph_type(p->graph, live[i].v)),
                   by->scope);
    }
    if (n > rows) str_printf(s, "%12s  %d smaller values\n", "...", n - rows);
    arena_release(&scratch);
}

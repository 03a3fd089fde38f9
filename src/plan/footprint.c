#include "plan/footprint.h"

#include <stdlib.h>
#include <string.h>

static void add_kept(struct footprint *f, enum op op, int64_t bytes)
{
    int i = 0;
    while (i < f->kept_ops && f->kept[i].op != op) i++;
    if (i == f->kept_ops) f->kept[f->kept_ops++] = (struct kept){.op = op};
    f->kept[i].values++;
    f->kept[i].bytes += bytes;
}

static int larger_first(const void *a, const void *b)
{
    const struct kept *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return (int)x->op - (int)y->op;
}

void plan_footprint(const struct plan *p, struct footprint *ret)
{
    struct arena scratch = {0};
    struct timeline t;
    struct stays stays;
    plan_timeline(p, NULL, &t, &scratch);
    plan_stays(p, &stays, &scratch);
    *ret = (struct footprint){.step = t.peak, .bytes = t.peak_bytes};
    if (t.steps) memcpy(ret->part, t.bytes[t.peak], sizeof ret->part);
    for (int i = 0; i < stays.n; i++) {
        const struct stay *s = &stays.stay[i];
        if (s->part == MEMORY_SAVED && s->first <= t.peak && t.peak <= s->last)
            add_kept(ret, graph_producer(p->graph, s->v)->op, s->bytes);
    }
    qsort(ret->kept, (size_t)ret->kept_ops, sizeof *ret->kept, larger_first);
    arena_release(&scratch);
}

#include "plan/footprint.h"

#include <stdlib.h>

static const char *const part_names[FOOTPRINT_PARTS] = {
    [FOOTPRINT_INPUT] = "inputs",
    [FOOTPRINT_KEPT] = "kept for backward",
    [FOOTPRINT_FORWARD] = "passing forward",
    [FOOTPRINT_BACKWARD] = "passing backward",
    [FOOTPRINT_UPDATE] = "passing in the update",
    [FOOTPRINT_SCRATCH] = "scratch of the kernel",
};

const char *footprint_part_name(enum footprint_part part)
{
    return part_names[part];
}

static bool has_own_bytes(const struct plan *p, value v)
{
    const struct span *s = &p->span[v.i];
    return s->root == v.i && s->storage == STORAGE_ARENA;
}

static bool is_view(const struct plan *p, value v)
{
    return op_def(graph_producer(p->graph, v)->op)->flags & OP_VIEW;
}

void plan_holders(const struct plan *p, int step, value *ret)
{
    for (int v = 0; v < p->graph->values; v++) ret[v] = (value){0};
    for (int v = 1; v < p->graph->values; v++) { /* later ones took the place of earlier ones */
        const struct span *s = &p->span[v];
        bool made = s->root == v || p->graph->info[v].producer <= step;
        if (s->storage == STORAGE_ARENA && s->first <= step && step <= s->last && made &&
            (s->root == v || !is_view(p, (value){v})))
            ret[s->root] = (value){v};
    }
}

/* One sweep over births and deaths. */
static int peak_step(const struct plan *p)
{
    struct arena scratch = {0};
    int64_t *change = ARENA_NEW(&scratch, int64_t, p->steps + 2), alive = 0, most = -1;
    int at = 0;
    for (int v = 1; v < p->graph->values; v++) {
        const struct span *s = &p->span[v];
        if (!has_own_bytes(p, (value){v})) continue;
        change[s->first] += s->bytes;
        change[s->last + 1 < p->steps ? s->last + 1 : p->steps] -= s->bytes;
    }
    for (int id = 0; id < p->steps; id++) {
        int64_t room = p->step[id].kernel ? p->step[id].scratch_bytes : 0;
        alive += change[id];
        if (alive + room > most) most = alive + room, at = id;
    }
    arena_release(&scratch);
    return at;
}

/* For each place: the forward operator that will write over the holder has yet to run. */
static void mark_passing(const struct plan *p, const value *holder, bool *passing)
{
    for (int v = 1; v < p->graph->values; v++) {
        int root = p->span[v].root;
        bool later = holder[root].i && v > holder[root].i && !is_view(p, (value){v});
        if (later && graph_producer(p->graph, (value){v})->phase == PHASE_FORWARD)
            passing[root] = true;
    }
}

static enum footprint_part part_of(const struct plan *p, value holder, bool passing)
{
    const struct span *s = &p->span[holder.i];
    const struct node *by = graph_producer(p->graph, holder);
    if (by->op == OP_LEAF) return FOOTPRINT_INPUT;
    if (by->phase == PHASE_UPDATE) return FOOTPRINT_UPDATE;
    if (by->phase == PHASE_BACKWARD) return FOOTPRINT_BACKWARD;
    bool read_backward = s->last < p->steps && p->graph->node[s->last].phase == PHASE_BACKWARD;
    return read_backward && !passing ? FOOTPRINT_KEPT : FOOTPRINT_FORWARD;
}

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
    value *holder = ARENA_NEW(&scratch, value, p->graph->values);
    bool *passing = ARENA_NEW(&scratch, bool, p->graph->values);
    *ret = (struct footprint){.step = peak_step(p)};
    plan_holders(p, ret->step, holder);
    mark_passing(p, holder, passing);
    for (int v = 1; v < p->graph->values; v++) {
        if (!holder[v].i) continue;
        enum footprint_part part = part_of(p, holder[v], passing[v]);
        ret->part[part] += p->span[v].bytes;
        if (part == FOOTPRINT_KEPT)
            add_kept(ret, graph_producer(p->graph, holder[v])->op, p->span[v].bytes);
    }
    if (p->steps && p->step[ret->step].kernel)
        ret->part[FOOTPRINT_SCRATCH] = p->step[ret->step].scratch_bytes;
    for (int i = 0; i < FOOTPRINT_PARTS; i++) ret->bytes += ret->part[i];
    qsort(ret->kept, (size_t)ret->kept_ops, sizeof *ret->kept, larger_first);
    arena_release(&scratch);
}

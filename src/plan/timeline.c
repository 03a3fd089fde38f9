#include "plan/timeline.h"

#include "plan/liveness.h"

static const struct {
    const char *id, *name;
} parts[MEMORY_PARTS] = {
    [MEMORY_WEIGHTS] = {"weights", "weights"},
    [MEMORY_GRADIENTS] = {"gradients", "gradients"},
    [MEMORY_OPTIMIZER] = {"optimizer", "optimizer state"},
    [MEMORY_COPIES] = {"copies", "copies of weights"},
    [MEMORY_CACHE] = {"cache", "cache"},
    [MEMORY_INPUTS] = {"inputs", "inputs"},
    [MEMORY_SAVED] = {"saved", "saved for backward"},
    [MEMORY_FORWARD] = {"forward", "forward temporaries"},
    [MEMORY_BACKWARD] = {"backward", "backward temporaries"},
    [MEMORY_UPDATE] = {"update", "update temporaries"},
    [MEMORY_WORKSPACE] = {"workspace", "workspace"},
    [MEMORY_UNUSED] = {"unused", "unused"},
};

const char *memory_part_name(enum memory_part part)
{
    return parts[part].name;
}

const char *memory_part_id(enum memory_part part)
{
    return parts[part].id;
}

static enum memory_part part_of(const struct plan *p, const struct node *by, const struct span *s)
{
    if (by->op == OP_LEAF && by->attr.leaf.storage != STORAGE_UNIT) return MEMORY_INPUTS;
    if (by->phase == PHASE_UPDATE) return MEMORY_UPDATE;
    if (by->phase == PHASE_BACKWARD) return MEMORY_BACKWARD;
    bool read_backward = s->last < p->steps && p->graph->node[s->last].phase == PHASE_BACKWARD;
    return read_backward ? MEMORY_SAVED : MEMORY_FORWARD;
}

void plan_residencies(const struct plan *p, struct residencies *ret, struct arena *a)
{
    struct residency *residency = ARENA_NEW(a, struct residency, p->graph->values);
    struct arena scratch = {0};
    int *latest = ARENA_NEW(&scratch, int, p->graph->values); /* per root: 1 + its last residency */
    int n = 0;
    for (int v = 1; v < p->graph->values; v++) {
        const struct span *s = &p->span[v];
        const struct node *by = graph_producer(p->graph, (value){v});
        if (s->storage != STORAGE_ARENA || op_def(by->op)->flags & OP_VIEW) continue;
        if (s->root != v && is_unit(p, s->root)) continue; /* the root stands for the whole unit */
        int made = s->root == v ? s->first : p->graph->info[v].producer;
        if (latest[s->root]) {
            struct residency *before = &residency[latest[s->root] - 1];
            before->last = made - 1;
            if (before->part == MEMORY_SAVED || before->part == MEMORY_FORWARD)
                before->part = by->phase == PHASE_BACKWARD ? MEMORY_SAVED : MEMORY_FORWARD;
        }
        residency[n] =
            (struct residency){{v}, made, s->last, part_of(p, by, s), s->bytes, s->offset};
        latest[s->root] = ++n;
    }
    arena_release(&scratch);
    *ret = (struct residencies){residency, n};
}

/* Sets the parts whose storage blocks exist during all steps. */
static void add_blocks(const int64_t *storage, int64_t *bytes)
{
    bytes[MEMORY_WEIGHTS] = storage[STORAGE_WEIGHTS];
    bytes[MEMORY_GRADIENTS] = storage[STORAGE_GRADIENTS] + storage[STORAGE_REDUCED];
    bytes[MEMORY_OPTIMIZER] = storage[STORAGE_MOMENT1] + storage[STORAGE_MOMENT2];
    bytes[MEMORY_COPIES] = storage[STORAGE_COPY] + storage[STORAGE_PACKED];
    bytes[MEMORY_COPIES] += storage[STORAGE_AMAX];
    bytes[MEMORY_CACHE] = storage[STORAGE_CACHE];
    bytes[MEMORY_INPUTS] = storage[STORAGE_STAGED] + storage[STORAGE_RANDOM];
}

void plan_timeline(const struct plan *p, const int64_t *storage, struct timeline *ret,
                   struct arena *a)
{
    struct arena scratch = {0};
    struct residencies residencies;
    int64_t alive[MEMORY_PARTS] = {0};
    int64_t arena_bytes = storage ? storage[STORAGE_ARENA] : p->arena_bytes;
    int64_t(*change)[MEMORY_PARTS] =
        arena_alloc(&scratch, (int64_t)sizeof(*change) * (p->steps + 1));
    *ret = (struct timeline){.steps = p->steps, .total_bytes = arena_bytes};
    ret->bytes = arena_alloc(a, (int64_t)sizeof(*ret->bytes) * p->steps);
    plan_residencies(p, &residencies, &scratch);
    for (int i = 0; i < residencies.n; i++) {
        const struct residency *residency = &residencies.residency[i];
        change[residency->first][residency->part] += residency->bytes;
        if (residency->last < p->steps)
            change[residency->last + 1][residency->part] -= residency->bytes;
    }
    if (storage) add_blocks(storage, alive);
    for (int i = 0; i < MEMORY_PARTS; i++) ret->total_bytes += alive[i];
    for (int id = 0; id < p->steps; id++) {
        int64_t *now = ret->bytes[id], used = 0;
        for (int i = 0; i < MEMORY_PARTS; i++) now[i] = alive[i] += change[id][i];
        now[MEMORY_WORKSPACE] = p->step[id].kernel ? p->step[id].scratch_bytes : 0;
        for (int i = 0; i < MEMORY_UNUSED; i++) used += now[i];
        now[MEMORY_UNUSED] = ret->total_bytes - used;
        if (used > ret->peak_bytes) ret->peak_bytes = used, ret->peak = id;
    }
    arena_release(&scratch);
}

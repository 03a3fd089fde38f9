#include "engine/launches.h"

#include "engine/facts.h"

#include <string.h>

static bool same_text(const char *x, const char *y)
{
    return x && y ? !strcmp(x, y) : x == y;
}

static bool same_shape(const struct kernel_shape *x, const struct kernel_shape *y)
{
    return !memcmp(x->grid, y->grid, sizeof x->grid) &&
           !memcmp(x->block, y->block, sizeof x->block) && x->shared_bytes == y->shared_bytes;
}

static bool same_kernel(const struct planned_launch *x, const struct planned_launch *y)
{
    return !strcmp(x->text, y->text) && !strcmp(x->entry, y->entry) &&
           !strcmp(x->options, y->options) && same_text(x->source, y->source) &&
           same_shape(&x->shape, &y->shape);
}

/* Library calls, whose kernels are unknown, are equal if their operator and variant are equal. */
static bool is_same(const struct step_launch *x, const struct step_launch *y)
{
    const struct planned_launch *k = &x->launch, *l = &y->launch;
    if (strcmp(x->variant, y->variant) != 0) return false;
    return k->entry && l->entry ? same_kernel(k, l) : k->entry == l->entry && x->op == y->op;
}

static struct step_launch *find(const struct step_launches *all, const struct step_launch *one)
{
    for (int i = 0; i < all->launches; i++)
        if (is_same(&all->launch[i], one)) return &all->launch[i];
    return NULL;
}

static void add_launch(struct step_launches *all, const struct step_launch *one, struct arena *a)
{
    struct step_launch *known = find(all, one);
    if (known) {
        known->times += one->times;
        return;
    }
    ARENA_GROW(a, all->launch, all->launches, all->capacity);
    all->launch[all->launches++] = *one;
}

/* The launches of one run of a node, in order; returns their number. */
static int launches_of_node(const struct plan *p, int node, struct step_launch ret[CALL_LAUNCHES],
                            struct arena *a)
{
    struct planned_launch launch[CALL_LAUNCHES];
    const struct step *s = &p->step[node];
    if (!s->kernel) return 0;
    int n = p->backend->launches->planned(s->kernel, &s->call, launch, a);
    for (int i = 0; i < n; i++)
        ret[i] = (struct step_launch){
            .op = s->kernel->op, .variant = s->kernel->variant, .launch = launch[i]};
    return n;
}

static void add_plan(struct step_launches *all, const struct plan *p, int64_t runs, struct arena *a)
{
    struct step_launch launch[CALL_LAUNCHES];
    for (int id = 0; id < p->steps; id++) {
        int n = launches_of_node(p, id, launch, a);
        for (int i = 0; i < n; i++) {
            launch[i].times = runs;
            add_launch(all, &launch[i], a);
        }
    }
}

static enum status compile(const struct program *p, struct step_launches *all, struct arena *a)
{
    struct planned_launch **own = ARENA_NEW(a, struct planned_launch *, all->launches + 1);
    int n = 0;
    for (int i = 0; i < all->launches; i++)
        if (all->launch[i].launch.entry) own[n++] = &all->launch[i].launch;
    return p->target->backend->launches->compile(p->target, own, n);
}

static int64_t product(const unsigned n[3])
{
    return (int64_t)n[0] * n[1] * n[2];
}

static void examine(const struct target *t, struct step_launch *one)
{
    const struct planned_launch *l = &one->launch;
    const struct occupancy_limits *limits = occupancy_limits(t->arch);
    one->blocks = product(l->shape.grid);
    one->threads = (int)product(l->shape.block);
    if (!l->entry || l->registers < 0 || !limits) return;
    struct occupancy_kernel k = {.threads = one->threads,
                                 .registers = l->registers,
                                 .static_bytes = l->static_bytes,
                                 .dynamic_bytes = l->shape.shared_bytes};
    one->known = true;
    occupancy_of(limits, &k, &one->occupancy);
    occupancy_grid(&one->occupancy, one->blocks, t->processors, &one->grid);
}

enum status step_launches_of(const struct program *p, struct step_launches *ret, struct arena *a)
{
    *ret = (struct step_launches){0};
    if (!p->target->backend->launches)
        return fail(ST_USAGE, "occupancy is of the multiprocessors of a GPU: add --device=cuda, "
                              "which works without a GPU, too, and no other --backend");
    for (int kind = 0; kind < GRAPH_COUNT; kind++) {
        int64_t runs = runs_per_step(p->config, (enum graph_kind)kind);
        if (p->built[kind] && runs) add_plan(ret, &p->plan[kind], runs, a);
    }
    TRY(compile(p, ret, a));
    for (int i = 0; i < ret->launches; i++) examine(p->target, &ret->launch[i]);
    return ST_OK;
}

const struct step_launch *step_launches_find(const struct step_launches *all, const struct plan *p,
                                             int node, const char *entry, struct arena *a)
{
    struct step_launch launch[CALL_LAUNCHES];
    const struct step_launch *found = NULL;
    int n = launches_of_node(p, node, launch, a);
    for (int i = 0; i < n; i++) {
        const char *own = launch[i].launch.entry;
        if (entry && (!own || strcmp(own, entry) != 0)) continue;
        const struct step_launch *x = own ? find(all, &launch[i]) : NULL;
        if (!x || (found && found != x)) return NULL;
        found = x;
    }
    return found;
}

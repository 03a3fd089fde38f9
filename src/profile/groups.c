#include "profile/profile.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

const char *profile_by_name(enum profile_by by)
{
    static const char *const names[] = {"kernel", "op", "family", "layer", "phase", "range"};
    return names[by];
}

struct part { /* a group under construction */
    struct profile_group *group;
    const struct profile_row *like; /* BY_KERNEL: its first row */
    double *run_ms, longest_ms, bound_ms[BOUND_LATENCY + 1];
    int runs, capacity, parent; /* parent: BY_RANGE, the enclosing group; -1: none */
};

struct grouping {
    const struct profile *p;
    struct profile_groups *ret;
    struct part *part;
    int parts, capacity;
    struct arena *a;
};

static bool counts(unsigned phases, enum phase phase)
{
    return phases >> phase & 1;
}

double profile_ms(const struct profile *p, unsigned phases)
{
    double ms = 0;
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        if (counts(phases, (enum phase)phase)) ms += p->mean_ms[phase];
    return ms;
}

double profile_family_ms(const struct profile *p, unsigned phases, enum family family)
{
    double ms = 0;
    for (int i = 0; i < p->rows; i++)
        if (p->row[i].family == (int)family && counts(phases, p->row[i].phase)) ms += p->row[i].ms;
    for (int phase = 0; phase < PHASE_COUNT; phase++)
        if (family == FAMILY_IDLE && counts(phases, (enum phase)phase)) ms += p->idle_ms[phase];
    return ms;
}

/* --- names ------------------------------------------------------------------------------------ */

const char *profile_kernel_name(const struct profile_row *r, struct arena *a)
{
    if (r->node < 0) return arena_printf(a, "%s (%s)", r->variant, family_name(r->family));
    return arena_printf(a, "%s %s %s", op_def(r->op)->name, r->shape,
                        r->device_short ? r->device_short : r->variant);
}

const char *profile_part_name(const struct profile *p, enum random_step_part part)
{
    if (part == RANDOM_STEP_FEEDS) return "generate tokens";
    if (part == RANDOM_STEP_WAITS) return "wait";
    return p->engine->backend->host_memory ? "run the step" : "launch the step";
}

static const char *layer_name(const struct profile_row *r, struct arena *a)
{
    if (r->range.layer >= 0) return arena_printf(a, "block %d", r->range.layer);
    if (r->phase == PHASE_UPDATE) return "update";
    return r->range.words > 1 ? r->range.word[1] : family_name(r->family);
}

static const char *name_of(enum profile_by by, const struct profile_row *r, struct arena *a)
{
    if (by == BY_KERNEL) return profile_kernel_name(r, a);
    if (by == BY_OP && r->node >= 0) return op_def(r->op)->name;
    if (by == BY_LAYER) return layer_name(r, a);
    return by == BY_PHASE ? phase_name(r->phase) : family_name(r->family);
}

/* --- groups ----------------------------------------------------------------------------------- */

static int new_part(struct grouping *g, const char *name, const struct profile_row *row, int parent)
{
    struct profile_group *group = ARENA_NEW(g->a, struct profile_group, 1);
    group->name = name;
    group->depth = parent < 0 ? 0 : g->part[parent].group->depth + 1;
    ARENA_GROW(g->a, g->part, g->parts, g->capacity);
    g->part[g->parts] = (struct part){.group = group, .like = row, .parent = parent};
    return g->parts++;
}

static int find_part(struct grouping *g, const char *name, const struct profile_row *r, int parent)
{
    for (int i = 0; i < g->parts; i++) {
        const struct part *x = &g->part[i];
        if (x->parent != parent) continue;
        if (g->ret->by == BY_KERNEL ? profile_row_same(x->like, r) : !strcmp(x->group->name, name))
            return i;
    }
    return new_part(g, name, r, parent);
}

#define ADD(row, share, ...)   c->share += row->ms * row->share;
#define DIVIDE(ms, share, ...) x->counters.share /= ms;

/* Shares are sums over time until close_part. */
static void add_counters(struct profile_group *to, const struct profile_row *r, double runs)
{
    struct kernel_counters *c = &to->counters;
    c->dram_read += runs * r->dram_read;
    c->dram_written += runs * r->dram_written;
    COUNTER_SHARES(ADD, r)
    to->counted_ms += r->ms;
    if (!(r->bytes > 0)) return;
    to->work_dram += runs * r->dram_of_node;
    to->planned_dram += runs * r->bytes;
}

static void add_row(struct grouping *g, struct part *part, const struct profile_row *r)
{
    struct profile_group *to = part->group;
    double runs = r->per_step;
    to->ms += r->ms;
    to->work_ms += r->work_ms;
    to->flops += runs * r->flops;
    to->bytes += runs * r->bytes;
    to->floor_ms += runs * r->floor_ms;
    if (r->busy_ms > 0) {
        to->busy_ms += r->busy_ms;
        to->busiest_ms += r->busiest_ms;
        to->seen_ms += r->ms;
    }
    part->bound_ms[r->bound] += r->work_ms;
    if (r->counted) add_counters(to, r, runs);
    if (r->ms >= part->longest_ms) {
        part->longest_ms = r->ms;
        to->precision = r->precision;
        to->family = r->family;
        to->launch = g->ret->by == BY_KERNEL ? r->launched : NULL;
    }
    for (int i = 0; i < r->runs; i++) {
        ARENA_GROW(g->a, part->run_ms, part->runs, part->capacity);
        part->run_ms[part->runs++] = r->each_ms[i];
    }
}

static void add_to_group(struct grouping *g, const struct profile_row *r)
{
    int at = -1;
    if (g->ret->by != BY_RANGE) {
        at = find_part(g, name_of(g->ret->by, r, g->a), r, -1);
        add_row(g, &g->part[at], r);
        return;
    }
    for (int i = 0; i < r->range.words; i++) {
        at = find_part(g, r->range.word[i], r, at);
        add_row(g, &g->part[at], r);
    }
}

static void close_part(struct grouping *g, struct part *part)
{
    struct profile_group *x = part->group;
    x->share = g->ret->ms > 0 ? x->ms / g->ret->ms : 0;
    x->run_ms = stats_of(part->run_ms, part->runs);
    x->runs = (part->runs + g->p->steps / 2) / g->p->steps;
    if (x->counted_ms > 0) {
        COUNTER_SHARES(DIVIDE, x->counted_ms)
    }
    for (int b = 1; b <= BOUND_LATENCY; b++)
        if (part->bound_ms[b] > part->bound_ms[x->bound]) x->bound = (enum bound)b;
}

static int longest_first(const void *a, const void *b)
{
    const struct profile_group *x = a, *y = b;
    return (x->ms < y->ms) - (x->ms > y->ms);
}

/* Appends each group before those nested in it. */
static void gather(struct grouping *g, int parent)
{
    struct profile_groups *ret = g->ret;
    for (int i = 0; i < g->parts; i++) {
        if (g->part[i].parent != parent) continue;
        ret->group[ret->groups++] = *g->part[i].group;
        gather(g, i);
    }
}

static void add_idle(const struct profile *p, struct profile_groups *ret)
{
    struct profile_group *x = &ret->group[ret->groups++];
    *x = (struct profile_group){.name = family_name(FAMILY_IDLE), .family = FAMILY_IDLE};
    x->ms = profile_family_ms(p, ret->phases, FAMILY_IDLE);
    x->share = ret->ms > 0 ? x->ms / ret->ms : 0;
    if (ret->phases == PHASES_ALL) x->runs = (int)p->gaps;
}

void profile_groups(const struct profile *p, enum profile_by by, unsigned phases,
                    struct profile_groups *ret, struct arena *a)
{
    struct grouping g = {.p = p, .ret = ret, .a = a};
    *ret = (struct profile_groups){.by = by, .phases = phases, .ms = profile_ms(p, phases)};
    for (int i = 0; i < p->rows; i++)
        if (counts(phases, p->row[i].phase)) add_to_group(&g, &p->row[i]);
    for (int i = 0; i < g.parts; i++) {
        close_part(&g, &g.part[i]);
        const struct profile_group *x = g.part[i].group;
        if (x->depth > 0) continue;
        ret->floor_ms += x->floor_ms;
        ret->flops += x->flops;
        ret->bytes += x->bytes;
    }
    ret->group = ARENA_NEW(a, struct profile_group, g.parts + 1);
    gather(&g, -1);
    if (by == BY_KERNEL || by == BY_OP || by == BY_FAMILY)
        qsort(ret->group, (size_t)ret->groups, sizeof *ret->group, longest_first);
    add_idle(p, ret);
}

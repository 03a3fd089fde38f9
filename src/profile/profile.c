#include "profile/collect.h"

#include "base/clock.h"
#include "base/host.h"
#include "base/interrupt.h"
#include "base/load.h"
#include "profile/ranks.h"

#include <math.h>

bool profile_is_busy(const struct profile *p)
{
    return p->engine->backend->host_memory && load_is_busy(p->others);
}

static double known(bool known, double x)
{
    return known ? x : NAN;
}

static struct profile_file_launch launch_of(const struct profile *p, const struct step_launch *l)
{
    if (!l)
        return (struct profile_file_launch){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NULL, NAN, NAN};
    const struct planned_launch *k = &l->launch;
    const struct occupancy_limits *limits = occupancy_limits(p->engine->program.target->arch);
    bool compiled = k->registers >= 0, runs = l->known && l->occupancy.blocks;
    return (struct profile_file_launch){
        .blocks = (double)l->blocks,
        .threads = (double)l->threads,
        .registers = known(compiled, k->registers),
        .static_bytes = known(compiled, (double)k->static_bytes),
        .dynamic_bytes = (double)k->shape.shared_bytes,
        .sm_blocks = known(l->known, l->occupancy.blocks),
        .sm_warps = known(l->known, l->occupancy.warps),
        .sm_warps_most = limits ? limits->warps : NAN,
        .limit = l->known ? l->occupancy.limit : NULL,
        .waves = known(runs, l->grid.waves),
        .tail = known(runs, l->grid.tail),
    };
}

/* On a GPU: the launches that `strobe plan --occupancy` prints. Their kernels are compiled already,
 * so they come from the cache. */
static enum status launches_of(const struct engine *e, struct step_launches *ret, struct arena *a)
{
    *ret = (struct step_launches){0};
    return e->backend->launches ? step_launches_of(&e->program, ret, a) : ST_OK;
}

static void launches_join(const struct step_launches *all, struct profile *p, struct arena *a)
{
    for (struct profile_row *r = p->row; r < p->row + p->rows; r++) {
        if (r->node >= 0 && all->launches)
            r->launched = step_launches_find(all, &p->engine->program.plan[r->kind], r->node,
                                             r->device_kernel, a);
        r->launch = launch_of(p, r->launched);
    }
}

enum status profile_run(struct engine *e, const struct profile_options *o, struct profile *ret,
                        struct arena *a)
{
    struct collected c;
    struct step_launches launches;
    TRY(launches_of(e, &launches, a));
    *ret = (struct profile){.engine = e, .machine = o->machine};
    struct host_work before = host_work_now();
    int64_t start = clock_ns();
    TRY(collect(e, o, ret, &c, a));
    before.all += before.all < 0 ? 0 : ret->away.all;
    before.own += ret->away.own;
    double others =
        host_others(before, host_work_now(), 1e-3 * clock_ms(start, clock_ns()) - ret->away_s);
    ret->interrupted = interrupt_noted() != 0;
    if (!isnan(others)) ret->others = others;
    ret->plain_ms = stats_of(c.plain_ms, c.plain_steps);
    ret->host_ms = stats_of(c.host_ms, c.plain_steps).median;
    ret->plain_step_ms = c.plain_ms;
    rows_make(&c, ret, a);
    ranks_take(o->ranks, &c, ret, a);
    counters_join(&c, ret);
    launches_join(&launches, ret, a);
    if (!ret->turns_of) chunks_divide(ret, c.plain_steps, a);
    for (struct profile_row *r = ret->row; r < ret->row + ret->rows; r++) {
        r->chunk_ms = profile_chunks_ms(ret, r->step_ms, false, a);
        r->chunks = ret->chunks;
    }
    ret->dropped = c.trace.dropped;
    ret->unmatched = c.trace.unmatched;
    ret->dropped_why = c.trace.why;
    ret->traced_by = c.trace.by;
    struct stats pairs = stats_of(c.ratio, c.ratios);
    ret->overhead = pairs.median - 1;
    ret->overhead_low = pairs.p25 - 1;
    ret->overhead_high = pairs.p75 - 1;
    return ST_OK;
}

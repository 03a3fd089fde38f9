#include "report/peaks.h"

#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool same_machine(const struct profile_file *x, const struct profile_file *y)
{
    const struct profile_file_machine *m = &x->of, *n = &y->of;
    return x->machine && y->machine && str_same(x->machine, y->machine) &&
           str_same(m->isa, n->isa) && str_same(m->library, n->library) &&
           m->ceilings.gpu == n->ceilings.gpu && m->ceilings.threads == n->ceilings.threads;
}

static const struct profile_file_peak *named(const struct profile_file_peak *peak, int n,
                                             const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(peak[i].name, name) == 0) return &peak[i];
    return NULL;
}

static bool raise(double *rate, double other)
{
    if (!(other > *rate)) return false;
    *rate = other;
    return true;
}

/* Returns whether a ceiling of `p` rose. */
static bool raise_to(struct profile_file *p, const struct profile_file *other)
{
    bool rose = false;
    const struct ceilings *m = &other->of.ceilings;
    struct ceilings *own = &p->of.ceilings;
    for (int i = 0; i < p->products; i++) {
        const struct profile_file_peak *best =
            named(other->product, other->products, p->product[i].name);
        if (best) rose |= raise(&p->product[i].rate, best->rate);
    }
    for (int i = 0; i < own->copies; i++)
        for (int k = 0; k < m->copies; k++)
            if (m->copy_bytes[k] == own->copy_bytes[i])
                rose |= raise(&own->copy_rate[i], m->copy_rate[k]);
    return rose;
}

/* Recomputes the floor of one execution as the profiler does. A row without floor, FLOPs or bytes
 * is left unchanged, and so are all rows of a profile without copy bandwidths. */
static void find_floor(const struct profile_file *p, struct profile_row *r)
{
    const struct profile_file_peak *peak =
        r->peak_of ? named(p->product, p->products, r->peak_of) : NULL;
    if (!(r->floor_ms > 0) || !(r->flops >= 0 && r->bytes >= 0) || !p->of.ceilings.copies) return;
    r->floor_ms =
        floor_of(&p->of.ceilings, peak ? peak->rate : 0, r->flops, r->bytes, r->run_ms.median).ms;
}

static void find_floors(struct profile_file *p, struct arena *a)
{
    for (int i = 0; i < p->kernels; i++) p->kernel[i].floor_ms = 0;
    for (int i = 0; i < p->rows; i++) {
        struct profile_row *r = &p->row[i];
        find_floor(p, r);
        if (r->per_step > 0 && r->floor_ms > 0)
            p->kernel[r->kernel].floor_ms += r->per_step * r->floor_ms;
    }
    double floor_ms = profile_file_floor(p);
    for (int i = 0; i < p->answers && floor_ms > 0; i++)
        if (strcmp(p->answer[i].about, "floor") == 0)
            p->answer[i].text =
                arena_printf(a,
                             "the work of the plan takes at least %.4g ms per step at the best "
                             "ceilings of these profiles: the median step takes %.3g times as long",
                             floor_ms, p->step_ms.median / floor_ms);
}

void peaks_raise(struct profile_file *profile, int n, struct arena *a)
{
    struct profile_file *own = ARENA_NEW(a, struct profile_file, n + 1);
    for (int i = 0; i < n; i++) own[i] = profile[i];
    for (int i = 0; i < n; i++) {
        struct profile_file *p = &profile[i];
        bool rose = false;
        for (int k = 0; k < n; k++)
            if (k != i && same_machine(p, &own[k])) rose |= raise_to(p, &own[k]);
        if (!rose) continue;
        profile_file_name_copies(p);
        p->raised = true;
        find_floors(p, a);
    }
}

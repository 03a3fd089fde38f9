#include "report/busy.h"

#include <math.h>

static const char *by_counters(const struct run *run, int n, struct arena *a)
{
    const char *words = "By the GPU's counters";
    for (int i = 0; i < n; i++) {
        const struct gauge_figures *g = &run[i].gauges.figures;
        if (!isfinite(g->dram_active) || !isfinite(g->tensor_active)) return NULL;
        words = arena_printf(a, "%s%s %s keeps memory %.0f %% busy and tensor cores %.0f %%", words,
                             i ? ";" : ",", run[i].name, g->dram_active, g->tensor_active);
        if (isfinite(g->sm_active))
            words = arena_printf(a, "%s, with work on %.0f %% of its SMs", words, g->sm_active);
    }
    return arena_printf(a, "%s.", words);
}

/* NVML's utilisation of memory tells how long it was in use, not how much of its bandwidth. */
static const char *by_plan(const struct run *run, int n, struct arena *a)
{
    const char *words = "An estimate, by the FLOPs and bytes of the plan over the measured peaks:";
    bool exceeded = false;
    for (int i = 0; i < n; i++) {
        const struct run_figures *f = &run[i].figures;
        const struct gauge_figures *g = &run[i].gauges.figures;
        if (!isfinite(f->plan_flops) || !isfinite(f->plan_bytes)) return NULL;
        words = arena_printf(
            a, "%s%s %s reads and writes at %.0f %% of the speed of memory and computes at %.0f %%",
            words, i ? ";" : "", run[i].name, 100 * f->plan_bytes, 100 * f->plan_flops);
        if (isfinite(g->memory_utilization))
            words = arena_printf(a, "%s (the driver saw memory in use %.0f %% of the time)", words,
                                 g->memory_utilization);
        exceeded |= f->plan_flops > 1;
        if (f->plan_bytes > 1) words = arena_printf(a, "%s, caches included", words);
    }
    return arena_printf(a, "%s.%s", words,
                        exceeded ? " No run can compute faster than the peak, so the peak was "
                                   "measured too low, perhaps on a busy machine: `strobe machine` "
                                   "measures it again."
                                 : "");
}

const char *busy_words(const struct run *run, int n, struct arena *a)
{
    if (!n) return NULL;
    const char *words = by_counters(run, n, a);
    return words ? words : by_plan(run, n, a);
}

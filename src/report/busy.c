#include "report/busy.h"

#include <math.h>

static const char *by_counters(const struct run *run, int n, struct arena *a)
{
    const char *words = "By the GPU's counters";
    for (int i = 0; i < n; i++) {
        const struct gauge_range *g = run[i].figures.gauges.value;
        if (!isfinite(g[GAUGE_DRAM].mean) || !isfinite(g[GAUGE_TENSOR].mean)) return NULL;
        words = arena_printf(a, "%s%s %s keeps memory %.0f %% busy and tensor cores %.0f %%", words,
                             i ? ";" : ",", run[i].name, g[GAUGE_DRAM].mean, g[GAUGE_TENSOR].mean);
        if (isfinite(g[GAUGE_SM].mean))
            words = arena_printf(a, "%s, with work on %.0f %% of its SMs", words, g[GAUGE_SM].mean);
    }
    return arena_printf(a, "%s.", words);
}

/* NVML's utilization of memory tells how long it was in use, not how much of its bandwidth. */
static const char *by_plan(const struct run *run, int n, struct arena *a)
{
    const char *words = "An estimate, by the FLOPs and bytes of the plan over the measured peaks:";
    bool exceeded = false;
    for (int i = 0; i < n; i++) {
        const struct run_summary *f = &run[i].figures;
        const struct gauge_range *g = run[i].figures.gauges.value;
        if (!isfinite(f->plan_flops) || !isfinite(f->plan_bytes)) return NULL;
        words = arena_printf(
            a, "%s%s %s reads and writes at %.0f %% of the speed of memory and computes at %.0f %%",
            words, i ? ";" : "", run[i].name, 100 * f->plan_bytes, 100 * f->plan_flops);
        if (isfinite(g[GAUGE_MEMORY_UTILIZATION].mean))
            words = arena_printf(a, "%s (the driver saw memory in use %.0f %% of the time)", words,
                                 g[GAUGE_MEMORY_UTILIZATION].mean);
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

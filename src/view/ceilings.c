#include "view/ceilings.h"

#include "base/arena.h"
#include "base/load.h"
#include "base/log.h"

enum status ceilings_measure(struct machine *m, int ranks, bool quick, bool forget,
                             const char **ret_path, struct arena *a)
{
    struct progress progress;
    const char *path = machine_path(a);
    progress_start(&progress, "machine", 0, PROGRESS_WHOLE);
    enum status st = machine_measure(m, quick, progress_share, &progress, a);
    progress_end(&progress);
    TRY(st);
    if (ranks > 1) {
        progress_start(&progress, "machine", 0, PROGRESS_WHOLE);
        st = machine_measure_links(m, ranks, quick, progress_share, &progress);
        progress_end(&progress);
        TRY(st);
    }
    if (!path) log_warning("the peaks are not stored: neither XDG_CACHE_HOME nor HOME is set");
    if (path && machine_write(m, path, forget, a) != ST_OK) {
        log_warning("the peaks are not stored: %s", fail_message());
        path = NULL;
    }
    *ret_path = path;
    return ST_OK;
}

bool ceilings_find(struct machine *m, const struct device *device, struct arena *a)
{
    return machine_find(m, device, 0, a);
}

enum status ceilings_get(struct machine *m, const struct device *device, struct arena *a)
{
    const char *path = machine_path(a);
    TRY(machine_identify(m, device, a));
    if (path && machine_read(m, path, a)) return ST_OK;
    if (m->gpu)
        log_info("the peaks of this %s are not known yet; measuring them once, quickly (`strobe "
                 "machine` measures thoroughly)",
                 m->name);
    else
        log_info("the peaks of this machine with %d thread%s are not known yet; measuring them "
                 "once, quickly (`strobe machine` measures thoroughly)",
                 m->threads, m->threads == 1 ? "" : "s");
    return ceilings_measure(m, 1, true, false, &path, a);
}

const char *ceilings_flops(double per_second, struct arena *a)
{
    if (per_second >= 1e12) return arena_printf(a, "%.3g TFLOP/s", per_second * 1e-12);
    return arena_printf(a, "%.3g GFLOP/s", per_second * 1e-9);
}

const char *ceilings_bytes(double per_second, struct arena *a)
{
    if (per_second >= 1e12) return arena_printf(a, "%.3g TB/s", per_second * 1e-12);
    return arena_printf(a, "%.3g GB/s", per_second * 1e-9);
}

const char *ceilings_who(const struct machine *m, struct arena *a)
{
    if (m->gpu) return m->name;
    return arena_printf(a, "%s, %d thread%s", m->name, m->threads, m->threads == 1 ? "" : "s");
}

const char *ceilings_words(const struct machine *m, struct arena *a)
{
    const char *peaks = "", *quickly = m->quick ? " quickly" : "";
    const char *beside =
        load_is_busy(m->others) ? ", while other programs were busy, so they may be too low" : "";
    const char *when =
        m->measurements > 1
            ? arena_printf(a, "the best of %d measurements, the last%s %.10s", m->measurements,
                           m->history[m->measurements - 1].quick ? " quickly" : "", m->date)
            : arena_printf(a, "measured%s %.10s", quickly, m->date);
    for (int i = 0; i < m->peaks; i++)
        peaks = arena_printf(a, "%s%s %s, ", peaks, machine_precision_name(m->peak[i].precision),
                             ceilings_flops(m->peak[i].flops, a));
    const struct machine_copy *in_cache = machine_copy_in_cache(m);
    const struct machine_copy *fastest = machine_copy_fastest(m);
    /* On a CPU, time bounds use the bandwidth of a copy of as many bytes (base/floor.h); for small
     * copies it can exceed the bandwidth in L2. */
    const char *less = "";
    if (!m->gpu && fastest->moved > in_cache->moved)
        less = arena_printf(a, ", up to %s for smaller copies", ceilings_bytes(fastest->moved, a));
    return arena_printf(a,
                        "peaks: %scopy %s from memory, %s in L2%s; %s, %s%s; "
                        "`strobe machine` measures again",
                        peaks, ceilings_bytes(machine_copy_large(m)->moved, a),
                        ceilings_bytes(in_cache->moved, a), less, when, ceilings_who(m, a), beside);
}

#include "view/ceilings.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/log.h"

#include <stdlib.h>

enum { PERMILLE = 1000 };

/* NULL where the user has no such folder. */
static const char *record_path(struct arena *a)
{
    const char *folder = file_cache_folder(a);
    return folder ? arena_printf(a, "%s/machine.json", folder) : NULL;
}

static void show(void *user, double done, const char *what)
{
    progress_show(user, (int64_t)(done * PERMILLE), what);
}

enum status ceilings_measure(struct machine *m, bool quick, const char **ret_path, struct arena *a)
{
    struct progress progress;
    const char *path = record_path(a);
    progress_start(&progress, "machine", 0, PERMILLE);
    enum status st = machine_measure(m, quick, show, &progress, a);
    progress_end(&progress);
    TRY(st);
    if (!path) log_warning("neither XDG_CACHE_HOME nor HOME is set: the peaks are not kept");
    if (path && machine_write(m, path) != ST_OK) {
        log_warning("the peaks are not kept: %s", fail_message());
        path = NULL;
    }
    *ret_path = path;
    return ST_OK;
}

enum status ceilings_get(struct machine *m, const struct device *device, struct arena *a)
{
    const char *path = record_path(a);
    TRY(machine_identify(m, device, a));
    bool known = path && machine_read(m, path, a);
    if (known && !machine_was_disturbed(m)) return ST_OK;
    if (known) {
        log_info("the peaks of this machine were measured beside other busy programs; measuring "
                 "them again, quickly");
        return ceilings_measure(m, true, &path, a);
    }
    if (m->gpu)
        log_info("the peaks of this %s are not known yet; measuring them once, quickly (`strobe "
                 "machine` does it thoroughly)",
                 m->name);
    else
        log_info("the peaks of this machine with %d thread%s are not known yet; measuring them "
                 "once, quickly (`strobe machine` does it thoroughly)",
                 m->threads, m->threads == 1 ? "" : "s");
    return ceilings_measure(m, true, &path, a);
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
    const char *beside = machine_was_disturbed(m) ? ", beside other busy programs" : "";
    for (int i = 0; i < m->peaks; i++)
        peaks = arena_printf(a, "%s%s %s, ", peaks, machine_precision_name(m->peak[i].precision),
                             ceilings_flops(m->peak[i].flops, a));
    const struct machine_copy *in_cache = machine_copy_in_cache(m);
    const struct machine_copy *fastest = machine_copy_fastest(m);
    /* Floors on a host are of copies of as many bytes, so small ones are held against more than that of L2. */
    const char *less =
        !m->gpu && fastest->moved > in_cache->moved
            ? arena_printf(a, ", up to %s of less", ceilings_bytes(fastest->moved, a))
            : "";
    return arena_printf(a,
                        "peaks: %scopy %s past the caches, %s in L2%s; measured%s %.10s, %s%s; "
                        "`strobe machine` measures anew",
                        peaks, ceilings_bytes(machine_copy_large(m)->moved, a),
                        ceilings_bytes(in_cache->moved, a), less, quickly, m->date,
                        ceilings_who(m, a), beside);
}

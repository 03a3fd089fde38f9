#include "machine/machine.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/host.h"
#include "base/interrupt.h"
#include "base/isa.h"
#include "base/threads.h"
#include "engine/environment.h"
#include "machine/machine_parts.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static const char *matmul_library(const struct environment *e, struct arena *a)
{
    for (int i = 0; i < e->libraries; i++)
        if (!strcmp(e->library[i].name, "oneDNN"))
            return arena_printf(a, "oneDNN %s", e->library[i].version);
    return "none";
}

enum machine_precision machine_precision(enum dtype dtype, bool tf32)
{
    /* float8 matmuls are compared with the peak of bf16, which they may exceed. */
    return dtype == DT_BF16 || dtype_is_float8(dtype) ? MACHINE_BF16
           : tf32                                     ? MACHINE_TF32
                                                      : MACHINE_F32;
}

static const char *library_of(const struct backend *b, const char *name, struct arena *a)
{
    struct device_library l;
    return backend_library(b, name, &l) && !l.unavailable_because ? arena_strdup(a, l.version)
                                                                  : NULL;
}

/* The identity of a GPU includes the versions of driver and library, because other versions may be
 * faster. */
static enum status identify_gpu(struct machine *m, struct arena *a)
{
    const struct backend *b = m->device.backend;
    struct device_facts f;
    TRY(b->devices.describe(m->device.number, &f));
    const char *driver = library_of(b, "driver", a), *products = library_of(b, "cuBLASLt", a);
    m->gpu = true;
    m->threads = 1;
    m->name = arena_strdup(a, f.name);
    m->isa = arena_printf(a, "compute capability %s, %d SMs, driver %s", f.capability, f.processors,
                          driver ? driver : "unknown");
    m->library = products ? arena_printf(a, "cuBLASLt %s", products) : "none";
    m->cache_bytes = f.cache_bytes;
    return ST_OK;
}

enum status machine_identify(struct machine *m, const struct device *device, struct arena *a)
{
    struct environment e;
    environment_gather(&e, a);
    *m = (struct machine){.device = *device, .name = e.cpu, .date = arena_strdup(a, e.date)};
    if (!device->backend->host_memory) return identify_gpu(m, a);
    m->isa = arena_printf(a, "%s of %s", isa_words[isa_used()], isa_names(a));
    m->library = matmul_library(&e, a);
    m->threads = (int)threads_count();
    long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    m->cache_bytes = cache > 0 ? cache : 0;
    return ST_OK;
}

enum status machine_measure(struct machine *m, bool quick,
                            void (*each)(void *user, double done, const char *what), void *user,
                            struct arena *a)
{
    struct machine_work w = {m, quick, each, user, 0};
    m->peaks = m->copies = m->links = 0; /* may hold an earlier record */
    int64_t threads = threads_count(), start = clock_ns();
    struct host_work before = host_work_now();
    struct environment now;
    environment_gather(&now, a);
    m->date = arena_strdup(a, now.date);
    m->quick = quick;
    enum status st = machine_measure_matmuls(&w);
    if (st == ST_OK) st = m->gpu ? machine_measure_device_copies(&w) : machine_measure_copies(&w);
    threads_set(threads);
    double others = host_others(before, host_work_now(), 1e-3 * clock_ms(start, clock_ns()));
    m->others = m->gpu || isnan(others) ? 0 : others;
    if (st == ST_OK) machine_start_history(m);
    return st;
}

enum status machine_work_done(struct machine_work *w, double share, const char *next)
{
    if (interrupt_noted())
        return fail(ST_INTERRUPTED,
                    "stopped while the peaks of this %s were measured; nothing was stored",
                    w->machine->gpu ? "GPU" : "machine");
    w->done += share;
    if (w->each) w->each(w->user, w->done, next);
    return ST_OK;
}

const struct machine_peak *machine_peak(const struct machine *m, enum machine_precision p)
{
    for (int i = 0; i < m->peaks; i++)
        if (m->peak[i].precision == p) return &m->peak[i];
    return NULL;
}

struct ceilings machine_ceilings(const struct machine *m)
{
    struct ceilings c = {.gpu = m->gpu, .threads = m->threads, .copies = m->copies};
    for (int i = 0; i < m->copies; i++) {
        c.copy_bytes[i] = (double)m->copy[i].bytes;
        c.copy_rate[i] = m->copy[i].moved;
    }
    return c;
}

struct floor machine_floor(const struct machine *m, enum machine_precision p, double flops,
                           double bytes, double ms)
{
    if (!m) return (struct floor){0};
    const struct machine_peak *peak = machine_peak(m, p);
    struct ceilings c = machine_ceilings(m);
    return floor_of(&c, peak ? peak->flops : 0, flops, bytes, ms);
}

const struct machine_copy *machine_copy_in_cache(const struct machine *m)
{
    const struct machine_copy *best = NULL;
    for (int i = 0; i < m->copies; i++)
        if (m->copy[i].bytes <= m->cache_bytes / 2) best = &m->copy[i];
    return best ? best : m->copies ? &m->copy[0] : NULL;
}

const struct machine_copy *machine_copy_fastest(const struct machine *m)
{
    const struct machine_copy *best = m->copies ? &m->copy[0] : NULL;
    for (int i = 1; i < m->copies; i++)
        if (m->copy[i].moved > best->moved) best = &m->copy[i];
    return best;
}

bool machine_has_slow_bf16(const struct machine *m)
{
    const struct machine_peak *f32 = machine_peak(m, MACHINE_F32);
    const struct machine_peak *bf16 = machine_peak(m, MACHINE_BF16);
    return f32 && bf16 && f32->flops > bf16->flops;
}

bool machine_find(struct machine *m, const struct device *device, int64_t threads, struct arena *a)
{
    const char *path = machine_path(a);
    if (machine_identify(m, device, a) != ST_OK) return false;
    if (threads && !m->gpu) m->threads = (int)threads;
    return path && machine_read(m, path, a);
}

#include "cli/device.h"

#include "base/threads.h"
#include "engine/device.h"
#include "view/ceilings.h"

int64_t device_room(const struct device *d)
{
    int64_t free = d->backend->devices.free_memory(d->number);
    return free < 0 ? -1 : free / 10 * 9;
}

enum status device_choose_measured(struct config *c, const struct config *before, bool say,
                                   struct arena *a)
{
    struct machine m;
    struct device d;
    if (c->plan.dtype == PRECISION_AUTO && !before && isa_limit(c->plan.isa) == ST_OK &&
        device_of(c, &d) == ST_OK && d.backend->host_memory && ceilings_find(&m, &d, a) &&
        machine_has_slow_bf16(&m))
        c->plan.dtype = PRECISION_FLOAT32;
    return device_choose(c, before, say);
}

enum status device_prepare(const struct config *c, struct device *ret)
{
    threads_set(c->plan.threads);
    TRY(isa_limit(c->plan.isa));
    return device_of(c, ret);
}

enum status place_check(const struct place *p)
{
    enum { THREADS_MOST = 4096 };
    if (p->threads < 0 || p->threads > THREADS_MOST)
        return fail(ST_USAGE, "--threads must be 0 to %d", THREADS_MOST);
    return p->isa ? isa_limit_word(p->isa) : ST_OK;
}

enum status place_open(const struct place *p, struct device *ret)
{
    TRY(place_check(p));
    TRY(device_of_word(p->device, ret));
    threads_set(p->threads);
    return ST_OK;
}

enum status device_of_word(const char *word, struct device *ret)
{
    struct arena a = {0};
    struct config c;
    config_init(&c);
    enum status st = config_set(&c, arena_printf(&a, "--device=%s", word ? word : "auto"), &a);
    if (st == ST_OK) st = device_of(&c, ret);
    arena_release(&a);
    return st;
}

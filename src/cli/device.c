#include "cli/device.h"

#include "base/log.h"
#include "base/threads.h"
#include "engine/device.h"

int64_t device_room(const struct device *d)
{
    int64_t free = d->backend->devices.free_memory(d->number);
    return free < 0 ? -1 : free / 10 * 9;
}

enum status device_prepare(const struct config *c, struct device *ret)
{
    threads_set(c->plan.threads);
    TRY(isa_limit(c->plan.isa));
    return device_of(c, ret);
}

int64_t device_free_threads(const struct config *c)
{
    int64_t all = threads_available(), n;
    if (threads_asked() || c->plan.deterministic || (n = threads_free()) >= all) return 0;
    log_info("other programs keep processors busy: %lld of %lld threads are used; to override, "
             "--threads=%lld",
             (long long)n, (long long)all, (long long)all);
    return n;
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

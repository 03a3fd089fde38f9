#include "cli/device.h"

#include "base/threads.h"
#include "engine/device.h"

enum status device_prepare(const struct config *c, struct device *ret)
{
    threads_set(c->plan.threads);
    TRY(isa_limit(c->plan.isa));
    return device_of(c, ret);
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

#include "cli/device.h"

#include "engine/device.h"

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

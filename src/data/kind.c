#include "data/kind.h"

#include <string.h>

static const struct data_kind *const kinds[] = {&data_characters, &data_byte_pairs, &data_tokens};

const struct data_kind *data_kind_at(int i)
{
    return i >= 0 && i < COUNT_OF(kinds) ? kinds[i] : NULL;
}

const struct data_kind *data_kind_find(const char *name)
{
    for (int i = 0; i < COUNT_OF(kinds); i++)
        if (!strcmp(kinds[i]->name, name)) return kinds[i];
    return NULL;
}

const char *data_kind_names(const char *quote, struct arena *a)
{
    const char *names = "";
    for (int i = 0; i < COUNT_OF(kinds); i++)
        names = arena_printf(a, "%s%s%s%s%s", names, i ? ", " : "", quote, kinds[i]->name, quote);
    return names;
}

#include "view/published.h"

#include <jansson.h>

/* The path is relative to the root of the repository, where the build runs. */
__asm__(".section .rodata\n"
        "published_gpt2_text:\n.incbin \"configs/published/gpt2_124m.json\"\n.byte 0\n"
        ".previous\n");
extern const char published_gpt2_text[];

void published_read(struct published *ret, struct arena *a)
{
    static json_t *all; /* lives as long as the process: sources point into it */
    if (!all) all = json_loads(published_gpt2_text, 0, NULL);
    const json_t *list = json_object_get(all, "sources");
    int n = (int)json_array_size(list);
    BUG_IF(!n, "configs/published/gpt2_124m.json has no sources");
    struct published_source *source = ARENA_NEW(a, struct published_source, n);
    for (int i = 0; i < n; i++) {
        json_t *s = json_array_get(list, (size_t)i);
        BUG_IF(json_unpack(s, "{s:s, s:s, s:s, s:o}", "id", &source[i].id, "machine",
                           &source[i].machine, "source", &source[i].source, "tokens_per_s",
                           &source[i].tokens_per_s) != 0,
               "configs/published/gpt2_124m.json: source %d", i);
    }
    *ret = (struct published){source, n};
}

double published_tokens(const struct published_source *s, const char *rung)
{
    return json_number_value(json_object_get(s->tokens_per_s, rung));
}

const char *published_words(const struct published *p, struct arena *a)
{
    const char *words = "Published: tokens/s of GPT-2 124M on other machines, reported by "
                        "others and not measured here:";
    for (int i = 0; i < p->sources; i++)
        words = arena_printf(a, "%s%s %s by %s", words, i ? ";" : "", p->source[i].machine,
                             p->source[i].source);
    return arena_printf(a, "%s.", words);
}

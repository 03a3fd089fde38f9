#include "view/published.h"

#include "present/table_cells.h"

#include <jansson.h>
#include <string.h>

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
        BUG_IF(
            json_unpack(s, "{s:s, s:s, s:s, s:o}", "id", &source[i].id, "machine",
                        &source[i].machine, "source", &source[i].source, "tokens_per_s",
                        &source[i].tokens_per_s) != 0,
            "configs/published/gpt2_124m.json: source %d lacks a field or has one of another type",
            i);
    }
    *ret = (struct published){source, n};
}

double published_rate(const struct published_source *s, const char *rung)
{
    return json_number_value(json_object_get(s->tokens_per_s, rung));
}

bool published_comparable(const struct config *c, bool gpu)
{
    const struct config_model *m = &c->model;
    return gpu && m->kind == MODEL_GPT && m->n_layer == 12 && m->n_embd == 768 && m->n_head == 12 &&
           m->block_size == 1024;
}

void published_columns(const struct published *p, bool comparable, struct table_column *ret,
                       struct arena *a)
{
    for (int i = 0; i < p->sources; i++)
        ret[i] = (struct table_column){
            .id = arena_printf(a, "published_%s_tokens_per_s", p->source[i].id),
            .title = arena_printf(a, "%s, published", p->source[i].machine),
            .help = comparable
                        ? "tokens/s of GPT-2 124M, published by others"
                        : "tokens/s of GPT-2 124M on a GPU, published by others; this ladder "
                          "measures something else",
            .is_number = true};
}

void published_set(const struct published *p, bool comparable, const char *rung, struct table *t,
                   int row, int first, struct arena *a)
{
    for (int i = 0; i < p->sources; i++) {
        double tokens = published_rate(&p->source[i], rung);
        if (!(tokens > 0)) continue;
        table_set_count(t, row, first + i, tokens, a);
        struct table_cell *cell = table_at(t, row, first + i);
        if (!comparable) cell->text = arena_printf(a, "(%s)", cell->text);
    }
}

const char *published_words(const struct published *p, bool comparable, struct arena *a)
{
    const char *words = "Published: tokens/s of GPT-2 124M on other machines, reported by "
                        "others and not measured here:";
    for (int i = 0; i < p->sources; i++)
        words = arena_printf(a, "%s%s %s by %s", words, i ? ";" : "", p->source[i].machine,
                             p->source[i].source);
    return arena_printf(a, "%s.%s", words,
                        comparable ? ""
                                   : " These numbers are in parentheses, because this ladder does "
                                     "not measure GPT-2 124M at T 1024 on a GPU: compare "
                                     "the ratios of rungs, not speeds.");
}

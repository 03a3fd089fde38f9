#include "bench/bench_grid.h"

#include "machine/machine.h"
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS_MOST = 1000000 };

bool bench_is_list(const char *word)
{
    static const char *const texts[] = {"start=", "out_dir=", "data_dir="};
    word += strspn(word, "-");
    for (int i = 0; i < COUNT_OF(texts); i++)
        if (!strncmp(word, texts[i], strlen(texts[i]))) return false;
    const char *equals = strchr(word, '=');
    return equals && strchr(equals, ',');
}

enum status bench_add_axis(struct bench_grid *g, const char *word, struct arena *a)
{
    char *key = arena_strdup(a, word + strspn(word, "-")), *rest = strchr(key, '=');
    int at = 0, capacity = 0;
    *rest++ = '\0';
    while (at < g->axes && strcmp(g->axis[at].key, key) != 0) at++;
    if (at == BENCH_AXES) return fail(ST_USAGE, "at most %d keys may vary", BENCH_AXES);
    struct bench_axis x = {.key = key};
    for (char *one; (one = strsep(&rest, ","));) {
        for (int i = 0; i < x.values; i++)
            if (!strcmp(x.value[i], one))
                return fail(ST_USAGE, "%s=%s is given twice; give each value once", key, one);
        ARENA_GROW(a, x.value, x.values, capacity);
        x.value[x.values++] = one;
    }
    g->axis[at] = x;
    if (at == g->axes) g->axes++;
    return ST_OK;
}

enum status bench_read_warmups(struct bench_grid *g, const char *words)
{
    g->warmups = 0;
    for (const char *at = words;; at++) {
        char *end;
        long n = strtol(at, &end, 10);
        if (end == at || (*end && *end != ',') || n < 0 || n > STEPS_MOST ||
            g->warmups == BENCH_WARMUPS)
            return fail(ST_USAGE,
                        "--warmup takes a number of steps from 0 to %d, or a list of up to %d such "
                        "numbers, as in 0,1,2,5; not %s",
                        STEPS_MOST, BENCH_WARMUPS, words);
        for (int i = 0; i < g->warmups; i++)
            if (g->warmup[i] == n)
                return fail(ST_USAGE, "--warmup=%s: %ld is given twice", words, n);
        g->warmup[g->warmups++] = (int)n;
        if (!*end) return ST_OK;
        at = end;
    }
}

enum status bench_read_lines(unsigned *ret_lines, const char *words)
{
    *ret_lines = 0;
    for (const char *at = words;; at++) {
        int64_t n = (int64_t)strcspn(at, ",");
        unsigned lines = bench_lines_of(at, n);
        if (!lines)
            return fail(ST_USAGE,
                        "--phase takes inference, forward, backward, update and step, as in "
                        "forward,step; not %.*s",
                        (int)n, at);
        *ret_lines |= lines;
        at += n;
        if (!*at) return ST_OK;
    }
}

enum status bench_read_order(enum bench_order *ret, const char *word)
{
    static const char *const names[BENCH_ORDERS] = {"auto", "rounds", "twice", "once"};
    for (int i = 0; i < BENCH_ORDERS; i++) {
        *ret = (enum bench_order)i;
        if (!strcmp(word ? word : "auto", names[i])) return ST_OK;
    }
    return fail(ST_USAGE, "--order must be auto, rounds, twice or once; found %s", word);
}

static int64_t count(const struct bench_grid *g)
{
    int64_t n = (int64_t)g->subjects * g->warmups;
    for (int i = 0; i < g->axes && n <= BENCH_CELLS; i++) n *= g->axis[i].values;
    return n;
}

struct bench_place bench_grid_place(const struct bench_grid *g, int cell)
{
    struct bench_place p = {.warmup = cell % g->warmups};
    cell /= g->warmups;
    for (int i = g->axes - 1; i >= 0; i--) {
        p.value[i] = cell % g->axis[i].values;
        cell /= g->axis[i].values;
    }
    p.subject = cell;
    return p;
}

/* True if all keys that determine the vocabulary are equal. */
static bool same_vocabulary_keys(const struct config *x, const struct config *y)
{
    return x->model.vocab_size == y->model.vocab_size && x->model.kind == y->model.kind &&
           !strcmp(x->data.dataset, y->data.dataset) && !strcmp(x->data.data_dir, y->data.data_dir);
}

static enum status set_vocabulary(const struct bench_grid *g, const struct bench_subject *s,
                                  struct bench_cell *c, struct arena *a)
{
    if (same_vocabulary_keys(&c->config, &s->config)) return ST_OK;
    if (g->vocabulary) return g->vocabulary(g, &c->config, &c->vocab, a);
    if (c->config.model.vocab_size) c->vocab = c->config.model.vocab_size;
    return ST_OK;
}

static enum status make_cell(const struct bench_grid *g, int i, struct bench_cell *c,
                             struct arena *a)
{
    struct bench_place at = bench_grid_place(g, i);
    const struct bench_subject *s = &g->subject[at.subject];
    *c = (struct bench_cell){.config = s->config,
                             .vocab = s->vocab,
                             .lines = g->lines,
                             .warmup = g->warmup[at.warmup],
                             .steps = g->steps};
    for (int k = 0; k < g->axes; k++) {
        const struct bench_axis *x = &g->axis[k];
        TRY(config_set(&c->config, arena_printf(a, "%s=%s", x->key, x->value[at.value[k]]), a));
    }
    TRY(machine_choose(&c->config, NULL, false, a));
    TRY(set_vocabulary(g, s, c, a));
    enum status st = model_check(&c->config);
    if (st != ST_UNSUPPORTED) return st;
    c->reason = arena_strdup(a, fail_message());
    return ST_OK;
}

enum status bench_grid_cells(const struct bench_grid *g, struct bench_cell **ret_cell,
                             int *ret_cells, struct arena *a)
{
    int64_t n = count(g);
    if (g->steps < 1 || g->steps > STEPS_MOST)
        return fail(ST_USAGE, "--steps must be between 1 and %d", STEPS_MOST);
    if (n > BENCH_CELLS)
        return fail(ST_USAGE, "more than %d cells: vary fewer keys or values", BENCH_CELLS);
    struct bench_cell *cell = ARENA_NEW(a, struct bench_cell, n);
    for (int i = 0; i < n; i++) {
        enum status st = make_cell(g, i, &cell[i], a);
        if (st != ST_OK) return fail_in(st, "%s", bench_grid_name(g, i, a));
    }
    *ret_cell = cell;
    *ret_cells = (int)n;
    return ST_OK;
}

const char *bench_grid_name(const struct bench_grid *g, int cell, struct arena *a)
{
    struct bench_place at = bench_grid_place(g, cell);
    const char *name = g->subject[at.subject].name;
    for (int i = 0; i < g->axes; i++)
        if (g->axis[i].values > 1)
            name = arena_printf(a, "%s %s=%s", name, g->axis[i].key, g->axis[i].value[at.value[i]]);
    return g->warmups > 1 ? arena_printf(a, "%s warm-up %d", name, g->warmup[at.warmup]) : name;
}

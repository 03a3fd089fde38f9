#include "suite/parts.h"

#include "base/interrupt.h"
#include "engine/device.h"
#include "suite/texts.h"

#include <stdlib.h>
#include <string.h>

/* CS336, assignment 2. 10b, of the course of 2026, does not fit in fp32 on an H200. */
/* clang-format off */
const struct suite_size cs336_sizes[] = {
    {"small",  "cs336_small.conf",   "", false},
    {"medium", "cs336_medium.conf",  "", false},
    {"large",  "cs336_large.conf",   "", false},
    {"xl",     "cs336_xl.conf",      "", false},
    {"2.7b",   "cs336_2.7b.conf",    "", false},
    {"xl2026", "cs336_xl2026.conf",  "", true},
    {"10b",    "cs336_10b.conf",     "", true},
    {0},
};
const struct suite_size cs336_small_sizes[] = {
    {"d128", "cs336_small.conf", "n_layer=2 n_head=2 n_embd=128 d_ff=0 block_size=64", false},
    {"d256", "cs336_small.conf", "n_layer=4 n_head=4 n_embd=256 d_ff=0 block_size=64", false},
    {"d384", "cs336_small.conf", "n_layer=6 n_head=6 n_embd=384 d_ff=0 block_size=64", false},
    {0},
};
/* clang-format on */
const struct suite_small cs336_smaller[SUITE_SMALLS] = {
    {"size n_layer", "models of 2 to 6 layers"},
    {"size n_embd", "128 to 384 columns"},
    {"block_size", "64 tokens per sequence"},
};
const char cs336_words[] = "dtype=float32 fusion=op flash=false";

/* --- words ------------------------------------------------------------------------------------ */

void suite_show(const struct suite_request *r, double share, const char *what)
{
    if (r->each) r->each(r->user, share, what);
}

bool suite_word_sets(const char *word, const char *key)
{
    size_t n = strlen(key);
    word += strspn(word, "-");
    return !strncmp(word, key, n) && word[n] == '=';
}

static enum status set_words(struct config *c, const char *words, struct arena *a)
{
    char *rest = arena_strdup(a, words ? words : ""), *word;
    while ((word = strsep(&rest, " ")))
        if (*word) TRY(config_set(c, word, a));
    return ST_OK;
}

enum status suite_config(const struct suite_request *r, const char *file, const char *words,
                         const char *more, struct config *ret, struct arena *a)
{
    config_init(ret);
    /* Each suite says what it changes. */
    TRY(set_words(ret, "dtype=float32 replay=false pad_vocab=0", a));
    if (file) TRY(config_read_text(ret, file, suite_text, a));
    TRY(set_words(ret, words, a));
    TRY(set_words(ret, more, a));
    for (int i = 0; i < r->words; i++)
        if (!bench_is_list(r->word[i])) TRY(config_set(ret, r->word[i], a));
    return ST_OK;
}

int64_t suite_vocabulary(const struct config *c, int64_t own)
{
    return c->model.vocab_size ? c->model.vocab_size : own;
}

enum status suite_values(const struct suite_request *r, const char *key, const char *words,
                         struct bench_axis *ret, struct arena *a)
{
    struct bench_grid g = {0};
    TRY(bench_add_axis(&g, arena_printf(a, "%s=%s", key, words), a));
    for (int i = 0; i < r->words; i++)
        if (suite_word_sets(r->word[i], key)) TRY(bench_add_axis(&g, r->word[i], a));
    *ret = g.axis[0];
    return ST_OK;
}

enum status suite_lengths(const struct suite_request *r, const char *key, const char *words,
                          int most, int64_t *ret, int *ret_n, struct arena *a)
{
    struct bench_axis x;
    TRY(suite_values(r, key, words, &x, a));
    for (int i = 0; i < x.values; i++) {
        char *end;
        ret[i < most ? i : 0] = strtoll(x.value[i], &end, 10);
        if (i >= most || *end || end == x.value[i] || ret[i] < 1 || (i && ret[i] <= ret[i - 1]))
            return fail(ST_USAGE, "--%s takes up to %d increasing integers, as in %s", key, most,
                        words);
    }
    *ret_n = x.values;
    return ST_OK;
}

enum status suite_check_lists(const struct suite_request *r, const char *const *keys)
{
    for (int i = 0; i < r->words; i++) {
        int k = 0;
        if (!bench_is_list(r->word[i])) continue;
        while (keys[k] && !suite_word_sets(r->word[i], keys[k])) k++;
        if (!keys[k])
            return fail(ST_USAGE, "%s: this suite takes only one value of it",
                        r->word[i] + strspn(r->word[i], "-"));
    }
    return ST_OK;
}

enum status suite_sizes(const struct suite_request *r, const struct suite_size *all,
                        const struct suite_size **ret, int *ret_n, struct arena *a)
{
    int n = 0, kept = 0;
    const char *known = "";
    for (; all[n].name; n++) known = arena_printf(a, "%s%s%s", known, n ? ", " : "", all[n].name);
    struct suite_size *size = ARENA_NEW(a, struct suite_size, n);
    char *rest = r->size ? arena_strdup(a, r->size) : NULL, *word;
    for (int i = 0; i < n && !r->size; i++)
        if (!all[i].asked) size[kept++] = all[i];
    while ((word = strsep(&rest, ","))) {
        int i = 0;
        while (i < n && strcmp(all[i].name, word) != 0) i++;
        if (i == n)
            return fail(ST_USAGE, "--size=%s: the sizes are %s%s", r->size, known,
                        all == cs336_small_sizes
                            ? "; or the published ones: small, medium, large, xl, 2.7b"
                            : "");
        for (int k = 0; k < kept; k++)
            if (size[k].name == all[i].name)
                return fail(ST_USAGE, "--size=%s: %s is given twice", r->size, all[i].name);
        size[kept++] = all[i];
    }
    *ret = size;
    *ret_n = kept;
    return ST_OK;
}

/* --- the device ------------------------------------------------------------------------------- */

enum status suite_device(const struct suite_request *r, struct device *ret)
{
    struct arena a = {0};
    struct config c;
    enum status st = suite_config(r, NULL, "", NULL, &c, &a);
    if (st == ST_OK) st = device_of(&c, ret);
    arena_release(&a);
    return st;
}

static bool names_published_size(const struct suite_request *r, struct arena *a)
{
    char *rest = r->size ? arena_strdup(a, r->size) : NULL, *word;
    while ((word = strsep(&rest, ",")))
        for (const struct suite_size *s = cs336_sizes; s->name; s++)
            if (!strcmp(s->name, word)) return true;
    return false;
}

enum status suite_is_small(const struct suite_request *r, bool *ret)
{
    struct device d;
    struct arena a = {0};
    TRY(suite_device(r, &d));
    *ret = d.backend->host_memory && !r->full && !names_published_size(r, &a);
    arena_release(&a);
    return ST_OK;
}

static bool has_key(const struct suite_request *r, const char *key)
{
    if (suite_is_given(r, key)) return true;
    for (int i = 0; i < r->words; i++)
        if (suite_word_sets(r->word[i], key)) return true;
    return false;
}

static bool has_one(const struct suite_request *r, const char *keys, struct arena *a)
{
    char *rest = arena_strdup(a, keys), *key;
    while ((key = strsep(&rest, " ")))
        if (has_key(r, key)) return true;
    return false;
}

void suite_say_small(struct sheet *s, const struct suite_request *r,
                     const struct suite_small *small, struct arena *a)
{
    const char *text = "The variant for CPUs", *between = ": ";
    for (int i = 0; i < SUITE_SMALLS && small[i].what; i++) {
        if (has_one(r, small[i].keys, a)) continue;
        text = arena_printf(a, "%s%s%s", text, between, small[i].what);
        between = ", ";
    }
    sheet_note(
        s, arena_printf(a, "%s. On a GPU or with --full, the suite has the published size.", text));
}

int64_t suite_free_memory(const struct suite_request *r, const struct device *d, int64_t limit)
{
    int64_t room = d->backend->devices.free_memory(d->number);
    if (r->limit) limit = r->limit;
    return limit && (room < 0 || limit < room) ? limit : room;
}

/* --- Ctrl-C ----------------------------------------------------------------------------------- */

const char suite_not_reached[] = "not reached: the suite was stopped before";

bool suite_stopped(void)
{
    return interrupt_noted() != 0;
}

enum status suite_check_stopped(bool measured)
{
    if (measured || !suite_stopped()) return ST_OK;
    return fail(ST_INTERRUPTED, "stopped before anything was measured, so there is no table");
}

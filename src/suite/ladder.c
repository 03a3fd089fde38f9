/* ladder: what each optimization gains on GPT-2 124M, measured as by `strobe ladder`. */
#include "suite/suites.h"

#include "bench/ladder.h"
#include "suite/announce.h"
#include "suite/parts.h"
#include "view/ladder_view.h"

#include <string.h>

enum { GPT2_VOCABULARY = 50257, CHARACTERS = 65, STEPS = 20 };
static const double limit_ms = 60e3, small_limit_ms = 5e3;

static const char gpt2_words[] = "model=gpt n_layer=12 n_head=12 n_embd=768 block_size=1024 "
                                 "batch_size=16 bias=true gelu=tanh",
                  laptop_words[] =
                      "model=gpt n_layer=4 n_head=4 n_embd=128 block_size=64 batch_size=12";

static const struct suite_small laptop[SUITE_SMALLS] = {
    {"n_layer", "4 layers"},
    {"n_embd", "128 columns"},
    {"batch_size block_size", "12 x 64 tokens"},
    {"", "the rungs of a CPU"},
};

enum status suite_check_ladder(const struct config *c, char *const *word, int words)
{
    for (int i = 0; i < words; i++) {
        const char *key = word[i] + strspn(word[i], "-");
        int length = (int)strcspn(key, "=");
        if (ladder_sets(c, key, length))
            return fail(ST_USAGE, "the ladder sets %.*s itself; leave that override out", length,
                        key);
    }
    return ST_OK;
}

enum status suite_run_ladder(const struct suite_request *r, struct sheet *ret, struct arena *a)
{
    static const char *const none[] = {NULL};
    struct config c;
    struct device d;
    struct ladder l;
    bool small;
    TRY(suite_check_lists(r, none));
    TRY(suite_is_small(r, &small));
    TRY(suite_device(r, &d));
    TRY(suite_config(r, NULL, small ? laptop_words : gpt2_words, NULL, &c, a));
    TRY(suite_check_ladder(&c, r->word, r->words));
    TRY(model_check(&c));
    int64_t room = suite_free_memory(r, &d, 0);
    struct ladder_options o = {.config = &c,
                               .vocab = suite_vocabulary(&c, small ? CHARACTERS : GPT2_VOCABULARY),
                               .room = room < 0 || r->limit ? room : room / 10 * 9,
                               .steps = r->steps ? (int)r->steps : STEPS,
                               .limit_ms = small ? small_limit_ms : limit_ms,
                               .machine = r->machine,
                               .begin = announce_ladder,
                               .each = r->each,
                               .user = r->user};
    TRY(ladder_run(&o, &l, a));
    struct published p;
    bool comparable = published_comparable(&c, !d.backend->host_memory);
    published_read(&p, a);
    struct sheet_table *t = sheet_add_table(ret, NULL, ladder_table(&l, &p, comparable, a));
    sheet_bars(t, "median time of a step", "ms_median", "ms_std",
               (const char *[SHEET_LABELS]){"rung"});
    if (l.peak_exceeded) sheet_note(ret, LADDER_PEAK_EXCEEDED);
    const char *padding = ladder_view_padding(&l, a);
    if (padding) sheet_note(ret, padding);
    sheet_note(ret, published_words(&p, comparable, a));
    if (small) suite_say_small(ret, r, laptop, a);
    return ST_OK;
}

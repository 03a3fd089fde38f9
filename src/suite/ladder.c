/* ladder: what each optimization gains on GPT-2 124M, measured as by `strobe ladder`. */
#include "suite/others.h"

#include "bench/ladder.h"
#include "present/table_cells.h"
#include "suite/announce.h"
#include "suite/parts.h"
#include "view/ladder_view.h"
#include "view/published.h"

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

/* clang-format off */
#define COLUMN_LIST(X) \
    X(RUNG, "rung", "rung", "what this rung adds", false) \
    X(DIFFERS, "differs", "differs by", "keys that differ from the previous rung", false) \
    X(MEAN, "ms_mean", "mean ms", "mean time of a training step", true) \
    X(STD, "ms_std", "std", "standard deviation", true) \
    X(MEDIAN, "ms_median", "median", "milliseconds", true) \
    X(STEPS_TAKEN, "steps", "n", "measured steps", true) \
    X(TOKENS, "tokens_per_s", "tokens/s", "tokens per second, from the median", true) \
    X(BEFORE, "times_before", "x before", "speedup over the last rung that ran", true) \
    X(VERDICT, "verdict", "verdict", \
      "whether it is faster than the last rung that ran, by the rule of docs/MEASURING.md", false) \
    X(FIRST, "times_first", "x first", "speedup over the first rung", true) \
    X(MEMORY, "memory_bytes", "memory", "memory of the plan", true) \
    X(KERNELS, "kernels_per_step", "kernels", "nodes of the plan that a step runs", true) \
    X(MFU, "mfu_percent", "MFU %", \
      "6 N + 12 L C T FLOPs per token, as a share of the measured peak", true) \
    X(ERROR, "product_error", "error", \
      "of one product of its type, 128 x 128 x 768, of normals: root mean square, relative", true) \
    X(LOSS, "first_loss", "first loss", "loss of the first step, for the same batch and weights", \
      true) \
    X(NOTE, "note", "note", "why the rung did not run", false)
/* clang-format on */

enum { COLUMN_LIST(TABLE_ID) COLUMNS };
static const struct table_column columns[] = {COLUMN_LIST(TABLE_COLUMN)};

static void set_row(struct table *t, int row, const struct ladder_rung *r, struct arena *a)
{
    table_set_text(t, row, RUNG, r->name);
    table_set_text(t, row, DIFFERS, r->differs);
    if (r->reason) {
        table_set_text(t, row, NOTE, r->reason);
        return;
    }
    table_set(t, row, MEAN, 4, r->ms.mean, a);
    table_set_std(t, row, STD, &r->ms, a);
    table_set(t, row, MEDIAN, 4, r->ms.median, a);
    table_set(t, row, STEPS_TAKEN, 0, r->ms.n, a);
    table_set_count(t, row, TOKENS, r->tokens_per_s, a);
    if (r->times_before > 0) {
        if (r->speed.how != JUDGED_SAME_PLAN) table_set(t, row, BEFORE, 3, r->times_before, a);
        table_set_text(t, row, VERDICT, judge_name(&r->speed));
    }
    table_set(t, row, FIRST, 3, r->times_first, a);
    table_set_bytes(t, row, MEMORY, (int64_t)r->facts.total, a);
    table_set(t, row, KERNELS, 0, r->facts.kernels, a);
    if (r->mfu > 0) table_set(t, row, MFU, 3, 100 * r->mfu, a);
    if (r->error > 0) table_set_error(t, row, ERROR, r->error, a);
    table_set(t, row, LOSS, 5, r->loss, a);
}

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
    struct table_column *column = ARENA_NEW(a, struct table_column, COLUMNS + p.sources);
    memcpy(column, columns, sizeof columns);
    published_columns(&p, comparable, &column[COLUMNS], a);
    struct sheet_table *t = sheet_add(ret, NULL, column, COLUMNS + p.sources, l.rungs, a);
    for (int i = 0; i < l.rungs; i++) {
        set_row(&t->table, i, &l.rung[i], a);
        published_set(&p, comparable, l.rung[i].name, &t->table, i, COLUMNS, a);
    }
    sheet_bars(t, "mean time of a step", "ms_mean", "ms_std", (const char *[SHEET_LABELS]){"rung"});
    if (l.peak_exceeded) sheet_note(ret, LADDER_PEAK_EXCEEDED);
    const char *padding = ladder_view_padding(&l, a);
    if (padding) sheet_note(ret, padding);
    sheet_note(ret, published_words(&p, comparable, a));
    if (small) suite_say_small(ret, r, laptop, a);
    return ST_OK;
}

/* cs336-warmup: the same cells after different numbers of warm-up steps, each in a separate
 * process, as if a script were run again: one-time work of a process (threads, handles and
 * kernels of libraries) is in its first steps. The processes run in several rounds, each in another
 * order, so that what the machine does meanwhile favors no warm-up. */
#include "suite/warmup.h"
#include "base/own.h"
#include "base/rng.h"
#include "model/model.h"
#include "suite/announce.h"
#include "suite/suites.h"

#include <stdio.h>
#include <string.h>

enum { OWN_WORDS = 6 + SUITE_OPTION_COUNT, WORDS_MOST = 48 + OWN_WORDS, ROUNDS = 3, SEED = 1 };
enum { STEPS = 10 }; /* of cs336-e2e */
static const char warmups[] = "0,1,2,5", phases[] = "forward,backward,step";

static enum status run_process(const struct suite_request *r, const struct warmup_runs *x,
                               struct warmup_process *p)
{
    char *word[WORDS_MOST];
    int words = 0;
    struct arena *a = x->a;
    char *path = arena_printf(a, "%s/%s-%d.json", r->out_dir, p->size, p->warmup);
    if (r->words > WORDS_MOST - OWN_WORDS)
        return fail(ST_USAGE, "more than %d keys", WORDS_MOST - OWN_WORDS);
    word[words++] = "bench";
    word[words++] = "--suite=cs336-e2e";
    word[words++] = "--each-step";
    word[words++] = arena_printf(a, "--size=%s", p->size);
    word[words++] = arena_printf(a, "--warmup=%d", p->warmup);
    word[words++] = arena_printf(a, "--save=%s", path);
    words += suite_option_words(r, ~(unsigned)(SUITE_SIZE | SUITE_WARMUP | SUITE_ROUNDS),
                                word + words, a);
    for (int i = 0; i < r->words; i++) word[words++] = r->word[i];
    word[words++] = arena_printf(a, "--batch_size=%lld", (long long)p->batch);
    TRY(own_check_file(path, OWN_BENCH));
    own_remove(path, OWN_BENCH); /* left by a call that was killed */
    enum status st = r->command(r->user, word, words, true);
    if (st == ST_INTERRUPTED) { /* its file may be incomplete */
        own_remove(path, OWN_BENCH);
        return ST_OK;
    }
    if (st != ST_OK && !file_exists(path))
        return st; /* if no cell ran, it fails, but its table has the reasons */
    TRY(sheet_read(path, a, &p->sheet));
    own_remove(path, OWN_BENCH);
    if (p->sheet.tables != WARMUP_TABLES) return fail(ST_FORMAT, "%s lacks a table", path);
    p->ran = true;
    return ST_OK;
}

/* The processes of one round in random order (Fisher and Yates), the same in every call. */
static void shuffle(int *order, int n, int round)
{
    for (int i = 0; i < n; i++) order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int other = (int)rng_below(SEED, RNG_TEST, (uint32_t)round, (uint64_t)i, i + 1);
        int kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static enum status run_all(const struct suite_request *r, struct warmup_runs *x,
                           const struct suite_size *size)
{
    int each = x->sizes * x->warmups, *order = ARENA_NEW(x->a, int, each);
    for (int round = 0; round < x->rounds; round++) {
        shuffle(order, each, round);
        for (int i = 0; i < each && !suite_stopped(); i++) {
            struct warmup_process *p = &x->process[x->n];
            *p = (struct warmup_process){.size = size[order[i] / x->warmups].name,
                                         .warmup = x->warmup[order[i] % x->warmups],
                                         .batch = x->batch[order[i] / x->warmups]};
            suite_show(r, (double)(round * each + i) / (x->rounds * each),
                       arena_printf(x->a, "%s warm-up %d", p->size, p->warmup));
            TRY(run_process(r, x, p));
            x->n += p->ran;
        }
    }
    return ST_OK;
}

/* Sets the batch of each size, which all its processes have. */
static enum status announce(const struct suite_request *r, struct warmup_runs *x,
                            const struct suite_size *size, struct sheet *ret)
{
    struct announce n;
    int steps = r->steps ? (int)r->steps : STEPS, warm = 0;
    TRY(announce_open(&n, r, ret, x->a));
    for (int i = 0; i < x->warmups; i++) warm += x->warmup[i];
    for (int i = 0; i < x->sizes;
         i++) { /* one cell has the steps of all its processes of a round */
        struct bench_cell c = {.warmup = warm, .steps = x->warmups * steps};
        TRY(suite_config(r, size[i].file, cs336_words, size[i].words, &c.config, x->a));
        c.vocab = suite_vocabulary(&c.config, CS336_VOCABULARY);
        TRY(bench_read_lines(&c.lines, r->phase ? r->phase : phases));
        if (model_check(&c.config) != ST_OK) c.reason = ""; /* its processes say why */
        TRY(announce_cell(&n, size[i].name, &c, x->rounds));
        x->batch[i] = c.config.data.batch_size;
    }
    announce_print(&n);
    return ST_OK;
}

enum status suite_run_warmup(const struct suite_request *r, struct sheet *ret, struct arena *a)
{
    static const char *const none[] = {NULL};
    const struct suite_size *size;
    struct bench_grid g = {0};
    struct warmup_runs x = {.rounds = r->rounds ? (int)r->rounds : ROUNDS, .a = a};
    bool small;
    TRY(suite_check_lists(r, none));
    TRY(suite_is_small(r, &small));
    TRY(suite_sizes(r, small ? cs336_small_sizes : cs336_sizes, &size, &x.sizes, a));
    TRY(bench_read_warmups(&g, r->warmup ? r->warmup : warmups));
    TRY(file_make_dirs(r->out_dir));
    x.warmup = g.warmup;
    x.warmups = g.warmups;
    x.process = ARENA_NEW(a, struct warmup_process, x.sizes * x.warmups * x.rounds);
    x.batch = ARENA_NEW(a, int64_t, x.sizes);
    TRY(announce(r, &x, size, ret));
    TRY(run_all(r, &x, size));
    TRY(suite_check_stopped(x.n > 0));
    x.size = ARENA_NEW(a, const char *, x.sizes);
    for (int i = 0; i < x.sizes; i++) x.size[i] = size[i].name;
    warmup_view(&x, ret);
    sheet_note(ret,
               arena_printf(a,
                            "Each model and warm-up ran in %d process%s of its own, %s. Within "
                            "a step the phases follow each other, so one-time work of the "
                            "process is in the first phase of step 0.",
                            x.rounds, x.rounds == 1 ? "" : "es",
                            x.rounds == 1 ? "in random order"
                                          : "one in each round, each round in random order"));
    if (small) suite_say_small(ret, r, cs336_smaller, a);
    return ST_OK;
}

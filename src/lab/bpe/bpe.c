#include "lab/bpe/bpe.h"

#include "base/clock.h"
#include "base/heap.h"
#include "base/interrupt.h"
#include "text/bpe_long.h"
#include "text/encoder.h"
#include "text/split.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

LAB_CPU_DECLARE(bpe_pattern);
LAB_CPU_DECLARE(bpe_classes);
LAB_CPU_DECLARE(bpe_masks);
LAB_CPU_DECLARE(bpe_ranks);
LAB_CPU_DECLARE(bpe_cache);
LAB_CPU_DECLARE(bpe_batches);
LAB_CPU_DECLARE(bpe_pages);
LAB_CPU_DECLARE(bpe_cuts);
const struct lab_rung bpe_rungs[] = {
    {"pattern", "bpe/cpu/01_pattern.c", .run = LAB_CPU(bpe_pattern),
     .bound = "the merges: every join looks up all pairs of its piece"},
    {"classes", "bpe/cpu/02_classes.c", .run = LAB_CPU(bpe_classes),
     .bound = "the merges, as before"},
    {"masks", "bpe/cpu/03_masks.c", .run = LAB_CPU(bpe_masks), .bound = "the merges, as before"},
    {"ranks", "bpe/cpu/04_ranks.c", .run = LAB_CPU(bpe_ranks),
     .bound = "merges of words that were encoded before"},
    {"cache", "bpe/cpu/05_cache.c", .run = LAB_CPU(bpe_cache),
     .bound = "the latency of the cache of words, one lookup after the other"},
    {"batches", "bpe/cpu/06_batches.c", .run = LAB_CPU(bpe_batches),
     .bound = "misses of the TLB, and words that are not in the cache",
     .no_gain = "L2 holds what this text needs of the cache of words"},
    {"pages", "bpe/cpu/07_pages.c", .run = LAB_CPU(bpe_pages),
     .bound = "words that are not in the cache, and pieces too long for it",
     .no_gain = "the TLB was not the limit here, or the system gives no large pages"},
    {"cuts", "bpe/cpu/08_cuts.c", .run = LAB_CPU(bpe_cuts),
     .bound = "words that are seen for the first time",
     .no_gain = "this text has few pieces that are longer than a word"},
    {0},
};

struct running {
    const struct bpe_options *o;
    struct bpe_run *ret;
    struct bpe_input input;
    struct bpe_output output;
    uint32_t *expected; /* the ids that the first rung computed */
    int64_t cache_bytes;
    struct arena *arena;
};

struct timed_rung {
    struct running *r;
    int rung;
};

/* --- one call --------------------------------------------------------------------------------- */

static void call(struct running *r, int i)
{
    const struct lab_call c = {
        .out = &r->output, .in = {&r->input}, .n = {r->o->bytes}, .threads = 1};
    r->output.count = 0;
    lab_function (&bpe_rungs[i])(&c);
}

/* Unless `warm` is set, empties the caches and opens a new encoder, so that no word is known. */
static void forget(struct running *r)
{
    if (r->o->warm && r->output.encoder) return;
    memset(r->output.small_pages, 0, (size_t)r->cache_bytes);
    memset(r->output.large_pages, 0, (size_t)r->cache_bytes);
    encoder_close(r->output.encoder);
    r->output.encoder = encoder_open(r->input.bpe, r->input.bpe_long, BPE_CACHE_BITS);
}

static uint32_t id_of(const struct running *r, int rung, int64_t k)
{
    uint32_t id = 0;
    int bytes = bpe_id_bytes(r->input.bpe);
    if (bpe_rungs[rung + 1].name) return r->output.id[k];
    memcpy(&id, (const char *)r->output.packed + k * bytes, (size_t)bytes);
    return id;
}

static void check(struct running *r, int i)
{
    forget(r);
    call(r, i);
    bool wrong = r->output.count != r->ret->ids;
    for (int64_t k = 0; k < r->ret->ids && !wrong; k++) wrong = id_of(r, i, k) != r->expected[k];
    r->ret->wrong += wrong && !r->ret->result[i].wrong;
    r->ret->result[i].wrong |= wrong;
}

static enum status check_all(struct running *r, bool stops)
{
    for (int i = 0; bpe_rungs[i].name; i++) {
        if (stops && interrupt_noted()) return fail(ST_INTERRUPTED, "interrupted");
        check(r, i);
    }
    return ST_OK;
}

static enum status sample(void *user, int calls, double *ret_ms)
{
    struct timed_rung *t = user;
    int64_t ns = 0;
    for (int k = 0; k < calls; k++) {
        forget(t->r);
        int64_t since = clock_ns();
        call(t->r, t->rung);
        ns += clock_ns() - since;
    }
    *ret_ms = (double)ns * 1e-6 / calls;
    return ST_OK;
}

/* --- the run ---------------------------------------------------------------------------------- */

static void show(void *user, double done_ms, double expected_ms)
{
    const struct running *r = user;
    if (r->o->each && expected_ms > 0)
        r->o->each(r->o->user, done_ms < expected_ms ? done_ms / expected_ms : 1,
                   "timing all variants alternately");
}

static enum status time_all(struct running *r)
{
    struct contender c[BPE_RUNGS];
    struct timed_rung t[BPE_RUNGS];
    int n = 0;
    for (int i = 0; bpe_rungs[i].name; i++) {
        if (r->ret->result[i].wrong) continue;
        t[n] = (struct timed_rung){r, i};
        c[n] = (struct contender){
            .sample = sample, .user = &t[n], .parts = 1, .budget_ms = r->o->limit_ms / BPE_RUNGS};
        n++;
    }
    const struct rounds rounds = {.most = r->o->samples,
                                  .least = r->o->samples < 10 ? r->o->samples : 10,
                                  .warmup = 1,
                                  .cold = 1,
                                  .keep = r->arena,
                                  .each = show,
                                  .user = r};
    TRY(rounds_run(&rounds, c, n));
    for (int k = 0; k < n; k++) r->ret->result[t[k].rung].time = c[k];
    return ST_OK;
}

static void conclude(struct running *r)
{
    const struct bpe_result *first = NULL, *previous = NULL;
    for (int i = 0; bpe_rungs[i].name; i++) {
        struct bpe_result *x = &r->ret->result[i];
        if (x->wrong) continue;
        x->rate = (double)r->o->bytes / x->time.total.median * 1e3;
        struct timed now = rounds_timed(&x->time, r->arena);
        if (previous) {
            struct timed before = rounds_timed(&previous->time, r->arena),
                         begin = rounds_timed(&first->time, r->arena);
            x->previous = judge(&before, &now);
            x->first = judge(&begin, &now);
        }
        if (!first) first = x;
        previous = x;
    }
}

static void count_pieces(struct running *r)
{
    struct splitter s;
    uint64_t begins[64];
    split_begin(&s, r->o->text, r->o->bytes);
    for (int64_t n; (n = split_next(&s, COUNT_OF(begins), begins)) > 0;)
        for (int64_t k = 0; k < n; k++) r->ret->pieces += __builtin_popcountll(begins[k]);
}

static void open_memory(struct running *r)
{
    enum { LARGE = 1 << 21 };
    int64_t ids = r->o->bytes + ENCODER_PADDING;
    r->cache_bytes = (int64_t)32 << BPE_CACHE_BITS;
    r->input = (struct bpe_input){.bpe = &r->o->tokenizer->bpe, .text = r->o->text};
    r->input.bpe_long = bpe_long_open(r->input.bpe);
    r->expected = heap_alloc(ids * 4);
    r->output = (struct bpe_output){.id = heap_alloc(ids * 4),
                                    .scratch = heap_alloc(ids * 4),
                                    .packed = heap_alloc(ids * 4),
                                    .small_pages = heap_aligned(LARGE, r->cache_bytes),
                                    .large_pages = heap_aligned(LARGE, r->cache_bytes)};
    madvise(r->output.small_pages, (size_t)r->cache_bytes, MADV_NOHUGEPAGE);
    madvise(r->output.large_pages, (size_t)r->cache_bytes, MADV_HUGEPAGE);
}

static void close_memory(struct running *r)
{
    bpe_long_close(r->input.bpe_long);
    encoder_close(r->output.encoder);
    free(r->expected);
    free(r->output.id);
    free(r->output.scratch);
    free(r->output.packed);
    free(r->output.small_pages);
    free(r->output.large_pages);
}

enum status bpe_run(const struct bpe_options *o, struct bpe_run *ret, struct arena *a)
{
    struct running r = {.o = o, .ret = ret, .arena = a};
    *ret = (struct bpe_run){.options = o};
    for (int i = 0; bpe_rungs[i].name; i++) ret->result[i].rung = &bpe_rungs[i];
    open_memory(&r);
    count_pieces(&r);
    forget(&r);
    call(&r, 0);
    ret->ids = r.output.count;
    memcpy(r.expected, r.output.id, (size_t)ret->ids * sizeof *r.expected);
    enum status st = check_all(&r, true);
    if (st == ST_OK) st = time_all(&r);
    if (st == ST_OK) st = check_all(&r, false);
    if (st == ST_OK) conclude(&r);
    close_memory(&r);
    return st;
}

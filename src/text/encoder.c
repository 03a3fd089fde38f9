#include "text/encoder.h"

#include "base/heap.h"
#include "text/split.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    WORD_MOST = 15,   /* bytes of a word in the cache */
    PHRASE_MOST = 63, /* bytes of a phrase in the cache of phrases */
    PHRASE_BITS = 13, /* the cache of phrases has 2^13 entries */
    BATCH = 256,      /* words whose cache lines are prefetched together */
    WINDOW = 256,     /* blocks of 64 bytes that are split together */
    HUGE_PAGE = 1 << 21,
};

/* A word: its bytes, then zeros, then its length in the last byte. */
struct word {
    uint64_t low, high;
};

/* Up to seven 16-bit ids and their count, or up to three 32-bit ids and their count. A count of 0
 * means that the entry is empty. */
union ids {
    uint16_t narrow[8];
    uint32_t wide[4];
};

struct entry {
    struct word word;
    union ids ids;
};

/* Two entries with the same hash value in one cache line; the newer entry is first. */
struct bucket {
    struct entry entry[2];
};

/* An entry for a fragment that is longer than a word, mostly a run of spaces or punctuation. */
struct phrase {
    uint64_t part[(PHRASE_MOST + 1) / sizeof(uint64_t)]; /* bytes, zeros, the length */
    union {
        uint16_t narrow[32]; /* 31 ids and their count */
        uint32_t wide[16];
    } ids;
};

/* A piece or a part of a piece. */
struct fragment {
    const char *text;
    int64_t bytes;
};

struct encoder {
    const struct bpe *bpe;
    struct bpe_long *bpe_long;
    struct bucket *cache;
    int bucket_bits;
    struct phrase *phrases;
    uint32_t *long_ranks; /* space for the ranks of the longest fragment so far */
    int64_t long_capacity;
    int fragments;
    struct fragment fragment[BATCH];
    struct word word[BATCH];
    struct bucket *bucket[BATCH];
    uint64_t begins[WINDOW];
};

struct encoder *encoder_open(const struct bpe *b, struct bpe_long *w, int cache_bits)
{
    BUG_IF(cache_bits < 2, "a cache of 2^%d words", cache_bits);
    struct encoder *e = HEAP_NEW(struct encoder, 1);
    int64_t bytes = (int64_t)sizeof(struct entry) << cache_bits;
    e->bpe = b;
    e->bpe_long = w;
    e->bucket_bits = cache_bits - 1;
    e->cache = heap_aligned(bytes < HUGE_PAGE ? 64 : HUGE_PAGE, bytes);
    if (bytes >= HUGE_PAGE) madvise(e->cache, (size_t)bytes, MADV_HUGEPAGE); /* before first use */
    memset(e->cache, 0, (size_t)bytes);
    e->phrases = HEAP_NEW(struct phrase, 1 << PHRASE_BITS);
    return e;
}

void encoder_close(struct encoder *e)
{
    if (!e) return;
    free(e->cache);
    free(e->phrases);
    free(e->long_ranks);
    free(e);
}

/* --- words ------------------------------------------------------------------------------------ */

static struct word make_word(const struct fragment *f)
{
    struct word w;
    uint64_t n = (uint64_t)f->bytes;
    memcpy(&w, f->text, sizeof w);
    w.low &= n < 8 ? ((uint64_t)1 << 8 * n) - 1 : ~(uint64_t)0;
    w.high &= n > 8 ? ((uint64_t)1 << 8 * (n - 8)) - 1 : 0;
    w.high |= n << 56;
    return w;
}

static struct bucket *find_bucket(const struct encoder *e, struct word w)
{
    uint64_t mixed = (w.low ^ w.high * 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
    mixed ^= mixed >> 32;
    return &e->cache[mixed * 0x9e3779b97f4a7c15u >> (64 - e->bucket_bits)];
}

static bool is_word(const struct entry *x, struct word w)
{
    return ((x->word.low ^ w.low) | (x->word.high ^ w.high)) == 0;
}

/* Encodes a word and stores it in the cache, unless it has too many ids for an entry. */
static inline int64_t miss(struct encoder *e, int i, void *ret, bool wide)
{
    uint32_t rank[WORD_MOST];
    const struct fragment *f = &e->fragment[i];
    int n = bpe_merge_short(e->bpe, f->text, (int)f->bytes, rank);
    union ids ids = {};
    for (int k = 0; k < n; k++) {
        uint32_t id = e->bpe->id[rank[k]];
        if (wide) {
            ((uint32_t *)ret)[k] = id;
            ids.wide[k < 3 ? k : 2] = id;
        } else {
            ((uint16_t *)ret)[k] = (uint16_t)id;
            ids.narrow[k < 7 ? k : 6] = (uint16_t)id;
        }
    }
    if (n > (wide ? 3 : 7)) return n;
    if (wide)
        ids.wide[3] = (uint32_t)n;
    else
        ids.narrow[7] = (uint16_t)n;
    struct bucket *b = e->bucket[i];
    b->entry[1] = b->entry[0];
    b->entry[0] = (struct entry){e->word[i], ids};
    return n;
}

/* --- longer fragments ------------------------------------------------------------------------- */

static int64_t encode_long(struct encoder *e, const struct fragment *f, void *ret, bool wide)
{
    if (f->bytes > e->long_capacity) {
        e->long_capacity = f->bytes;
        free(e->long_ranks);
        e->long_ranks = heap_alloc(f->bytes * (int64_t)sizeof *e->long_ranks);
    }
    int64_t n = f->bytes <= BPE_SHORT_MOST
                    ? bpe_merge_short(e->bpe, f->text, (int)f->bytes, e->long_ranks)
                    : bpe_long_merge(e->bpe_long, f->text, f->bytes, e->long_ranks);
    for (int64_t k = 0; k < n; k++) {
        uint32_t id = e->bpe->id[e->long_ranks[k]];
        if (wide)
            ((uint32_t *)ret)[k] = id;
        else
            ((uint16_t *)ret)[k] = (uint16_t)id;
    }
    return n;
}

/* The cache entry for a phrase; it may contain another phrase. *ret_new is its new content. */
static struct phrase *find_phrase(const struct encoder *e, const struct fragment *f,
                                  struct phrase *ret_new)
{
    uint64_t mixed = 0;
    memset(ret_new->part, 0, sizeof ret_new->part);
    memcpy(ret_new->part, f->text, (size_t)f->bytes);
    ret_new->part[COUNT_OF(ret_new->part) - 1] |= (uint64_t)f->bytes << 56;
    for (int i = 0; i < COUNT_OF(ret_new->part); i++) {
        mixed = (mixed ^ ret_new->part[i]) * 0x9e3779b97f4a7c15u;
        mixed ^= mixed >> 32;
    }
    return &e->phrases[mixed * 0xd6e8feb86659fd93u >> (64 - PHRASE_BITS)];
}

static int64_t encode_phrase(struct encoder *e, const struct fragment *f, void *ret, bool wide)
{
    struct phrase new, *p = find_phrase(e, f, &new);
    int64_t size = wide ? 4 : 2, most = wide ? 15 : 31;
    if (!memcmp(p->part, new.part, sizeof new.part)) {
        int64_t n = wide ? p->ids.wide[most] : p->ids.narrow[most];
        memcpy(ret, &p->ids, (size_t)(n * size));
        return n;
    }
    int64_t n = encode_long(e, f, ret, wide);
    if (n > most) return n;
    memcpy(&new.ids, ret, (size_t)(n * size));
    if (wide)
        new.ids.wide[most] = (uint32_t)n;
    else
        new.ids.narrow[most] = (uint16_t)n;
    *p = new;
    return n;
}

/* Encodes the fragments of the batch. A hit always copies 16 bytes, even if the entry has fewer
 * ids. */
static inline __attribute__((always_inline)) int64_t flush_as(struct encoder *e, char *ret,
                                                              bool wide)
{
    int64_t size = wide ? 4 : 2, count = 0;
    for (int i = 0; i < e->fragments; i++) {
        if (e->fragment[i].bytes > WORD_MOST) continue;
        e->word[i] = make_word(&e->fragment[i]);
        e->bucket[i] = find_bucket(e, e->word[i]);
        __builtin_prefetch(e->bucket[i]);
    }
    for (int i = 0; i < e->fragments; i++) {
        char *to = ret + count * size;
        if (e->fragment[i].bytes > WORD_MOST) {
            bool is_phrase = e->fragment[i].bytes <= PHRASE_MOST;
            count += is_phrase ? encode_phrase(e, &e->fragment[i], to, wide)
                               : encode_long(e, &e->fragment[i], to, wide);
            continue;
        }
        const struct entry *x = e->bucket[i]->entry;
        x += !is_word(x, e->word[i]);
        if (is_word(x, e->word[i])) {
            memcpy(to, &x->ids, sizeof x->ids);
            count += wide ? x->ids.wide[3] : x->ids.narrow[7];
        } else {
            count += miss(e, i, to, wide);
        }
    }
    e->fragments = 0;
    return count;
}

static int64_t flush(struct encoder *e, char *ret)
{
    return bpe_id_bytes(e->bpe) == 4 ? flush_as(e, ret, true) : flush_as(e, ret, false);
}

/* --- pieces ----------------------------------------------------------------------------------- */

/* The ids of a text so far. */
struct output {
    char *ids;
    int64_t count;
};

static void put(struct encoder *e, const char *text, int64_t bytes, struct output *out)
{
    e->fragment[e->fragments++] = (struct fragment){text, bytes};
    if (e->fragments == BATCH) out->count += flush(e, out->ids + out->count * bpe_id_bytes(e->bpe));
}

static void put_piece(struct encoder *e, const char *text, int64_t bytes, struct output *out)
{
    if (bytes <= WORD_MOST) {
        put(e, text, bytes, out);
        return;
    }
    int64_t from = 0;
    for (int64_t i = 1; i < bytes; i++) {
        if (bpe_may_join(e->bpe, (uint8_t)text[i - 1], (uint8_t)text[i])) continue;
        put(e, text + from, i - from, out);
        from = i;
    }
    put(e, text + from, bytes - from, out);
}

int64_t encoder_run(struct encoder *e, const char *text, int64_t bytes, void *ret)
{
    struct splitter s;
    struct output out = {.ids = ret};
    int64_t begin = 0; /* the beginning of the piece whose end was not found yet */
    split_begin(&s, text, bytes);
    for (int64_t base = 0, blocks; (blocks = split_next(&s, WINDOW, e->begins)) > 0;
         base += blocks * SPLIT_BLOCK) {
        for (int64_t k = 0; k < blocks; k++) {
            for (uint64_t left = e->begins[k]; left; left &= left - 1) {
                int64_t at = base + k * SPLIT_BLOCK + __builtin_ctzll(left);
                if (at > begin) put_piece(e, text + begin, at - begin, &out);
                begin = at;
            }
        }
    }
    if (bytes > begin) put_piece(e, text + begin, bytes - begin, &out);
    return out.count + flush(e, out.ids + out.count * bpe_id_bytes(e->bpe));
}

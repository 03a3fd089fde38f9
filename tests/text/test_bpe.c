/* Merges against the plainest ones: random vocabularies, long fragments, the cache, cuts. */
#include "text/bpe.h"

#include "../support/slow_bpe.h"
#include "text/encoder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES = 256, MERGES = 300, IDS = BYTES + MERGES, TOKEN = 64, LONG = 3000 };

/* A vocabulary as training would make it: each merge joins two tokens that exist. */
struct random_vocabulary {
    char bytes[IDS][TOKEN];
    struct token_text text[IDS];
    struct bpe_merge merge[MERGES];
    int ids;
    struct bpe bpe;
    struct bpe_long *bpe_long;
    struct arena arena;
};

/* Byte b has the id 255 - b, so that ids are not ranks. Words are of `letters` bytes from 'a'. */
static void make(struct random_vocabulary *v, uint64_t *seed, int letters)
{
    v->ids = BYTES;
    for (int b = 0; b < BYTES; b++) {
        v->bytes[BYTES - 1 - b][0] = (char)b;
        v->text[BYTES - 1 - b] = (struct token_text){v->bytes[BYTES - 1 - b], 1};
    }
    for (int tries = 0; tries < 20000 && v->ids < IDS; tries++) {
        uint32_t part[2];
        for (int k = 0; k < 2; k++) {
            uint64_t made = (uint64_t)(v->ids - BYTES),
                     r = slow_random(seed, made + (uint64_t)letters);
            part[k] = r < made ? (uint32_t)(BYTES + r) : (uint32_t)(BYTES - 1 - 'a' - (r - made));
        }
        const struct token_text *l = &v->text[part[0]], *r = &v->text[part[1]];
        if (l->length + r->length >= TOKEN) continue;
        char *joined = v->bytes[v->ids];
        memcpy(joined, l->bytes, (size_t)l->length);
        memcpy(joined + l->length, r->bytes, (size_t)r->length);
        struct token_text t = {joined, l->length + r->length};
        bool known = false;
        for (int i = 0; i < v->ids; i++)
            known |= v->text[i].length == t.length &&
                     !memcmp(v->text[i].bytes, t.bytes, (size_t)t.length);
        if (known) continue;
        v->merge[v->ids - BYTES] = (struct bpe_merge){part[0], part[1], (uint32_t)v->ids};
        v->text[v->ids++] = t;
    }
    assert_int_equal(bpe_build(&v->bpe, v->text, v->ids, v->merge, v->ids - BYTES, &v->arena),
                     ST_OK);
    v->bpe_long = bpe_long_open(&v->bpe);
}

static void release(struct random_vocabulary *v)
{
    bpe_long_close(v->bpe_long);
    arena_release(&v->arena);
    free(v);
}

static int64_t random_word(uint64_t *seed, int letters, int64_t most, char *ret)
{
    int64_t n = 1 + (int64_t)slow_random(seed, (uint64_t)most);
    for (int64_t i = 0; i < n; i++) ret[i] = (char)('a' + slow_random(seed, (uint64_t)letters));
    return n;
}

static void test_merges_equal_the_plainest(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int round = 0; round < 40; round++) {
        int letters = 1 + round % 4;
        struct random_vocabulary *v = calloc(1, sizeof *v);
        make(v, &seed, letters);
        for (int i = 0; i < 60; i++) {
            char word[BPE_SHORT_MOST];
            uint32_t expected[BPE_SHORT_MOST], got[BPE_SHORT_MOST];
            int64_t n = random_word(&seed, letters, BPE_SHORT_MOST, word),
                    count =
                        slow_merge(v->text, v->ids, v->merge, v->ids - BYTES, word, n, expected);
            assert_int_equal(bpe_merge_short(&v->bpe, word, (int)n, got), count);
            for (int64_t k = 0; k < count; k++) assert_int_equal(v->bpe.id[got[k]], expected[k]);
            assert_int_equal(bpe_long_merge(v->bpe_long, word, n, got), count);
            for (int64_t k = 0; k < count; k++) assert_int_equal(v->bpe.id[got[k]], expected[k]);
        }
        release(v);
    }
}

static void test_long_fragments(void **state)
{
    (void)state;
    uint64_t seed = 5;
    struct random_vocabulary *v = calloc(1, sizeof *v);
    make(v, &seed, 2);
    for (int i = 0; i < 6; i++) {
        static char word[LONG];
        static uint32_t expected[LONG], got[LONG];
        int64_t n = LONG;
        memset(word, 'a', LONG);
        if (i) n = random_word(&seed, 1 + i % 2, LONG, word);
        int64_t count = slow_merge(v->text, v->ids, v->merge, v->ids - BYTES, word, n, expected);
        assert_int_equal(bpe_long_merge(v->bpe_long, word, n, got), count);
        for (int64_t k = 0; k < count; k++) assert_int_equal(v->bpe.id[got[k]], expected[k]);
    }
    release(v);
}

static int64_t slow_encode(const struct random_vocabulary *v, const char *text, int64_t bytes,
                           uint32_t *ret)
{
    int64_t count = 0;
    for (int64_t at = 0, n; at < bytes; at += n) {
        n = slow_piece(text, bytes, at);
        count += slow_merge(v->text, v->ids, v->merge, v->ids - BYTES, text + at, n, ret + count);
    }
    return count;
}

/* A cache of two buckets, so that words replace each other, and a large one; the texts repeat. */
static void test_encoder(void **state)
{
    (void)state;
    uint64_t seed = 9;
    struct random_vocabulary *v = calloc(1, sizeof *v);
    make(v, &seed, 3);
    for (int bits = 2; bits <= 10; bits += 8) {
        struct encoder *e = encoder_open(&v->bpe, v->bpe_long, bits);
        for (int i = 0; i < 400; i++) {
            enum { MOST = 500 };
            static char text[MOST + ENCODER_PADDING];
            static uint32_t expected[MOST];
            static uint16_t got[MOST + ENCODER_PADDING];
            int64_t n = slow_random_text(&seed, MOST, text),
                    count = slow_encode(v, text, n, expected);
            assert_int_equal(encoder_run(e, text, n, got), count);
            for (int64_t k = 0; k < count; k++) assert_int_equal(got[k], expected[k]);
        }
        encoder_close(e);
    }
    release(v);
}

/* Tokens of up to 256 bytes, also by merges that are never used, as (aaa, a) before aaa is made. */
static void test_long_tokens(void **state)
{
    (void)state;
    enum { LONGEST = 256, ALL = BYTES + 9 };
    static char bytes[BYTES], a[LONGEST];
    struct token_text text[ALL];
    struct bpe_merge merge[16];
    struct arena arena = {};
    struct bpe b;
    int merges = 0;
    memset(a, 'a', LONGEST);
    for (int i = 0; i < BYTES; i++) {
        bytes[i] = (char)i;
        text[i] = (struct token_text){bytes + i, 1};
    }
    for (int k = 1; k <= 8; k++) {
        uint32_t half = k > 1 ? (uint32_t)(BYTES + k - 2) : 'a';
        text[BYTES + k - 1] = (struct token_text){a, 1 << k};
        merge[merges++] = (struct bpe_merge){half, half, (uint32_t)(BYTES + k - 1)};
        if (k == 2) merge[merges++] = (struct bpe_merge){ALL - 1, 'a', BYTES + 1};
    }
    text[ALL - 1] = (struct token_text){a, 3};
    merge[merges++] = (struct bpe_merge){BYTES, 'a', ALL - 1};
    assert_int_equal(bpe_build(&b, text, ALL, merge, merges, &arena), ST_OK);
    struct bpe_long *w = bpe_long_open(&b);
    for (int64_t n = 1; n <= LONG; n += n < 20 ? 1 : 97) {
        static char word[LONG];
        static uint32_t expected[LONG], got[LONG];
        memset(word, 'a', LONG);
        int64_t count = slow_merge(text, ALL, merge, merges, word, n, expected);
        assert_int_equal(bpe_long_merge(w, word, n, got), count);
        for (int64_t k = 0; k < count; k++) assert_int_equal(b.id[got[k]], expected[k]);
    }
    bpe_long_close(w);
    arena_release(&arena);
}

static void refused(struct token_text *text, int ids, const struct bpe_merge *merge, int merges,
                    const char *why)
{
    struct bpe b;
    struct arena a = {};
    assert_int_equal(bpe_build(&b, text, ids, merge, merges, &a), ST_FORMAT);
    arena_release(&a);
    if (!strstr(fail_message(), why)) fail_msg("\"%s\" is not about \"%s\"", fail_message(), why);
}

static void test_refusals(void **state)
{
    (void)state;
    static char bytes[BYTES];
    struct token_text text[BYTES + 3] = {};
    for (int b = 0; b < BYTES; b++) {
        bytes[b] = (char)b;
        text[b] = (struct token_text){bytes + b, 1};
    }
    text[256] = (struct token_text){"ab", 2};
    text[257] = (struct token_text){"abc", 3};
    text[258] = (struct token_text){"bc", 2};
    const struct bpe_merge twice[] = {{'a', 'b', 256}, {256, 'c', 257}, {'a', 'b', 256}};
    refused(text, 259, twice, 3, "merge 3 makes token 256, which an earlier one made already");
    const struct bpe_merge unmade[] = {{258, 'c', 257}};
    refused(text, 259, unmade, 1, "merge 1 joins token 258, which no merge makes");
    const struct bpe_merge later[] = {{'b', 'c', 258}, {256, 'c', 257}, {'a', 'b', 256}};
    refused(text, 259, later, 3, "merge 2 joins tokens that only later merges make");
    refused(text, 200, NULL, 0, "byte 0xc8 is not a token");
    text[256] = text['x'];
    refused(text, 259, NULL, 0, "tokens 120 and 256 of the vocabulary are the same byte 0x78");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merges_equal_the_plainest),
        cmocka_unit_test(test_long_fragments),
        cmocka_unit_test(test_encoder),
        cmocka_unit_test(test_long_tokens),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

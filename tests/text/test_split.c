/* Pieces by masks against the pattern itself, with and without AVX2. */
#include "text/split.h"

#include "../support/slow_bpe.h"
#include "base/hash.h"
#include "base/isa.h"
#include "base/utf8.h"
#include "text/unicode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 4096 };

/* One byte for each byte of the text: 1 where a piece begins. */
static void fast(const char *text, int64_t bytes, uint8_t *ret)
{
    struct splitter s;
    uint64_t begins[3];
    memset(ret, 0, MOST);
    split_begin(&s, text, bytes);
    for (int64_t base = 0, n; (n = split_next(&s, COUNT_OF(begins), begins)) > 0; base += n * 64)
        for (int64_t i = 0; i < n * 64; i++)
            if (begins[i / 64] >> i % 64 & 1) {
                assert_true(base + i < bytes);
                ret[base + i] = 1;
            }
}

static void slow(const char *text, int64_t bytes, uint8_t *ret)
{
    memset(ret, 0, MOST);
    for (int64_t at = 0; at < bytes; at += slow_piece(text, bytes, at)) ret[at] = 1;
}

static void assert_pieces(const char *text, int64_t bytes)
{
    static uint8_t x[MOST], y[MOST];
    fast(text, bytes, x);
    slow(text, bytes, y);
    for (int64_t i = 0; i < bytes; i++)
        if (x[i] != y[i])
            fail_msg("byte %lld of %lld of \"%.*s\"", (long long)i, (long long)bytes, (int)bytes,
                     text);
}

static void check_random_texts(void)
{
    char text[MOST];
    uint64_t seed = 7;
    for (int i = 0; i < 20000; i++) {
        int64_t n = slow_random_text(&seed, 300, text);
        char *exact = memcpy(test_malloc((size_t)n + 1), text, (size_t)n); /* found by sanitizers */
        assert_pieces(exact, n);
        test_free(exact);
    }
}

static void test_random_texts(void **state)
{
    (void)state;
    check_random_texts();
    assert_int_equal(isa_limit_word("plain"), ST_OK);
    check_random_texts();
    assert_int_equal(isa_limit_word("auto"), ST_OK);
}

/* Each class at each offset, so that every edge of a block is crossed by every rule. */
static void test_block_edges(void **state)
{
    (void)state;
    static const char *const middle[] = {
        "'ll x",   "'s",          "'sx", "  x", " \u3000x", "\u3000", "\u3000\u3000y", "\xc2\xa0z",
        "\u65e5a", "\U0001f600b", " 's", "''s", "x's y",    "1 2",    "\xe3\x80"};
    for (int k = 0; k < COUNT_OF(middle); k++)
        for (int offset = 0; offset < 140; offset++)
            for (int after = 0; after < 3; after++) {
                char text[MOST];
                memset(text, offset % 2 ? 'x' : ' ', (size_t)offset);
                strcpy(text + offset, middle[k]);
                strcat(text, after == 0 ? "" : after == 1 ? " tail of text" : "\n");
                assert_pieces(text, (int64_t)strlen(text));
            }
}

static void test_known_pieces(void **state)
{
    (void)state;
    const struct {
        const char *text, *pieces;
    } known[] = {
        {"I'm you're DON'T", "I|'m| you|'re| DON|'|T"},
        {" 's ''s 'tis", " '|s| ''|s| '|tis"},
        {"a  b\n\nc  ", "a| | b|\n|\n|c|  "},
        {"x 12ab!?", "x| 12|ab|!?"},
        {"it\u2019s", "it|\u2019|s"},
    };
    for (int i = 0; i < COUNT_OF(known); i++) {
        static uint8_t begins[MOST];
        char shown[200] = "";
        int64_t n = (int64_t)strlen(known[i].text);
        fast(known[i].text, n, begins);
        for (int64_t at = 0; at < n; at++) {
            if (at && begins[at]) strcat(shown, "|");
            strncat(shown, known[i].text + at, 1);
        }
        assert_string_equal(shown, known[i].pieces);
    }
}

/* Both parts of a text that is cut give its pieces, whatever was read after the cut. */
static void test_safe_cuts(void **state)
{
    (void)state;
    char text[MOST];
    static uint8_t whole[MOST], left[MOST], right[MOST];
    uint64_t seed = 11;
    int cuts = 0;
    for (int i = 0; i < 5000; i++) {
        int64_t n = slow_random_text(&seed, 300, text), read = (int64_t)slow_random(&seed, 301);
        int64_t cut = split_safe_cut(text, min_i64(read, n), read);
        if (cut == 0) continue;
        cuts++;
        slow(text, n, whole);
        slow(text, cut, left);
        slow(text + cut, n - cut, right);
        assert_memory_equal(whole, left, cut);
        assert_memory_equal(whole + cut, right, n - cut);
    }
    assert_true(cuts > 2500);
    assert_int_equal(split_safe_cut("aaaa", 4, 4), 0);
}

/* The digest of the classes of all code points, from Unicode 16's data and checked with Hugging
 * Face's tokenizers 0.23. */
static void test_unicode_classes(void **state)
{
    (void)state;
    static uint8_t class[UTF8_LIMIT];
    char digest[HASH_HEX];
    for (int32_t code = 0; code < UTF8_LIMIT; code++) class[code] = (uint8_t)unicode_class(code);
    hash_bytes(class, sizeof class, digest);
    assert_string_equal(digest, "ba830e7f669dd0fcc40141409e2c8be621eead74b1d0d659dc89185f117d69c8");
    assert_int_equal(class['x'], CLASS_LETTER);
    assert_int_equal(class[0x10d40], CLASS_NUMBER); /* new in Unicode 16 */
    assert_int_equal(class[0x180e], CLASS_OTHER);
    assert_int_equal(class[0x3000], CLASS_SPACE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_pieces),    cmocka_unit_test(test_random_texts),
        cmocka_unit_test(test_block_edges),     cmocka_unit_test(test_safe_cuts),
        cmocka_unit_test(test_unicode_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

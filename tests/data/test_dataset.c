#include "data/dataset.h"

#include "../support/workdir.h"
#include "base/file.h"
#include "data/kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct arena arena;

static int set_up(void **state)
{
    (void)state;
    workdir_open();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_release(&arena);
    workdir_close();
    return 0;
}

static const char text[] = "hello w\xc3\xb6rld \xe2\x82\xac \xf0\x9f\x8e\xb2!\n";

static enum status write_text(const struct data_kind *kind, const char *name, const char *from,
                              int64_t bytes, struct dataset_facts *ret)
{
    const struct dataset_text t = {kind, from, bytes, "a test"};
    return dataset_write(workdir_path("data"), name, &t, true, ret);
}

static void write_named(const char *name)
{
    struct dataset_facts facts;
    assert_int_equal(write_text(&data_characters, name, text, (int64_t)strlen(text), &facts),
                     ST_OK);
    assert_int_equal(facts.tokens, 17);
    assert_int_equal(facts.count[SPLIT_TRAIN], 15); /* int(0.9 * 17) */
    assert_int_equal(facts.count[SPLIT_VAL], 2);
    assert_int_equal(facts.vocabulary, 13);
}

static enum status open_named(struct dataset *d, const char *name)
{
    return dataset_open(d, workdir_path("data"), name, &arena);
}

static void assert_message_has(const char *part)
{
    if (!strstr(fail_message(), part)) fail_msg("\"%s\" lacks \"%s\"", fail_message(), part);
}

static void test_round_trip(void **state)
{
    (void)state;
    write_named("mytext");
    struct dataset d;
    assert_int_equal(open_named(&d, "mytext"), ST_OK);
    static const char *const sorted[] = {"\n",
                                         " ",
                                         "!",
                                         "d",
                                         "e",
                                         "h",
                                         "l",
                                         "o",
                                         "r",
                                         "w",
                                         "\xc3\xb6",
                                         "\xe2\x82\xac",
                                         "\xf0\x9f\x8e\xb2"};
    assert_int_equal(d.vocabulary.size, COUNT_OF(sorted));
    for (int i = 0; i < COUNT_OF(sorted); i++)
        assert_string_equal(vocabulary_text(&d.vocabulary, i), sorted[i]);

    int32_t *ids;
    int64_t count;
    assert_int_equal(vocabulary_encode(&d.vocabulary, text, &arena, &ids, &count), ST_OK);
    assert_int_equal(count, 17);
    int32_t token[17];
    assert_int_equal(dataset_read(&d, SPLIT_TRAIN, 0, 15, token), ST_OK);
    assert_int_equal(dataset_read(&d, SPLIT_VAL, 0, 2, token + 15), ST_OK);
    for (int i = 0; i < 17; i++) assert_int_equal(token[i], ids[i]);
    assert_int_equal(dataset_read(&d, SPLIT_TRAIN, 13, 2, token), ST_OK);
    for (int i = 0; i < 2; i++) assert_int_equal(token[i], ids[13 + i]);
    assert_string_equal(d.source, "a test");
    char back[64] = "";
    for (int i = 0; i < count; i++) strcat(back, vocabulary_text(&d.vocabulary, ids[i]));
    assert_string_equal(back, text);
    dataset_close(&d);

    struct vocabulary v;
    assert_int_equal(vocabulary_read(&v, workdir_path("data/mytext/meta.json"), &arena), ST_OK);
    assert_int_equal(v.size, 13);
    assert_string_equal(vocabulary_text(&v, 12), "\xf0\x9f\x8e\xb2");
    assert_string_equal(vocabulary_text(&v, 13), "");
    assert_string_equal(vocabulary_text(&v, -1), "");
}

/* Token ids equal those of nanoGPT's prepare.py for an English text of these characters. */
static void test_numbers_of_shakespeare(void **state)
{
    (void)state;
    const char *alphabet = "zyxwvutsrqponmlkjihgfedcbaZYXWVUTSRQPONMLKJIHGFEDCBA\n !$&',-.3:;?";
    struct dataset_facts facts;
    assert_int_equal(write_text(&data_characters, "s", alphabet, (int64_t)strlen(alphabet), &facts),
                     ST_OK);
    assert_int_equal(facts.vocabulary, 65);
    struct dataset d;
    assert_int_equal(open_named(&d, "s"), ST_OK);
    int32_t *ids;
    int64_t count;
    assert_int_equal(vocabulary_encode(&d.vocabulary, "\n Aaz", &arena, &ids, &count), ST_OK);
    const int32_t expected[] = {0, 1, 13, 39, 64};
    assert_int_equal(count, 5);
    assert_memory_equal(ids, expected, sizeof expected);
    dataset_close(&d);
}

static void test_unknown_character_is_named(void **state)
{
    (void)state;
    write_named("mytext");
    struct dataset d;
    assert_int_equal(open_named(&d, "mytext"), ST_OK);
    int32_t *ids;
    int64_t count;
    assert_int_equal(vocabulary_encode(&d.vocabulary, "he\xc3\xa4", &arena, &ids, &count),
                     ST_USAGE);
    assert_message_has("\xc3\xa4");
    assert_message_has("U+00E4");
    assert_int_equal(vocabulary_encode(&d.vocabulary, "he\xff", &arena, &ids, &count), ST_FORMAT);
    assert_message_has("byte 2");
    dataset_close(&d);
}

static void test_invalid_text_is_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
        const char *part;
    } cases[] = {
        {"ab\xff"
         "cdefghijkl",
         13, "byte 2"},                               /* no lead byte */
        {"abcdefghij\xc3", 11, "byte 10"},            /* truncated */
        {"\xc0\xafzzzzzzzzz", 11, "byte 0"},          /* overlong */
        {"a\xed\xa0\x80zzzzzzzzz", 13, "byte 1"},     /* a surrogate */
        {"a\xf4\x90\x80\x80zzzzzzzzz", 14, "byte 1"}, /* past U+10FFFF */
        {"a\xe2\x82zzzzzzzzz", 12, "byte 1"},         /* missing continuation byte */
        {"abcd\0efghijkl", 13, "byte 4"},
        {"a", 1, "too few"},
        {"", 0, "too few"},
    };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct dataset_facts facts;
        enum status st = write_text(&data_characters, "bad", cases[i].text, cases[i].bytes, &facts);
        if (st == ST_OK) fail_msg("case %d was taken", i);
        assert_message_has(cases[i].part);
        assert_false(file_exists(workdir_path("data/bad")));
    }
}

static void test_missing_names_the_command(void **state)
{
    (void)state;
    struct dataset d;
    assert_int_equal(open_named(&d, "shakespeare_char"), ST_ABSENT);
    assert_message_has("`strobe data shakespeare_char --data_dir ");
    assert_int_equal(dataset_open(&d, "data", "no_such_set", &arena), ST_ABSENT);
    assert_string_equal(fail_message(),
                        "data/no_such_set does not exist: create it with `strobe data "
                        "no_such_set --from FILE`, or name the folder in which it is with "
                        "--data_dir");
    assert_int_equal(open_named(&d, "../mytext"), ST_USAGE);
    assert_int_equal(open_named(&d, ""), ST_USAGE);
}

static void test_rewriting_replaces_everything(void **state)
{
    (void)state;
    write_named("mytext");
    workdir_write(workdir_path("data/mytext/stray"), "x", 1);
    struct dataset_facts facts;
    assert_int_equal(write_text(&data_characters, "mytext", text, (int64_t)strlen(text), &facts),
                     ST_USAGE);
    assert_message_has("data/mytext/stray was not written by Strobe");
    assert_true(file_exists(workdir_path("data/mytext/stray")));
    assert_int_equal(unlink(workdir_path("data/mytext/stray")), 0);
    write_named("mytext");
    assert_false(file_exists(workdir_path("data/.mytext.tmp")));
    struct dataset d;
    assert_int_equal(open_named(&d, "mytext"), ST_OK);
    dataset_close(&d);
}

static void expect_refused(const char *what, int64_t at)
{
    struct dataset d;
    if (open_named(&d, "mytext") == ST_OK)
        fail_msg("taken although %s at %lld", what, (long long)at);
    assert_message_has("mytext");
}

static void test_every_token_bit_flip_is_detected(void **state)
{
    (void)state;
    for (int s = 0; s < 2; s++) {
        write_named("mytext");
        const char *path = workdir_path(s ? "data/mytext/val.bin" : "data/mytext/train.bin");
        for (int64_t at = 0; at < workdir_size(path); at++) {
            workdir_flip(path, at, (int)(at % 8));
            expect_refused("a bit was flipped", at);
            workdir_flip(path, at, (int)(at % 8));
        }
        struct dataset d;
        assert_int_equal(open_named(&d, "mytext"), ST_OK);
        dataset_close(&d);
    }
}

static void test_truncation_is_detected(void **state)
{
    (void)state;
    static const char *const names[] = {"data/mytext/train.bin", "data/mytext/val.bin",
                                        "data/mytext/meta.json"};
    for (int i = 0; i < COUNT_OF(names); i++) {
        write_named("mytext");
        for (int64_t n = workdir_size(workdir_path(names[i])) - 1; n >= 0; n--) {
            workdir_truncate(workdir_path(names[i]), n);
            expect_refused("truncated", n);
        }
        bool meta = i == 2;
        if (meta) remove(workdir_path(names[0])); /* else it is one of nanoGPT: test_foreign.c */
        remove(workdir_path(names[i]));
        expect_refused("removed", i);
        assert_message_has(meta ? "make one under another name (`strobe data OTHER --from FILE`)"
                                : "`strobe data mytext --from FILE");
        if (meta) remove(workdir_path(names[1]));
    }
}

/* A flipped bit in "source" cannot be detected and does no harm; any other must be detected. */
static void test_every_meta_bit_flip_is_detected(void **state)
{
    (void)state;
    write_named("mytext");
    const char *path = workdir_path("data/mytext/meta.json");
    char *meta;
    int64_t bytes;
    assert_int_equal(file_read(path, &arena, &meta, &bytes), ST_OK);
    char *key = strstr(meta, "\"source\""), *end = strstr(key, "\"vocabulary\"");
    for (int64_t at = 0; at < bytes; at++) {
        if (meta + at >= key && meta + at < end) continue;
        for (int bit = 0; bit < 8; bit++) {
            workdir_flip(path, at, bit);
            struct dataset d;
            if (open_named(&d, "mytext") == ST_OK) fail_msg("bit %d of byte %d", bit, (int)at);
            workdir_flip(path, at, bit);
        }
    }
}

static void test_other_versions_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *meta, *part;
    } cases[] = {
        {"{\"v\":2,\"kind\":\"characters\"}", "another version"},
        {"{\"v\":1,\"kind\":\"words\"}", "\"words\""},
        {"{\"v\":1}", "missing"},
        {"[]", "\"v\""},
        {"{\"v\":1,\"v\":1}", "not valid JSON"},
        {"{\"v\":1,\"kind\":\"characters\",\"vocabulary\":[\"b\",\"a\"]}", "out of order"},
        {"{\"v\":1,\"kind\":\"characters\",\"vocabulary\":[\"a\",\"a\"]}", "out of order"},
        {"{\"v\":1,\"kind\":\"characters\",\"vocabulary\":[\"ab\"]}", "single character"},
        {"{\"v\":1,\"kind\":\"characters\",\"vocabulary\":[]}", "not a list"},
    };
    write_named("mytext");
    for (int i = 0; i < COUNT_OF(cases); i++) {
        workdir_write(workdir_path("data/mytext/meta.json"), cases[i].meta,
                      (int64_t)strlen(cases[i].meta));
        struct dataset d;
        assert_int_not_equal(open_named(&d, "mytext"), ST_OK);
        assert_message_has(cases[i].part);
    }
}

/* A text of each kind is read back from its tokens, and a prompt gets the same tokens. */
static void test_every_kind(void **state)
{
    (void)state;
    const struct data_kind *kind;
    for (int i = 0; (kind = data_kind_at(i)); i++) {
        assert_ptr_equal(data_kind_find(kind->name), kind);
        /* by its size, of a tokenizer, or listed and checked */
        assert_int_equal(!!kind->of_tokenizer + !!kind->sized + !!kind->invalid_entry, 1);
        struct dataset_facts facts;
        if (!kind->tokenize) {
            assert_int_equal(write_text(kind, "no", text, 9, &facts), ST_UNSUPPORTED);
            continue;
        }
        assert_int_equal(write_text(kind, kind->name, text, (int64_t)strlen(text), &facts), ST_OK);
        struct dataset d;
        assert_int_equal(open_named(&d, kind->name), ST_OK);
        assert_ptr_equal(d.vocabulary.kind, kind);
        assert_int_equal(d.vocabulary.size, facts.vocabulary);
        int32_t *ids;
        int64_t count, at = 0;
        assert_int_equal(vocabulary_encode(&d.vocabulary, text, &arena, &ids, &count), ST_OK);
        assert_int_equal(count, facts.tokens);
        char back[sizeof text] = "";
        for (int split = 0; split < SPLIT_COUNT; split++)
            for (int64_t k = 0; k < d.count[split]; k++) {
                int32_t token;
                assert_int_equal(dataset_read(&d, split, k, 1, &token), ST_OK);
                assert_int_equal(token, ids[at++]);
                strcat(back, vocabulary_text(&d.vocabulary, token));
            }
        assert_string_equal(back, text);
        dataset_close(&d);
    }
    assert_null(data_kind_find("words"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_every_kind),
        TEST(test_round_trip),
        TEST(test_numbers_of_shakespeare),
        TEST(test_unknown_character_is_named),
        TEST(test_invalid_text_is_rejected),
        TEST(test_missing_names_the_command),
        TEST(test_rewriting_replaces_everything),
        TEST(test_every_token_bit_flip_is_detected),
        TEST(test_truncation_is_detected),
        TEST(test_every_meta_bit_flip_is_detected),
        TEST(test_other_versions_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

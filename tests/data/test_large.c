/* Strobe's own sets of more than 65,536 characters, and of more than 16 MiB. */
#include "data/dataset.h"

#include "../support/workdir.h"
#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "data/kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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

static enum status write_text(const char *text, int64_t bytes, struct dataset_facts *ret)
{
    const struct dataset_text t = {&data_characters, text, bytes, "a test"};
    return dataset_write(workdir_path("data"), "x", &t, true, ret);
}

static enum status open_x(struct dataset *d)
{
    return dataset_open(d, workdir_path("data"), "x", &arena);
}

static void expect_refused(enum status st, const char *part)
{
    if (st != ST_FORMAT || !strstr(fail_message(), part))
        fail_msg("status %d, \"%s\" lacks \"%s\"", st, fail_message(), part);
}

/* Each code point from U+0100 on, `count` of them, once. */
static int64_t all_characters(char *text, int count)
{
    int64_t bytes = 0;
    for (int32_t code = 0x100; count > 0; code++) {
        char character[UTF8_BYTES];
        if (code >= 0xd800 && code < 0xe000) continue; /* surrogates are no characters */
        utf8_encode(code, character);
        memcpy(text + bytes, character, strlen(character));
        bytes += (int64_t)strlen(character);
        count--;
    }
    return bytes;
}

/* Tokens have 2 bytes up to 65,536 characters, then 4; token i of this text is i. */
static void test_width_by_vocabulary(void **state)
{
    (void)state;
    static const int counts[] = {65535, 65536, 65537, 200000, VOCABULARY_MAX};
    char *text = arena_alloc(&arena, 4ll * VOCABULARY_MAX + 8);
    for (int i = 0; i < COUNT_OF(counts); i++) {
        struct dataset_facts facts;
        struct dataset d;
        int count = counts[i], bytes = count > 65536 ? 4 : 2;
        int64_t train = (int64_t)(0.9 * count);
        assert_int_equal(write_text(text, all_characters(text, count), &facts), ST_OK);
        assert_int_equal(facts.vocabulary, count);
        assert_int_equal(workdir_size(workdir_path("data/x/train.bin")), bytes * train);
        if (open_x(&d) != ST_OK) fail_msg("%s", fail_message());
        assert_int_equal(d.vocabulary.size, count);
        assert_int_equal(d.count[SPLIT_TRAIN], train);
        int32_t *token = ARENA_NEW(&arena, int32_t, count);
        assert_int_equal(dataset_read(&d, SPLIT_TRAIN, 0, train, token), ST_OK);
        assert_int_equal(dataset_read(&d, SPLIT_VAL, 0, count - train, token + train), ST_OK);
        for (int k = 0; k < count; k++)
            if (token[k] != k) fail_msg("token %d of %d is %d", k, count, token[k]);
        dataset_close(&d);
        arena_release(&arena);
        text = arena_alloc(&arena, 4ll * VOCABULARY_MAX + 8);
    }
    struct dataset_facts facts;
    int64_t bytes = all_characters(text, VOCABULARY_MAX + 1);
    assert_int_equal(write_text(text, bytes, &facts), ST_UNSUPPORTED);
    assert_non_null(strstr(fail_message(), "1048577 different characters"));
}

static void change_train(const char *field, json_t *value)
{
    const char *path = workdir_path("data/x/meta.json");
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    json_object_set_new(json_object_get(root, "train"), field, value);
    if (json_is_null(value)) json_object_del(json_object_get(root, "train"), field);
    char *text = json_dumps(root, JSON_COMPACT);
    workdir_write(path, text, (int64_t)strlen(text));
    free(text);
    json_decref(root);
}

enum { TEXT = 9400000, TRAIN = TEXT / 10 * 9 };

static void test_blocks_are_verified(void **state)
{
    (void)state;
    char *text = arena_alloc(&arena, TEXT);
    for (int i = 0; i < TEXT; i++) text[i] = (char)('a' + i % 23 % 16);
    struct dataset_facts facts;
    struct dataset d;
    assert_int_equal(write_text(text, TEXT, &facts), ST_OK);
    assert_int_equal(facts.count[SPLIT_TRAIN], TRAIN);
    assert_true(TRAIN * 2 > TOKEN_SPLIT_MEMORY);
    assert_int_equal(open_x(&d), ST_OK);
    json_t *meta = json_loads(d.meta, 0, NULL);
    assert_true(json_is_string(json_object_get(json_object_get(meta, "train"), "blocks_sha256")));
    assert_null(json_object_get(json_object_get(meta, "val"), "blocks_sha256"));
    json_decref(meta);
    assert_int_equal(dataset_verify(&d), ST_OK);
    dataset_close(&d);

    const char *path = workdir_path("data/x/train.bin");
    int64_t first, n;
    for (int i = 0; token_split_block(TRAIN, 2, i, &first, &n); i += 3) {
        int64_t byte = 2 * (i == 0 ? 0 : first + n - 1); /* the first and the last, too */
        workdir_flip(path, byte, 0);
        expect_refused(open_x(&d), "train.bin is corrupt: its SHA-256 of blocks is");
        workdir_flip(path, byte, 0);
    }
    assert_true(token_split_block(TRAIN, 2, 0, &first, &n));
    workdir_flip(path, 2 * n, 0); /* behind the first block; the token stays in the vocabulary */
    assert_int_equal(open_x(&d), ST_OK);
    expect_refused(dataset_verify(&d), "train.bin is corrupt: its SHA-256 is");
    expect_refused(dataset_verify(&d), "recreate it with `strobe data x");
    dataset_close(&d);

    change_train("blocks_sha256", json_null()); /* as an older version wrote it */
    expect_refused(open_x(&d), "train.bin is corrupt: its SHA-256 is");
    workdir_flip(path, 2 * n, 0);
    assert_int_equal(open_x(&d), ST_OK);
    dataset_close(&d);
    change_train("blocks_sha256", json_string("0123"));
    expect_refused(open_x(&d), "\"train\" has a \"blocks_sha256\" of another form");
    change_train("blocks_sha256", json_integer(1));
    expect_refused(open_x(&d), "of another form");
}

/* The kind without texts, as vocabulary.json of a run has it. */
static void test_vocabulary_of_ids(void **state)
{
    (void)state;
    static const struct {
        const char *size, *part;
    } cases[] = {
        {"0", "is not 1 to 1048576"}, {"1048577", "is not 1 to"},         {"\"7\"", "is not 1 to"},
        {"-1", "is not 1 to"},        {"7", "the vocabulary is corrupt"},
    };
    struct vocabulary v;
    for (int i = 0; i < COUNT_OF(cases); i++) {
        const char *path = workdir_text(
            "meta.json",
            arena_printf(&arena, "{\"v\":1,\"kind\":\"tokens\",\"vocabulary_size\":%s}",
                         cases[i].size));
        expect_refused(vocabulary_read(&v, path, &arena), cases[i].part);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_width_by_vocabulary),
        TEST(test_blocks_are_verified),
        TEST(test_vocabulary_of_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Vocabularies as GPT-2, Hugging Face and tiktoken write them, right and damaged. */
#include "text/tokenizer.h"

#include "../support/workdir.h"
#include "base/file.h"
#include "base/json.h"
#include "text/encode.h"
#include "text/encoder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char folder[] = "tests/tokenizer";
static const char gpt2_folder[] = "../shared/data/gpt2";

static int set_up(void **state)
{
    (void)state;
    workdir_open();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    workdir_close();
    return 0;
}

/* "257 261" */
static const char *ids_of_bytes(const struct tokenizer *t, const char *text, size_t bytes,
                                bool special)
{
    static char shown[1 << 16];
    static char padded[1 << 14];
    struct encode e;
    struct str ids = {};
    int n = 0;
    assert_true(bytes < sizeof padded - ENCODER_PADDING);
    memcpy(padded, text, bytes);
    struct bpe_long *w = bpe_long_open(&t->bpe);
    encode_open(&e, t, w, special, 8);
    encode_append(&e, padded, (int64_t)bytes, &ids);
    shown[0] = '\0';
    for (int64_t i = 0; i < ids.len / bpe_id_bytes(&t->bpe); i++)
        n += sprintf(shown + n, "%s%u", i ? " " : "", encode_id(t, &ids, i));
    encode_close(&e);
    bpe_long_close(w);
    str_release(&ids);
    return shown;
}

static const char *ids_of(const struct tokenizer *t, const char *text, bool special)
{
    return ids_of_bytes(t, text, strlen(text), special);
}

static void assert_fixture(const char *path)
{
    struct arena a = {};
    struct tokenizer t;
    if (tokenizer_open(&t, path, &a) != ST_OK) fail_msg("%s", fail_message());
    assert_int_equal(t.bpe.ids, 270);
    assert_string_equal(ids_of(&t, "the dog aaaaa", false), "257 261 220 265 64");
    assert_string_equal(ids_of(&t, "the<|endoftext|>a", true), "257 266 64");
    assert_string_equal(ids_of(&t, "<|en", true), "27 91 68 77");
    assert_int_equal(tokenizer_special(&t, "<|endoftext|>"), 266);
    assert_int_equal(tokenizer_text(&t, 261).length, 4);
    assert_memory_equal(tokenizer_text(&t, 261).bytes, " dog", 4);
    assert_int_equal(tokenizer_text(&t, 270).length, 0);
    arena_release(&a);
}

static void test_vocab_and_merges(void **state)
{
    (void)state;
    assert_fixture(folder);
}

/* What is written as tokenizer.json reads as the same; also with merges as one text each. */
static void test_tokenizer_json(void **state)
{
    (void)state;
    struct arena a = {};
    struct tokenizer t;
    const char *path = workdir_path("tokenizer.json");
    assert_int_equal(tokenizer_open(&t, folder, &a), ST_OK);
    json_t *root = tokenizer_json(&t);
    assert_int_equal(json_write(json_incref(root), JSON_COMPACT, path), ST_OK);
    assert_fixture(path);
    assert_fixture(workdir_path(""));
    json_t *merges = json_object_get(json_object_get(root, "model"), "merges");
    json_array_set_new(merges, 0, json_string("t h"));
    assert_int_equal(json_write(root, JSON_COMPACT, path), ST_OK);
    assert_fixture(path);
    arena_release(&a);
}

static void append_base64(struct str *s, const struct token_text *t)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int i = 0; i < t->length; i += 3) {
        uint32_t bits = 0;
        for (int k = 0; k < 3; k++)
            bits = bits << 8 | (i + k < t->length ? (uint8_t)t->bytes[i + k] : 0);
        for (int k = 0; k < 4; k++)
            str_printf(s, "%c", i + k - 1 < t->length ? digits[bits >> (18 - 6 * k) & 63] : '=');
    }
}

static void test_ranks(void **state)
{
    (void)state;
    struct arena a = {};
    struct tokenizer t, ranks;
    struct str s = {};
    assert_int_equal(tokenizer_open(&t, folder, &a), ST_OK);
    for (int i = 0; i < 266; i++) {
        append_base64(&s, &t.bpe.text[i]);
        str_printf(&s, " %d\n", i);
    }
    const char *path = workdir_text("small.tiktoken", str_text(&s));
    if (tokenizer_open(&ranks, path, &a) != ST_OK) fail_msg("%s", fail_message());
    assert_int_equal(ranks.specials, 0);
    assert_string_equal(ids_of(&ranks, "the dog aaaaa", false), "257 261 220 265 64");
    str_release(&s);
    arena_release(&a);
}

/* A token that no merge makes is a special one, if it is text; a data set keeps both kinds. */
static void test_unmade_tokens(void **state)
{
    (void)state;
    struct arena a = {};
    struct tokenizer t, again;
    json_t *vocabulary = json_object();
    assert_int_equal(tokenizer_open(&t, folder, &a), ST_OK);
    json_t *root = tokenizer_json(&t);
    json_object_update(vocabulary, json_object_get(json_object_get(root, "model"), "vocab"));
    json_object_set_new(vocabulary, "<|end|>", json_integer(270));
    json_object_set_new(vocabulary, "\u00ff\u00fe", json_integer(271)); /* bytes 0xff 0xfe */
    workdir_text("merges.txt", "");
    json_decref(root);
    assert_int_equal(json_write(vocabulary, JSON_COMPACT, workdir_path("vocab.json")), ST_OK);
    if (tokenizer_open(&t, workdir_path(""), &a) != ST_OK) fail_msg("%s", fail_message());
    assert_true(tokenizer_is_special(&t, 270));
    assert_false(tokenizer_is_special(&t, 271));
    root = tokenizer_json(&t);
    if (tokenizer_read(&again, root, "again", &a) != ST_OK) fail_msg("%s", fail_message());
    assert_int_equal(again.bpe.ids, 272);
    assert_memory_equal(tokenizer_text(&again, 271).bytes, "\xff\xfe", 2);
    json_decref(root);
    arena_release(&a);
}

/* --- GPT-2's own ------------------------------------------------------------------------------ */

static void test_gpt2(void **state)
{
    (void)state;
    struct arena a = {};
    struct tokenizer t;
    char *lines;
    int64_t bytes;
    if (!file_exists(gpt2_folder)) skip();
    assert_int_equal(tokenizer_open(&t, gpt2_folder, &a), ST_OK);
    assert_int_equal(t.bpe.ids, 50257);
    const char *path = arena_printf(&a, "%s/encodings.jsonl", gpt2_folder);
    assert_int_equal(file_read(path, &a, &lines, &bytes), ST_OK);
    int count = 0;
    for (char *line = strtok(lines, "\n"); line; line = strtok(NULL, "\n"), count++) {
        json_t *root = json_loads(line, JSON_ALLOW_NUL, NULL), *id;
        struct str expected = {};
        size_t i;
        json_array_foreach(json_object_get(root, "ids"), i, id)
            str_printf(&expected, "%s%lld", i ? " " : "", (long long)json_integer_value(id));
        json_t *text = json_object_get(root, "text");
        assert_string_equal(
            ids_of_bytes(&t, json_string_value(text), json_string_length(text), false),
            str_text(&expected));
        str_release(&expected);
        json_decref(root);
    }
    assert_true(count > 10);
    arena_release(&a);
}

/* --- refusals --------------------------------------------------------------------------------- */

static void assert_refused(const char *path, enum status st, const char *why)
{
    struct arena a = {};
    struct tokenizer t;
    assert_int_equal(tokenizer_open(&t, path, &a), st);
    if (!strstr(fail_message(), why)) fail_msg("\"%s\" is not about \"%s\"", fail_message(), why);
    arena_release(&a);
}

/* A tokenizer.json with one more setting, "pre_tokenizer.add_prefix_space" for example. */
static void set_and_refuse(const char *object, const char *key, json_t *value, const char *why)
{
    struct arena a = {};
    struct tokenizer t;
    const char *path = workdir_path("changed.json");
    assert_int_equal(tokenizer_open(&t, folder, &a), ST_OK);
    json_t *root = tokenizer_json(&t);
    json_object_set_new(object ? json_object_get(root, object) : root, key, value);
    assert_int_equal(json_write(root, JSON_COMPACT, path), ST_OK);
    assert_refused(path, ST_UNSUPPORTED, why);
    arena_release(&a);
}

static void test_settings_that_change_ids(void **state)
{
    (void)state;
    set_and_refuse("pre_tokenizer", "add_prefix_space", json_true(), "splits text otherwise");
    set_and_refuse("pre_tokenizer", "use_regex", json_false(), "splits text otherwise");
    set_and_refuse("pre_tokenizer", "type", json_string("Sequence"), "splits text otherwise");
    set_and_refuse(NULL, "normalizer", json_pack("{s:s}", "type", "NFC"), "normalizes text");
    set_and_refuse(NULL, "post_processor",
                   json_pack("{s:s, s:{s:{s:[i]}}}", "type", "TemplateProcessing", "special_tokens",
                             "<s>", "ids", 1),
                   "adds tokens to each text");
    set_and_refuse("model", "dropout", json_real(0.1), "has \"dropout\"");
    set_and_refuse("model", "ignore_merges", json_true(), "has \"ignore_merges\"");
    set_and_refuse("model", "end_of_word_suffix", json_string("</w>"), "end_of_word_suffix");
    set_and_refuse("model", "type", json_string("WordPiece"), "its model is not BPE");
    set_and_refuse(NULL, "added_tokens",
                   json_pack("[{s:i, s:s, s:b}]", "id", 266, "content", "<mask>", "lstrip", 1),
                   "<mask> has \"lstrip\"");
}

/* abcd has the parts ab and cd, but merging makes a, bc and d of it. */
static void test_unmade_rank(void **state)
{
    (void)state;
    struct str s = {};
    for (int i = 0; i < 256; i++) {
        char byte = (char)i;
        append_base64(&s, &(struct token_text){&byte, 1});
        str_printf(&s, " %d\n", i);
    }
    str_append(&s, "YmM= 256\nYWI= 257\nY2Q= 258\nYWJjZA== 259\n");
    assert_refused(workdir_text("unmade", str_text(&s)), ST_UNSUPPORTED,
                   "merging never makes token 259, but tiktoken uses it");
    str_release(&s);
}

static void test_damaged_files(void **state)
{
    (void)state;
    assert_refused(workdir_path("missing"), ST_ABSENT, "no such file or folder");
    assert_refused(workdir_path(""), ST_IO, "has no tokenizer");
    assert_refused(workdir_text("x.json", "{"), ST_FORMAT, "is not valid JSON: line 1");
    assert_refused(workdir_text("x.json", "[]"), ST_UNSUPPORTED, "its model is not BPE");
    assert_refused(workdir_text("ranks", "AA== 0\nnonsense\n"), ST_FORMAT,
                   "\"nonsense\" is not a token in base64 and its rank");
    assert_refused(workdir_text("ranks", "AA== 0\n"), ST_FORMAT, "a vocabulary of 1 tokens");
    assert_refused(workdir_text("ranks", "AA== 120000\n"), ST_UNSUPPORTED, "has 120001 ranks");
    assert_refused(workdir_text("ranks", "AA== 9999999999\n"), ST_FORMAT, "256 to 1048576");
    assert_refused(workdir_text("ranks", "AA== 9223372036854775807\n"), ST_FORMAT,
                   "a vocabulary of 9223372036854775807 tokens");
    workdir_text("merges.txt", "#version: 0.2\na b\n");
    workdir_text("vocab.json", "{\"a\": 9223372036854775807}");
    assert_refused(workdir_path(""), ST_FORMAT, "a vocabulary of 9223372036854775807 tokens");
    workdir_text("vocab.json", "{\"a\": 0, \"b\": -1, \"c\": 300}");
    assert_refused(workdir_path(""), ST_FORMAT, "token id -1 is not among 0 to 300");
    workdir_text("vocab.json", "{\"a\": 0, \"b\": 0, \"c\": 300}");
    assert_refused(workdir_path(""), ST_FORMAT, "two tokens have the id 0");
    workdir_text("vocab.json", "{\"a\": 1.5, \"c\": 300}");
    assert_refused(workdir_path(""), ST_FORMAT, "is not a whole number");
    workdir_text("vocab.json", "{\"a\": 0, \"b\": 1, \"c\": 300}");
    assert_refused(workdir_path(""), ST_FORMAT, "merge 1 makes \"ab\", which is not in the");
    workdir_text("merges.txt", "ab\n");
    assert_refused(workdir_path(""), ST_FORMAT, "merge 1, \"ab\", is not two tokens");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_vocab_and_merges, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_tokenizer_json, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ranks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_gpt2, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_settings_that_change_ids, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unmade_tokens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unmade_rank, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damaged_files, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

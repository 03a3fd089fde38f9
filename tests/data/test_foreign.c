/* Folders of nanoGPT and llm.c: the right tokens, and every malformed file. */
#include "data/foreign.h"

#include "../support/workdir.h"
#include "base/file.h"
#include "data/kind.h"
#include "data/loader.h"
#include "data/meta.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { GPT2 = 20240520, LLAMA3 = 20240801, HEADER = 256 };

static struct arena arena;

static int set_up(void **state)
{
    (void)state;
    workdir_open();
    assert_int_equal(mkdir(workdir_path("data"), 0777), 0);
    assert_int_equal(mkdir(workdir_path("data/x"), 0777), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_release(&arena);
    workdir_close();
    return 0;
}

static const char *path_of(const char *name)
{
    return workdir_path(arena_printf(&arena, "data/x/%s", name));
}

static enum status open_x(struct dataset *d)
{
    return dataset_open(d, workdir_path("data"), "x", &arena);
}

static void assert_message_has(const char *part)
{
    if (!strstr(fail_message(), part)) fail_msg("\"%s\" lacks \"%s\"", fail_message(), part);
}

static void expect_refused(const char *part)
{
    struct dataset d;
    if (open_x(&d) == ST_OK) fail_msg("taken, although: %s", part);
    assert_message_has(part);
    assert_message_has("data/x");
    if (strstr(fail_message(), "--force")) fail_msg("advises to replace: %s", fail_message());
}

/* Tokens first ... first + n - 1, each `factor` times its number, as uint16. */
static void write_raw(const char *name, int first, int n, int factor)
{
    uint16_t *token = ARENA_NEW(&arena, uint16_t, n);
    for (int i = 0; i < n; i++) token[i] = (uint16_t)((first + i) * factor);
    workdir_write(path_of(name), token, n * (int64_t)sizeof *token);
}

struct header {
    int32_t magic, version, tokens;
};

/* The same with a header; of llm.c's second kind as uint32. */
static void write_shard(const char *name, struct header h, int first, int n, int factor)
{
    int bytes = h.magic == LLAMA3 ? 4 : 2;
    char *all = arena_alloc(&arena, HEADER * 4 + n * (int64_t)bytes);
    memcpy(all, &h, sizeof h);
    for (int i = 0; i < n; i++) {
        uint32_t id = (uint32_t)((first + i) * factor);
        memcpy(all + HEADER * 4 + i * bytes, &id, (size_t)bytes);
    }
    workdir_write(path_of(name), all, HEADER * 4 + n * (int64_t)bytes);
}

/* Reads every row of every length up to `longest`, so also those that cross from file to file. */
static void expect_tokens(const struct dataset *d, enum split split, int count, int factor)
{
    enum { LONGEST = 40 };
    assert_int_equal(d->count[split], count);
    for (int n = 1; n <= LONGEST && n <= count; n++)
        for (int first = 0; first + n <= count; first++) {
            int32_t token[LONGEST];
            assert_int_equal(dataset_read(d, split, first, n, token), ST_OK);
            for (int i = 0; i < n; i++) assert_int_equal(token[i], (first + i) * factor);
        }
}

static void test_nanogpt(void **state)
{
    (void)state;
    write_raw("train.bin", 0, 300, 167);
    write_raw("val.bin", 0, 50, 1000);
    struct dataset d;
    assert_int_equal(open_x(&d), ST_OK);
    assert_int_equal(d.vocabulary.size, 50257);
    assert_ptr_equal(d.vocabulary.kind, &data_tokens);
    expect_tokens(&d, SPLIT_TRAIN, 300, 167);
    expect_tokens(&d, SPLIT_VAL, 50, 1000);
    assert_int_equal(dataset_verify(&d), ST_OK);
    assert_string_equal(vocabulary_text(&d.vocabulary, 50256), "<50256>");
    assert_string_equal(vocabulary_text(&d.vocabulary, 50257), "");
    int32_t *ids;
    int64_t n, size;
    assert_int_equal(vocabulary_encode(&d.vocabulary, "a", &arena, &ids, &n), ST_USAGE);
    assert_message_has("texts are not known; put the tokenizer's files");
    dataset_close(&d);
    assert_int_equal(dataset_vocabulary(workdir_path("data"), "x", &size, &arena), ST_OK);
    assert_int_equal(size, 50257);
    assert_int_equal(dataset_vocabulary(workdir_path("data"), "none", &size, &arena), ST_OK);
    assert_int_equal(size, 0);
}

/* {'vocab_size': 2, 'itos': {0: 'a', 1: 'b'}, 'stoi': {'a': 0, 'b': 1}} */
static const char two_characters[] = "\x80\x04}(\x8c\x0avocab_sizeK\x02\x8c\x04itos}(K\x00\x8c\x01"
                                     "aK\x01\x8c\x01"
                                     "bu\x8c\x04stoi}(\x8c\x01"
                                     "aK\x00\x8c\x01"
                                     "bK\x01uu.";

static void test_characters_of_nanogpt(void **state)
{
    (void)state;
    write_raw("train.bin", 0, 2, 1);
    write_raw("val.bin", 1, 1, 1);
    workdir_write(path_of("meta.pkl"), two_characters, sizeof two_characters - 1);
    struct dataset d;
    assert_int_equal(open_x(&d), ST_OK);
    assert_int_equal(d.vocabulary.size, 2);
    int32_t *ids;
    int64_t n;
    assert_int_equal(vocabulary_encode(&d.vocabulary, "ba", &arena, &ids, &n), ST_OK);
    assert_int_equal(n, 2);
    assert_int_equal(ids[0], 1);
    assert_int_equal(ids[1], 0);
    dataset_close(&d);
    write_raw("train.bin", 0, 3, 1);
    expect_refused("train.bin: token 2 is 2, but the vocabulary has only 2 tokens");
    assert_message_has("under another name");
    workdir_write(path_of("meta.pkl"), "\x80\x04}}R.", 6);
    expect_refused("REDUCE");
}

static const struct header gpt2 = {GPT2, 1, 0}, llama3 = {LLAMA3, 7, 0};

static struct header of(struct header h, int tokens)
{
    h.tokens = tokens;
    return h;
}

/* Shards in the order of their names, which is not that of writing; some have one token. */
static void test_shards(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        struct header h = wide ? llama3 : gpt2;
        int factor = wide ? 1221 : 478;
        static const int begins[] = {0, 30, 31, 70, 105};
        for (int i = 3; i >= 0; i--) {
            int n = begins[i + 1] - begins[i];
            write_shard(arena_printf(&arena, "web_train_%06d.bin", i), of(h, n), begins[i], n,
                        factor);
        }
        write_shard("web_val_000000.bin", of(h, 20), 0, 20, factor);
        workdir_write(path_of("notes_train.txt"), "x", 1);
        struct dataset d;
        assert_int_equal(open_x(&d), ST_OK);
        assert_int_equal(d.vocabulary.size, wide ? 128256 : 50257);
        expect_tokens(&d, SPLIT_TRAIN, 105, factor);
        expect_tokens(&d, SPLIT_VAL, 20, factor);
        assert_int_equal(dataset_verify(&d), ST_OK);
        dataset_close(&d);
    }
}

/* Names without numbers, and names without a prefix, with a header or raw. */
static void test_names(void **state)
{
    (void)state;
    struct dataset d;
    write_shard("tiny_train.bin", of(gpt2, 7), 0, 7, 5);
    write_shard("tiny_val.bin", of(gpt2, 3), 0, 3, 5);
    assert_int_equal(open_x(&d), ST_OK);
    expect_tokens(&d, SPLIT_TRAIN, 7, 5);
    dataset_close(&d);
    write_shard("train_1.bin", of(llama3, 9), 0, 9, 70000 / 8);
    write_shard("val_1.bin", of(llama3, 3), 0, 3, 5);
    assert_int_equal(open_x(&d), ST_OK); /* before those with a prefix */
    expect_tokens(&d, SPLIT_TRAIN, 9, 70000 / 8);
    dataset_close(&d);
    write_raw("train_0.bin", 0, 4, 3);
    write_raw("train_1.bin", 4, 40, 3);
    write_raw("val_1.bin", 0, 3, 3);
    assert_int_equal(open_x(&d), ST_OK);
    expect_tokens(&d, SPLIT_TRAIN, 44, 3);
    dataset_close(&d);
    write_raw("train.bin", 0, 5, 2);
    assert_int_equal(open_x(&d), ST_OK); /* instead of its shards */
    expect_tokens(&d, SPLIT_TRAIN, 5, 2);
    expect_tokens(&d, SPLIT_VAL, 3, 3);
    dataset_close(&d);
}

static void test_malformed_shards(void **state)
{
    (void)state;
    static const struct {
        struct header h;
        int tokens;
        const char *part;
    } cases[] = {
        {{GPT2, 2, 5}, 5, "is a shard of version 2; only 1 is known for files with 20240520"},
        {{GPT2, 7, 5}, 5, "version 7"},
        {{LLAMA3, 1, 5}, 5, "is a shard of version 1; only 7"},
        {{GPT2 + 1, 1, 5}, 5, "begins with the number 20240521, but a shard of llm.c with"},
        {{0, 1, 5}, 5, "begins with the number 0"},
        {{GPT2, 1, 5}, 4, "has 1032 bytes, but its header says 5 tokens, which are 1034 bytes"},
        {{GPT2, 1, 5}, 6, "has 1036 bytes, but its header says 5 tokens, which are 1034 bytes"},
        {{GPT2, 1, 0}, 0, "its header says 0 tokens"},
        {{GPT2, 1, -1}, 0, "its header says -1 tokens"},
        {{GPT2, 1, INT32_MAX}, 5, "2147483647 tokens, which are 4294968318 bytes"},
        {{LLAMA3, 7, 5}, 5, "begins with 20240801, but another shard of the folder with 20240520"},
    };
    write_shard("a_train_0.bin", of(gpt2, 7), 0, 7, 1);
    for (int i = 0; i < COUNT_OF(cases); i++) {
        write_shard("a_val_0.bin", cases[i].h, 0, cases[i].tokens, 1);
        expect_refused(cases[i].part);
        assert_message_has("a_val_0.bin");
    }
    write_shard("a_val_0.bin", of(gpt2, 5), 0, 5, 1);
    for (int n = 1033; n >= 0; n -= n > 1020 || n <= 16 ? 1 : 100) {
        workdir_truncate(path_of("a_val_0.bin"), n);
        expect_refused(n < 1024
                           ? arena_printf(&arena, "a_val_0.bin has %d bytes, but the header", n)
                           : "its header says 5 tokens");
    }
    write_shard("a_val_0.bin", of(gpt2, 5), 50254, 5, 1);
    expect_refused("a_val_0.bin: token 3 is 50257, but the vocabulary has only 50257");
    write_shard("a_val_0.bin", of(gpt2, 5), 0, 5, 1);
    write_shard("a_train_1.bin", of(llama3, 2), 0, 2, -1);
    remove(path_of("a_train_0.bin"));
    write_shard("a_val_0.bin", of(llama3, 5), 0, 5, 1);
    expect_refused("token 1 is 4294967295, but the vocabulary has only 128256");
}

static void test_malformed_raw_files(void **state)
{
    (void)state;
    write_raw("train.bin", 0, 7, 1);
    expect_refused("has no meta.json");
    workdir_write(path_of("val.bin"), "", 0);
    expect_refused("val.bin has 0 bytes, but tokens of nanoGPT have 2 each");
    workdir_write(path_of("val.bin"), "abc", 3);
    expect_refused("val.bin has 3 bytes");
    write_raw("val.bin", 50255, 3, 1);
    expect_refused("val.bin: token 2 is 50257, but the vocabulary has only 50257");
    remove(path_of("val.bin"));
    assert_int_equal(mkdir(path_of("val.bin"), 0777), 0);
    expect_refused("is a directory, not a regular file");
}

/* Such a folder is never replaced, whatever it has. */
static void test_is_not_replaced(void **state)
{
    (void)state;
    static const char text[] = "to be, or not to be";
    const struct dataset_text t = {&data_characters, text, sizeof text - 1, "a test"};
    struct dataset_facts facts;
    for (int shards = 0; shards < 2; shards++) {
        const char *train = shards ? "a_train_0.bin" : "train.bin",
                   *val = shards ? "a_val_0.bin" : "val.bin";
        write_shard(train, of(gpt2, 3), 0, 3, 1);
        write_shard(val, of(gpt2, 3), 0, 3, 1);
        for (int force = 0; force < 2; force++) {
            assert_int_equal(dataset_write(workdir_path("data"), "x", &t, force, &facts), ST_USAGE);
            if (strstr(fail_message(), "--force")) fail_msg("%s", fail_message());
            assert_int_equal(workdir_size(path_of(train)), 1030);
        }
        remove(path_of(train));
        remove(path_of(val));
    }
}

/* --- what identifies the data, and large splits ----------------------------------------------- */

static const char *identity(void)
{
    struct dataset d;
    struct meta m;
    if (open_x(&d) != ST_OK) fail_msg("%s", fail_message());
    const char *path = workdir_path("vocabulary.json");
    workdir_write(path, d.meta, (int64_t)strlen(d.meta));
    assert_int_equal(meta_read(&m, path, &arena), ST_OK);
    assert_string_equal(m.split[SPLIT_TRAIN].sha256, d.sha256[SPLIT_TRAIN]);
    assert_int_equal(m.split[SPLIT_TRAIN].tokens, d.count[SPLIT_TRAIN]);
    assert_int_equal(m.vocabulary.size, d.vocabulary.size);
    const char *before = arena_strdup(&arena, d.sha256[SPLIT_TRAIN]);
    assert_int_equal(dataset_verify(&d), ST_OK);
    assert_string_equal(d.sha256[SPLIT_TRAIN], before);
    dataset_close(&d);
    return before;
}

static void test_identity(void **state)
{
    (void)state;
    write_raw("val.bin", 0, 5, 1);
    write_raw("train_0.bin", 0, 10, 1);
    write_raw("train_1.bin", 10, 10, 1);
    const char *first = identity();
    assert_string_equal(identity(), first);
    workdir_flip(path_of("train_1.bin"), 6, 3);
    assert_string_not_equal(identity(), first);
    workdir_flip(path_of("train_1.bin"), 6, 3);
    write_raw("train_0.bin", 0, 9, 1); /* the same tokens in other shards */
    write_raw("train_1.bin", 9, 11, 1);
    assert_string_not_equal(identity(), first);
    write_raw("train_0.bin", 0, 10, 1);
    write_raw("train_1.bin", 10, 10, 1);
    assert_string_equal(identity(), first);
}

static void test_blocks(void **state)
{
    (void)state;
    int64_t first, n;
    for (int bytes = 2; bytes <= 4; bytes += 2) {
        int64_t small = TOKEN_SPLIT_MEMORY / bytes, block = TOKEN_SPLIT_BLOCK / bytes;
        assert_true(token_split_block(small, bytes, 0, &first, &n));
        assert_int_equal(first, 0);
        assert_int_equal(n, small);
        assert_false(token_split_block(small, bytes, 1, &first, &n));
        const int64_t counts[] = {small + 1, 4 * small + 7, INT64_MAX / 8};
        for (int c = 0; c < COUNT_OF(counts); c++) {
            int64_t end = 0, gap = (counts[c] - block) / (TOKEN_SPLIT_BLOCKS - 1), last = 0;
            for (int i = 0; i < TOKEN_SPLIT_BLOCKS; i++, last = first) {
                assert_true(token_split_block(counts[c], bytes, i, &first, &n));
                assert_int_equal(n, block);
                assert_true(first >= end && first + n <= counts[c]);
                if (i) assert_in_range(first - last, gap, gap + 1);
                end = first + n;
            }
            assert_int_equal(end, counts[c]);
            assert_false(token_split_block(counts[c], bytes, TOKEN_SPLIT_BLOCKS, &first, &n));
        }
    }
}

/* 256 GiB, which no disk reads in the time. */
static void test_opening_does_not_depend_on_the_size(void **state)
{
    (void)state;
    struct dataset d;
    int32_t token[9];
    write_raw("val.bin", 0, 5, 1);
    workdir_write(path_of("train.bin"), "", 0);
    workdir_truncate(path_of("train.bin"), 1ll << 38);
    alarm(20);
    assert_int_equal(open_x(&d), ST_OK);
    alarm(0);
    assert_int_equal(dataset_read(&d, SPLIT_TRAIN, (1ll << 37) - 9, 9, token), ST_OK);
    dataset_close(&d);
}

static void set_bits(const char *name, int64_t byte)
{
    for (int bit = 0; bit < 8; bit++) workdir_flip(path_of(name), byte, bit);
}

/* Of a large split, what is in a block is noticed at once, the rest by dataset_verify and when it
 * is read. */
static void test_a_large_split(void **state)
{
    (void)state;
    struct dataset d;
    int64_t count = (TOKEN_SPLIT_MEMORY + 200000) / 2, half = count / 2, first, n;
    struct header shard = of(gpt2, (int)half), rest = of(gpt2, (int)(count - half));
    write_shard("a_val_0.bin", of(gpt2, 5), 0, 5, 1);
    write_shard("a_train_0.bin", shard, 0, (int)half, 0);
    write_shard("a_train_1.bin", rest, 0, (int)(count - half), 0);
    identity(); /* it stays when all is verified */
    for (int i = 0; token_split_block(count, 2, i, &first, &n); i += 9) {
        int64_t token = i == 0 ? 0 : first + n - 1; /* 0, ..., the last */
        const char *name = token < half ? "a_train_0.bin" : "a_train_1.bin";
        int64_t byte = 1024 + 2 * (token < half ? token : token - half);
        set_bits(name, byte);
        set_bits(name, byte + 1);
        expect_refused(arena_printf(&arena, "%s: token %lld is 65535", name,
                                    (long long)(token < half ? token : token - half)));
        set_bits(name, byte);
        set_bits(name, byte + 1);
    }
    assert_true(token_split_block(count, 2, 0, &first, &n));
    set_bits("a_train_0.bin", 1024 + 2 * n);
    set_bits("a_train_0.bin", 1024 + 2 * n + 1);
    int32_t token[4];
    assert_int_equal(open_x(&d), ST_OK);
    assert_int_equal(dataset_read(&d, SPLIT_TRAIN, n - 4, 4, token), ST_OK);
    assert_int_equal(dataset_read(&d, SPLIT_TRAIN, n - 1, 2, token), ST_FORMAT);
    assert_message_has(
        "is 65535, but the vocabulary has only 50257 tokens; make it again with the program");
    assert_int_equal(dataset_verify(&d), ST_FORMAT);
    assert_message_has("a_train_0.bin: token 32768 is 65535");
    workdir_truncate(path_of("a_train_1.bin"), 2000);
    assert_int_equal(dataset_read(&d, SPLIT_TRAIN, half - 2, 4, token), ST_OK);
    assert_int_equal(dataset_read(&d, SPLIT_TRAIN, count - 4, 4, token), ST_FORMAT);
    assert_message_has("a_train_1.bin was cut to 2000 bytes");
    dataset_close(&d);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_nanogpt),          TEST(test_characters_of_nanogpt),
        TEST(test_shards),           TEST(test_names),
        TEST(test_malformed_shards), TEST(test_malformed_raw_files),
        TEST(test_is_not_replaced),  TEST(test_identity),
        TEST(test_blocks),           TEST(test_opening_does_not_depend_on_the_size),
        TEST(test_a_large_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

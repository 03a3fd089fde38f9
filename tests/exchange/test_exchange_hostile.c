/* Folders of Hugging Face whose config.json, index or set of files is damaged or hostile. */
#include "../support/hostile.h"
#include "../support/workdir.h"
#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* The unchanged folder is not refused, so each refusal has its reason. */
static void test_good_folder_is_taken(void **)
{
    struct exchange_model m;
    hf_write(&hostile_hf, hostile_folder);
    if (hostile_open(&m, HOSTILE_BYTES, &hostile_arena) != ST_OK) fail_msg("%s", fail_message());
    exchange_close(&m);
}

/* --- config.json ------------------------------------------------------------------------------ */

static void test_sizes(void **)
{
    static const char *const sizes[] = {"n_layer", "n_head", "n_embd", "n_positions", "vocab_size"};
    static const char *const values[] = {"1000000000",
                                         "-1",
                                         "0",
                                         "1.5",
                                         "2.0",
                                         "2e0",
                                         "1e400",
                                         "\"2\"",
                                         "null",
                                         "true",
                                         "[2]",
                                         "{}",
                                         "3",
                                         "16",
                                         "1024",
                                         "2147483648",
                                         "4294967298",
                                         "9223372036854775807",
                                         "9223372036854775808",
                                         "-9223372036854775808",
                                         NULL};
    for (int i = 0; i < COUNT_OF(sizes); i++)
        for (int k = 0; k < COUNT_OF(values); k++) {
            hf_init(&hostile_hf);
            hf_set(&hostile_hf, sizes[i], values[k]);
            hf_write(&hostile_hf, hostile_folder);
            hostile_case(arena_printf(&hostile_arena, "%s = %s", sizes[i], values[k]));
        }
}

static void test_keys(void **)
{
    static const char *const cases[][2] = {
        {"n_layer", "2, \"n_layer\": 2"},
        {"n_layer", "02"},
        {"n_layer", "0x2"},
        {"n_layer", "NaN"},
        {"n_layer", "2,"},
        {"n_inner", "31"},
        {"n_inner", "0"},
        {"n_inner", "-32"},
        {"n_inner", "32.0"},
        {"n_inner", "\"32\""},
        {"n_inner", "true"},
        {"n_inner", "[]"},
        {"n_inner", "9223372036854775807"},
        {"model_type", NULL},
        {"model_type", "null"},
        {"model_type", "\"llama\""},
        {"model_type", "\"gpt2 \""},
        {"model_type", "\"a\\nb\\u001b[31m\""},
        {"model_type", "\"gpt2\\u0000\""},
        {"model_type", "[\"gpt2\"]"},
        {"activation_function", "null"},
        {"activation_function", "1"},
        {"activation_function", "\"\""},
        {"activation_function", "\"relu\\n\""},
        {"activation_function", "[\"gelu\"]"},
        {"layer_norm_epsilon", "1e-6"},
        {"layer_norm_epsilon", "-1e-5"},
        {"layer_norm_epsilon", "0"},
        {"layer_norm_epsilon", "null"},
        {"layer_norm_epsilon", "\"1e-5\""},
        {"layer_norm_epsilon", "1e999"},
        {"scale_attn_weights", "false"},
        {"scale_attn_weights", "1"},
        {"scale_attn_weights", "\"true\""},
        {"scale_attn_by_inverse_layer_idx", "true"},
        {"scale_attn_by_inverse_layer_idx", "1"},
        {"add_cross_attention", "true"},
        {"add_cross_attention", "\"yes\""},
        {"tie_word_embeddings", "false"},
        {"tie_word_embeddings", "0"},
        {"tie_word_embeddings", "null"},
        {"tie_word_embeddings", "\"false\""},
    };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        hf_init(&hostile_hf);
        hf_set(&hostile_hf, cases[i][0], cases[i][1]);
        hf_write(&hostile_hf, hostile_folder);
        hostile_case(arena_printf(&hostile_arena, "%s = %s", cases[i][0], cases[i][1]));
    }
}

static const char *const not_json[] = {
    "",  " ",   "{",        "}",         "[]",           "3",          "null",
    "x", "\"x", "{\"a\":1", "{\"a\" 1}", "{\"\xff\":1}", "{\"a\":1}}", "\xef\xbb\xbf{}",
};

/* Texts that are no config.json or index, in the file `name`. */
static void try_texts(const char *name)
{
    const struct {
        const char *what, *text;
    } texts[] = {
        {"100,000 brackets", hostile_repeat("[", 100000)},
        {"100,000 objects", hostile_repeat("{\"a\":", 100000)},
        {"100,000 pairs", arena_printf(&hostile_arena, "{\"a\":%s%s}", hostile_repeat("[", 100000),
                                       hostile_repeat("]", 100000))},
        {"a long key", arena_printf(&hostile_arena, "{\"%s\":1,}", hostile_repeat("k", 100000))},
        {"one key 10,000 times",
         arena_printf(&hostile_arena, "{%s\"k\":1}", hostile_repeat("\"k\":1,", 10000))},
    };
    for (int i = 0; i < COUNT_OF(not_json); i++) {
        hostile_text(name, not_json[i]);
        hostile_case(arena_printf(&hostile_arena, "%s: %s", name, not_json[i]));
    }
    for (int i = 0; i < COUNT_OF(texts); i++) {
        hostile_text(name, texts[i].text);
        hostile_case(texts[i].what);
    }
    workdir_write(hostile_path(name), "{\"a\0b\": 1}", 10);
    hostile_for("a zero byte", name);
}

static void test_config_files(void **)
{
    hf_write(&hostile_hf, hostile_folder);
    try_texts("config.json");
    hostile_kinds("config.json");
    /* Parsed, JSON takes up to 40 times its bytes, so 1 MB is the most that is read. */
    hostile_text("config.json",
                 arena_printf(&hostile_arena, "{\"a\":[%s1]}", hostile_repeat("[],", 340000)));
    hostile_within("1 MB of small arrays", 48 * HOSTILE_MEGABYTE);
    hostile_text("config.json",
                 arena_printf(&hostile_arena, "{\"a\":[%s1]}", hostile_repeat("[],", 360000)));
    hostile_for("more than 1 MB", "config.json");
}

/* --- the index -------------------------------------------------------------------------------- */

static const char index_name[] = "model.safetensors.index.json";

/* An index that has all tensors in the file whose name is `file`, a JSON value. */
static void write_index(const char *file)
{
    const char *text = "{\"weight_map\":{";
    for (int i = 0; i < hostile_hf.tensors; i++)
        text = arena_printf(&hostile_arena, "%s%s\"%s\":%s", text, i ? "," : "",
                            hostile_hf.tensor[i].name, file);
    hostile_text(index_name, arena_printf(&hostile_arena, "%s}}", text));
}

static void test_names_in_the_index(void **)
{
    hf_write(&hostile_hf, hostile_folder);
    rename(hostile_path("model.safetensors"), hostile_path("x.safetensors"));
    hf_write(&hostile_hf, workdir_path("above"));
    assert_int_equal(mkdir(hostile_path("sub"), 0777), 0);
    assert_int_equal(link(hostile_path("x.safetensors"), hostile_path("sub/x.safetensors")), 0);
    assert_int_equal(link(hostile_path("x.safetensors"), hostile_path(".hidden")), 0);
    assert_int_equal(mkfifo(hostile_path("pipe"), 0666), 0);
    assert_int_equal(symlink("loop", hostile_path("loop")), 0);
    assert_int_equal(symlink("/dev/zero", hostile_path("zero")), 0);
    hostile_text("empty", "");
    const char *const names[] = {
        "\"../above/model.safetensors\"",
        "\"/etc/passwd\"",
        "\".hidden\"",
        "\".\"",
        "\"..\"",
        "\"\"",
        "\"/\"",
        "\"./x.safetensors\"",
        "\"sub/x.safetensors\"",
        "\"sub\"",
        "\"missing\"",
        "\"config.json\"",
        "\"pipe\"",
        "\"loop\"",
        "\"zero\"",
        "\"empty\"",
        "null",
        "3",
        "[]",
        "{}",
        "true",
        "[\"x.safetensors\"]",
        "\"a\\nb\"",
        "\"\\u001b[31mred\"",
        "\"x.safetensors\\u0000\"",
        "\"x.safetensors/\"",
        "\"model.safetensors.index.json\"",
        arena_printf(&hostile_arena, "\"%s\"", hostile_repeat("n", 300)),
        arena_printf(&hostile_arena, "\"%s\"", hostile_repeat("n", 5000)),
        arena_printf(&hostile_arena, "\"%s\"", hostile_repeat("\\n", 5000)),
    };
    struct exchange_model m;
    write_index("\"x.safetensors\"");
    if (exchange_open(&m, hostile_folder, &hostile_arena) != ST_OK) fail_msg("%s", fail_message());
    exchange_close(&m);
    for (int i = 0; i < COUNT_OF(names); i++) {
        write_index(names[i]);
        hostile_case(names[i]);
    }
}

static void test_shapes_of_the_index(void **)
{
    static const char *const texts[] = {
        "{}",
        "{\"weight_map\":null}",
        "{\"weight_map\":[]}",
        "{\"weight_map\":3}",
        "{\"weight_map\":\"model.safetensors\"}",
        "{\"weight_map\":{}}",
        "{\"weight_map\":{\"\":\"\"}}",
        "{\"weight_map\":{\"a\":\"b\"},\"weight_map\":{\"a\":\"b\"}}",
        "{\"weight_map\":{\"a\":\"b\",\"a\":\"b\"}}",
        "{\"weight_map\":{\"weight_map\":{\"weight_map\":\"x\"}}}",
    };
    hf_write(&hostile_hf, hostile_folder);
    remove(hostile_path("model.safetensors"));
    for (int i = 0; i < COUNT_OF(texts); i++) {
        hostile_text(index_name, texts[i]);
        hostile_case(texts[i]);
    }
    try_texts(index_name);
    hostile_kinds(index_name);
}

static void test_shards(void **)
{
    hf_write(&hostile_hf, hostile_folder);
    remove(hostile_path("model.safetensors"));
    hf_write_tensors(&hostile_hf, hostile_folder, "a", 0, 15);
    hf_write_tensors(&hostile_hf, hostile_folder, "b", 15, HF_TENSORS);
    hf_write_tensors(&hostile_hf, hostile_folder, "c", 14, HF_TENSORS);
    hf_write_tensors(&hostile_hf, hostile_folder, "d", 16, HF_TENSORS);
    hf_write_tensors(&hostile_hf, hostile_folder, "none", 0, 0);
    hostile_text(index_name, "{\"weight_map\":{\"x\":\"a\",\"y\":\"b\"}}");
    struct exchange_model m;
    if (exchange_open(&m, hostile_folder, &hostile_arena) != ST_OK) fail_msg("%s", fail_message());
    exchange_close(&m);
    hostile_text(index_name, "{\"weight_map\":{\"x\":\"a\",\"y\":\"c\"}}");
    hostile_for("a tensor in two files", "twice");
    hostile_text(index_name, "{\"weight_map\":{\"x\":\"a\",\"y\":\"d\"}}");
    hostile_for("a tensor in no file", "has no tensor");
    hostile_text(index_name, "{\"weight_map\":{\"x\":\"a\",\"y\":\"b\",\"z\":\"e\"}}");
    hostile_for("a missing file", "e: No such file");
    assert_int_equal(symlink("a", hostile_path("again")), 0);
    hostile_text(index_name, "{\"weight_map\":{\"x\":\"a\",\"y\":\"b\",\"z\":\"again\"}}");
    hostile_for("a file by two names", "twice");

    for (int i = 0; i < 2000; i++)
        assert_int_equal(symlink("none", hostile_path(arena_printf(&hostile_arena, "s%d", i))), 0);
    char *map = arena_alloc(&hostile_arena, 2000 * 32);
    for (int i = 0, at = 0; i < 2000; i++)
        at += sprintf(map + at, "%s\"t%d\":\"s%d\"", i ? "," : "", i, i);
    hostile_text(index_name, arena_printf(&hostile_arena, "{\"weight_map\":{%s}}", map));
    hostile_case("2000 files");
    struct rlimit few, many;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &few), 0);
    many = few;
    many.rlim_cur = few.rlim_max;
    if (many.rlim_cur < 2100 || setrlimit(RLIMIT_NOFILE, &many) != 0) return;
    hostile_for("2000 files that could be opened", "names more than 1024 files");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, hostile_set_up, hostile_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_good_folder_is_taken),
        TEST(test_sizes),
        TEST(test_keys),
        TEST(test_config_files),
        TEST(test_names_in_the_index),
        TEST(test_shapes_of_the_index),
        TEST(test_shards),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    printf("%d folders were refused\n", hostile_tried);
    return failed;
}

/* Folders of Hugging Face with other tensors than the model has, or damaged safetensors. */
#include "../support/hostile.h"
#include "../support/workdir.h"
#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void test_missing_tensors(void **)
{
    for (int i = 0; i < HF_TENSORS; i++) {
        hf_init(&hostile_hf);
        const char *name = hostile_hf.tensor[i].name + strlen("transformer.");
        hf_remove(&hostile_hf, name);
        hf_write(&hostile_hf, hostile_folder);
        hostile_for(name, arena_printf(&hostile_arena, "has no tensor %s", name));
    }
}

static void test_more_tensors(void **)
{
    static const float zeros[HF_EMBD];
    const int64_t dim[] = {HF_EMBD};
    const char *const names[] = {"transformer.h.2.ln_1.weight",
                                 "h.2.ln_1.weight",
                                 "h.00.ln_1.weight",
                                 "h.0.attn.q_proj.weight",
                                 "h.0.attn.biases",
                                 "h.0.bias",
                                 "transformer.transformer.ln_f.weight",
                                 "ln_f.weight",
                                 "ln_f.bias",
                                 "transformer.",
                                 "",
                                 "x",
                                 "a\nb",
                                 "\033[31m",
                                 "score.weight",
                                 "lm_head.bias",
                                 hostile_repeat("n", 5000),
                                 hostile_repeat("\n", 5000)};
    for (int i = 0; i < COUNT_OF(names); i++) {
        hf_init(&hostile_hf);
        hf_add(&hostile_hf, names[i], SAFETENSORS_F32, 1, dim, zeros);
        hf_write(&hostile_hf, hostile_folder);
        hostile_case(names[i]);
    }
}

static void test_shapes_of_tensors(void **)
{
    static const float zeros[16 * HF_VOCAB * HF_EMBD];
    static const struct {
        const char *name;
        int rank;
        int64_t dim[SAFETENSORS_RANK_MAX];
    } cases[] = {
        {"wte.weight", 2, {HF_EMBD, HF_VOCAB}},
        {"wte.weight", 2, {HF_VOCAB + 1, HF_EMBD}},
        {"wte.weight", 2, {HF_VOCAB, HF_EMBD + 1}},
        {"wte.weight", 2, {0, HF_EMBD}},
        {"wte.weight", 2, {HF_VOCAB, 0}},
        {"wte.weight", 2, {(int64_t)1 << 60, 0}},
        {"wte.weight", 1, {HF_VOCAB * HF_EMBD}},
        {"wte.weight", 0, {}},
        {"wte.weight", 3, {HF_VOCAB, HF_EMBD, 1}},
        {"wte.weight", 8, {1, 1, 1, 1, 1, 1, HF_VOCAB, HF_EMBD}},
        {"wpe.weight", 2, {HF_POSITIONS - 1, HF_EMBD}},
        {"ln_f.weight", 2, {1, HF_EMBD}},
        {"ln_f.weight", 0, {}},
        {"ln_f.bias", 1, {1}},
        {"h.0.attn.c_attn.weight", 2, {3 * HF_EMBD, HF_EMBD}},
        {"h.1.mlp.c_fc.weight", 2, {4 * HF_EMBD, HF_EMBD}},
        {"h.1.mlp.c_proj.bias", 1, {4 * HF_EMBD}},
    };
    static const enum safetensors_type types[] = {SAFETENSORS_I64, SAFETENSORS_I32,
                                                  SAFETENSORS_I16, SAFETENSORS_I8,
                                                  SAFETENSORS_U8,  SAFETENSORS_BOOL};
    for (int i = 0; i < COUNT_OF(cases); i++) {
        hf_init(&hostile_hf);
        struct safetensor *t = hf_tensor(&hostile_hf, cases[i].name);
        t->rank = cases[i].rank;
        memcpy(t->dim, cases[i].dim, sizeof t->dim);
        t->data = zeros;
        hf_write(&hostile_hf, hostile_folder);
        hostile_for(cases[i].name, arena_printf(&hostile_arena, "tensor %s is (", cases[i].name));
    }
    for (int i = 0; i < COUNT_OF(types); i++) {
        hf_init(&hostile_hf);
        struct safetensor *t = hf_tensor(&hostile_hf, i % 2 ? "wte.weight" : "ln_f.bias");
        t->type = types[i];
        t->data = zeros;
        hf_write(&hostile_hf, hostile_folder);
        hostile_for(safetensors_type_name(types[i]), "F64, F32, F16 and BF16 are read");
    }
}

/* --- bytes of model.safetensors --------------------------------------------------------------- */

struct bytes {
    char *data;
    int64_t size;
    uint64_t header;
};

static struct bytes read_weights(void)
{
    struct bytes b;
    hf_write(&hostile_hf, hostile_folder);
    assert_int_equal(file_read(hostile_path("model.safetensors"), &hostile_arena, &b.data, &b.size),
                     ST_OK);
    memcpy(&b.header, b.data, sizeof b.header);
    return b;
}

/* The file with the first `from` of the header replaced, and with a length that fits it. */
static void write_replaced(const struct bytes *b, const char *from, const char *to)
{
    char *header = arena_printf(&hostile_arena, "%.*s", (int)b->header, b->data + 8);
    const char *at = strstr(header, from);
    if (!at) fail_msg("the header lacks %s", from);
    const char *text =
        arena_printf(&hostile_arena, "%.*s%s%s", (int)(at - header), header, to, at + strlen(from));
    uint64_t length = strlen(text);
    int64_t data = b->size - 8 - (int64_t)b->header, size = 8 + (int64_t)length + data;
    char *file = arena_alloc(&hostile_arena, size);
    memcpy(file, &length, 8);
    memcpy(file + 8, text, length);
    memcpy(file + 8 + length, b->data + 8 + b->header, (size_t)data);
    workdir_write(hostile_path("model.safetensors"), file, size);
}

static void test_headers(void **)
{
#define TABLE "\"shape\":[11,8],\"data_offsets\":[0,352]"
    static const char *const cases[][2] = {
        {"[11,8]", "[8,11]"},
        {"[11,8]", "[11,8.0]"},
        {"[11,8]", "[11,-8]"},
        {"[11,8]", "[\"11\",8]"},
        {"[11,8]", "[11,8,4611686018427387904,0]"},
        {"[11,8]", "[9223372036854775807,9223372036854775807]"},
        {"[11,8]", "[4294967296,4294967296]"},
        {"[11,8]", "[4611686018427387926,8]"}, /* 352 bytes if the product overflows */
        {"[11,8]", "[18446744073709551627,8]"},
        {"[11,8]", "[1,1,1,1,1,1,1,11,8]"},
        {"[11,8]", "[[11],8]"},
        {"[11,8]", "88"},
        {"[0,352]", "[0,351]"},
        {"[0,352]", "[0,356]"},
        {"[0,352]", "[4,356]"},
        {"[0,352]", "[352,0]"},
        {"[0,352]", "[-352,0]"},
        {"[0,352]", "[352,704]"},
        {"[0,352]", "[0,9223372036854775807]"},
        {"[0,352]", "[9223372036854775456,9223372036854775808]"},
        {"[0,352]", "[0]"},
        {"[0,352]", "[0,352,352]"},
        {"[0,352]", "[0.0,352.0]"},
        {"[352,544]", "[348,540]"},
        {"[352,544]", "[0,192]"},
        {TABLE, "\"shape\":[88],\"data_offsets\":[0,352]"},
        {TABLE, "\"shape\":[104857600,8],\"data_offsets\":[0,3355443200]"},
        {TABLE, "\"shape\":[0,8],\"data_offsets\":[0,0]"},
        {TABLE, "\"shape\":[11,8]"},
        {TABLE, "\"data_offsets\":[0,352]"},
        {"\"F32\"", "\"F33\""},
        {"\"F32\"", "\"I32\""},
        {"\"F32\"", "\"F64\""},
        {"\"F32\"", "\"f32\""},
        {"\"F32\"", "null"},
        {"\"F32\"", "\"F32\\u0000\""},
        {"transformer.wpe", "transformer.wte"},
        {"transformer.wpe", "\xff"},
        {"transformer.wpe", "wte"},
        {"transformer.wte", "__metadata__\":{},\"x"},
        {"{\"format\":\"pt\"}", "{\"format\":3}"},
        {"{\"format\":\"pt\"}", "[]"},
        {"{\"__metadata__\"", "[{\"__metadata__\""},
        {"{\"__metadata__\"", " {\"__metadata__\""},
    };
    const struct bytes b = read_weights();
    for (int i = 0; i < COUNT_OF(cases); i++) {
        write_replaced(&b, cases[i][0], cases[i][1]);
        hostile_case(arena_printf(&hostile_arena, "%s -> %s", cases[i][0], cases[i][1]));
    }
    write_replaced(&b, "\"pt\"", hostile_repeat("[", 100000));
    hostile_case("100,000 brackets in a header");
    write_replaced(&b, "\"pt\"", hostile_repeat("{\"a\":", 100000));
    hostile_case("100,000 objects in a header");
    static const uint64_t lengths[] = {0,          1,        2,          7,
                                       100000000,  1u << 31, UINT64_MAX, UINT64_MAX - 7,
                                       1ull << 63, 16777216, 16777217};
    for (int i = 0; i < COUNT_OF(lengths); i++) {
        workdir_write(hostile_path("model.safetensors"), b.data, b.size);
        FILE *f = fopen(hostile_path("model.safetensors"), "r+b");
        assert_true(f && fwrite(&lengths[i], 8, 1, f) == 1 && !fclose(f));
        hostile_case(
            arena_printf(&hostile_arena, "a header of %llu", (unsigned long long)lengths[i]));
        workdir_truncate(hostile_path("model.safetensors"), (int64_t)1 << 35);
        hostile_within("the same, of 32 GB", HOSTILE_BYTES + 16 * HOSTILE_MEGABYTE);
    }
}

static void test_truncations(void **)
{
    const struct bytes b = read_weights();
    const char *path = hostile_path("model.safetensors");
    for (int64_t n = b.size + 3; n >= 0; n -= n > b.size - 9 || n < 20 ? 1 : 61) {
        if (n == b.size) continue;
        if (n > b.size) workdir_write(path, b.data, b.size);
        workdir_truncate(path, n);
        hostile_case(
            arena_printf(&hostile_arena, "%lld of %lld bytes", (long long)n, (long long)b.size));
    }
    hf_write(&hostile_hf, hostile_folder);
    hostile_kinds("model.safetensors");
}

/* Another program cuts the file after it was opened. */
static void test_cut_while_open(void **)
{
    struct exchange_model m;
    struct model own;
    static float values[HF_VOCAB * HF_EMBD];
    hf_write(&hostile_hf, hostile_folder);
    if (exchange_open(&m, hostile_folder, &hostile_arena) != ST_OK) fail_msg("%s", fail_message());
    workdir_truncate(hostile_path("model.safetensors"),
                     exchange_find(&m, "wte.weight", EXCHANGE_WEIGHT)->from + 1);
    model_init(&own, &m.config.model, HF_VOCAB, 0, &hostile_arena);
    assert_int_equal(exchange_read(&m, &own.parameter[0], EXCHANGE_WEIGHT, values), ST_FORMAT);
    assert_non_null(strstr(fail_message(), "was cut"));
    exchange_close(&m);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, hostile_set_up, hostile_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_missing_tensors), TEST(test_more_tensors), TEST(test_shapes_of_tensors),
        TEST(test_headers),         TEST(test_truncations),  TEST(test_cut_while_open),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    printf("%d folders were refused\n", hostile_tried);
    return failed;
}

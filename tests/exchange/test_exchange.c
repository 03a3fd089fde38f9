/* Folders of Hugging Face, written here by other code than Strobe's, and Strobe's checkpoints. */
#include "exchange/exchange.h"

#include "../support/hf.h"
#include "../support/message.h"
#include "../support/workdir.h"
#include "base/file.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct arena arena;
static struct hf hf;
static const char *folder;

static int set_up(void **)
{
    workdir_open();
    folder = workdir_path("model");
    hf_init(&hf);
    return 0;
}

static int tear_down(void **)
{
    arena_release(&arena);
    hf_release(&hf);
    workdir_close();
    return 0;
}

static struct exchange_model open_model(const char *word)
{
    struct exchange_model m;
    if (exchange_open(&m, word, &arena) != ST_OK) fail_msg("%s", fail_message());
    return m;
}

/* The parameters of an open model, for the given rows of the two tables. */
static struct model model_of(const struct exchange_model *m, int64_t vocab, int64_t positions)
{
    struct model own;
    struct config_model keys = m->config.model;
    keys.vocab_size = keys.pad_vocab = 0;
    keys.block_size = positions;
    model_init(&own, &keys, vocab, 0, &arena);
    return own;
}

/* What exchange_read leaves alone stays NaN. */
static float *read_poisoned(const struct exchange_model *m, const struct parameter *p,
                            enum exchange_part part)
{
    int64_t n = type_elements(&p->type);
    float *values = ARENA_NEW(&arena, float, n + 1);
    for (int64_t k = 0; k <= n; k++) values[k] = NAN;
    if (exchange_read(m, p, part, values) != ST_OK) fail_msg("%s", fail_message());
    assert_true(isnan(values[n]));
    return values;
}

/* Every parameter has the values of `good`, also those of the tables that both have; other rows of
 * the tables are zero. */
static void assert_values(const struct exchange_model *m, struct hf *good, int64_t vocab,
                          int64_t positions)
{
    const struct model own = model_of(m, vocab, positions);
    for (int i = 0; i < own.parameters; i++) {
        const struct parameter *p = &own.parameter[i];
        const struct safetensor *t = hf_tensor(good, p->name);
        int64_t there = type_elements(&p->type);
        if (t->dim[0] < p->type.dim[0]) there = there / p->type.dim[0] * t->dim[0];
        const float *values = read_poisoned(m, p, EXCHANGE_WEIGHT);
        assert_memory_equal(values, t->data, (size_t)there * sizeof *values);
        for (int64_t k = there; k < type_elements(&p->type); k++)
            assert_true(values[k] == 0 && !signbit(values[k]));
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

static void test_values_and_keys(void **)
{
    hf_write(&hf, folder);
    assert_true(exchange_is(folder, &arena));
    assert_false(exchange_is(workdir_path("nothing"), &arena));
    struct exchange_model m = open_model(folder);
    assert_values(&m, &hf, HF_VOCAB, HF_POSITIONS);
    const struct config_model *k = &m.config.model;
    assert_int_equal(k->kind, MODEL_GPT);
    assert_int_equal(k->n_layer, HF_LAYERS);
    assert_int_equal(k->n_head, 2);
    assert_int_equal(k->n_embd, HF_EMBD);
    assert_int_equal(k->block_size, HF_POSITIONS);
    assert_int_equal(k->vocab_size, HF_VOCAB);
    assert_int_equal(m.vocab, HF_VOCAB);
    assert_true(k->bias);
    assert_int_equal(k->gelu, GELU_TANH);
    assert_int_equal(m.iter, 0);
    assert_true(isinf(m.best_val_loss));
    assert_int_equal(m.states, 0);
    assert_null(m.tokenizer);
    exchange_close(&m);
    struct config_model keys;
    assert_int_equal(exchange_config(folder, &keys, &arena), ST_OK);
    assert_int_equal(keys.n_embd, HF_EMBD);
}

static void test_names_without_prefix(void **)
{
    for (int i = 0; i < hf.tensors; i++) hf.tensor[i].name += strlen("transformer.");
    hf_write(&hf, folder);
    struct exchange_model m = open_model(folder);
    for (int i = 0; i < hf.tensors; i++) hf.tensor[i].name -= strlen("transformer.");
    assert_values(&m, &hf, HF_VOCAB, HF_POSITIONS);
    exchange_close(&m);
}

static void test_other_sizes_of_the_tables(void **)
{
    static const int64_t vocab[] = {1, HF_VOCAB - 1, HF_VOCAB, HF_VOCAB + 1, 64};
    static const int64_t positions[] = {1, HF_POSITIONS - 1, HF_POSITIONS};
    for (int narrow = 0; narrow < 2; narrow++) {
        hf_write(&hf, folder);
        struct exchange_model m = open_model(folder);
        if (narrow) hf_init(&hf);
        for (int i = 0; i < COUNT_OF(vocab); i++)
            for (int k = 0; k < COUNT_OF(positions); k++)
                assert_values(&m, &hf, vocab[i], positions[k]);
        exchange_close(&m);
        hf_narrow(&hf, hf_tensor(&hf, "wte.weight"), SAFETENSORS_F16);
        hf_narrow(&hf, hf_tensor(&hf, "wpe.weight"), SAFETENSORS_BF16);
    }
}

static const char *index_of(int files)
{
    const char *text = "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {", *comma = "";
    for (int i = 0; i < hf.tensors; i++) {
        text = arena_printf(&arena, "%s%s\"%s\": \"part-%d.safetensors\"", text, comma,
                            hf.tensor[i].name, i * files / hf.tensors);
        comma = ",";
    }
    return arena_printf(&arena, "%s}}", text);
}

static void test_shards(void **)
{
    for (int files = 1; files <= HF_TENSORS; files += 9) {
        hf_write(&hf, folder);
        remove(arena_printf(&arena, "%s/model.safetensors", folder));
        for (int f = 0, from = 0; f < files; f++) {
            int to = from;
            while (to < hf.tensors && to * files / hf.tensors == f) to++;
            hf_write_tensors(&hf, folder, arena_printf(&arena, "part-%d.safetensors", f), from, to);
            from = to;
        }
        workdir_text("model/model.safetensors.index.json", index_of(files));
        struct exchange_model m = open_model(folder);
        assert_int_equal(m.files, files);
        assert_values(&m, &hf, HF_VOCAB, HF_POSITIONS);
        exchange_close(&m);
    }
}

static void test_masks_are_skipped(void **)
{
    static const float mask[HF_POSITIONS * HF_POSITIONS] = {1}, least = -1e4f;
    static const bool bits[HF_POSITIONS * HF_POSITIONS];
    const int64_t dim[] = {1, 1, HF_POSITIONS, HF_POSITIONS};
    hf_add(&hf, "transformer.h.0.attn.bias", SAFETENSORS_F32, 4, dim, mask);
    hf_add(&hf, "h.1.attn.bias", SAFETENSORS_BOOL, 4, dim, bits);
    hf_add(&hf, "transformer.h.0.attn.masked_bias", SAFETENSORS_F32, 0, NULL, &least);
    hf_write(&hf, folder);
    struct exchange_model m = open_model(folder);
    assert_values(&m, &hf, HF_VOCAB, HF_POSITIONS);
    exchange_close(&m);
}

/* Whether the head is used, by its values, its type, its shape and what config.json says. */
static void test_heads(void **)
{
    static const float other[HF_VOCAB * HF_EMBD];
    const int64_t dim[] = {HF_VOCAB, HF_EMBD}, turned[] = {HF_EMBD, HF_VOCAB};
    struct safetensor table = *hf_tensor(&hf, "wte.weight");
    static const char own[] = "an output head of its own";
    struct exchange_model m;
    struct safetensor *head = hf_add(&hf, "lm_head.weight", SAFETENSORS_F32, 2, dim, table.data);
    hf_write(&hf, folder);
    m = open_model(folder);
    assert_values(&m, &hf, HF_VOCAB, HF_POSITIONS);
    exchange_close(&m);
    head->data = other;
    hf_write(&hf, folder);
    m = open_model(folder);
    exchange_close(&m);

    hf_set(&hf, "tie_word_embeddings", "false");
    hf_write(&hf, folder);
    assert_int_equal(exchange_open(&m, folder, &arena), ST_UNSUPPORTED);
    assert_message_has(own);
    float *almost = ARENA_NEW(&arena, float, HF_VOCAB *HF_EMBD);
    memcpy(almost, table.data, sizeof other);
    almost[HF_VOCAB * HF_EMBD - 1] += 1;
    head->data = almost;
    hf_write(&hf, folder);
    assert_int_equal(exchange_open(&m, folder, &arena), ST_UNSUPPORTED);
    head->data = table.data;
    hf_write(&hf, folder);
    m = open_model(folder);
    assert_values(&m, &hf, HF_VOCAB, HF_POSITIONS);
    exchange_close(&m);
    memcpy(head->dim, turned, sizeof turned);
    hf_write(&hf, folder);
    assert_int_equal(exchange_open(&m, folder, &arena), ST_UNSUPPORTED);
    assert_message_has(own);
    memcpy(head->dim, dim, sizeof dim);
    hf_narrow(&hf, hf_tensor(&hf, "wte.weight"), SAFETENSORS_F16);
    head->type = SAFETENSORS_BF16;
    head->data = hf_tensor(&hf, "wte.weight")->data;
    hf_write(&hf, folder);
    assert_int_equal(exchange_open(&m, folder, &arena), ST_UNSUPPORTED);
    assert_message_has(own);
    hf.tensors--;
    hf_write(&hf, folder);
    assert_int_equal(exchange_open(&m, folder, &arena), ST_FORMAT);
    assert_message_has("there is no lm_head.weight");
}

/* --- 16 bits ---------------------------------------------------------------------------------- */

/* The value of a number with `bits` bits of fraction, by its definition. */
static double value_of(unsigned x, int bits)
{
    int exponents = 1 << (15 - bits), bias = exponents / 2 - 1;
    int exponent = (int)(x >> bits) & (exponents - 1), fraction = (int)x & ((1 << bits) - 1);
    double sign = x >> 15 ? -1 : 1;
    if (exponent == exponents - 1) return fraction ? NAN : sign * HUGE_VAL;
    if (!exponent) return sign * ldexp(fraction, 1 - bias - bits);
    return sign * ldexp(fraction + (1 << bits), exponent - bias - bits);
}

static void test_all_numbers_of_16_bits(void **)
{
    enum { ALL = 65536 };
    static uint16_t all[ALL];
    for (int i = 0; i < ALL; i++) all[i] = (uint16_t)i;
    for (int brain = 0; brain < 2; brain++) {
        struct safetensor *t = hf_tensor(&hf, "wte.weight");
        t->type = brain ? SAFETENSORS_BF16 : SAFETENSORS_F16;
        t->dim[0] = ALL / HF_EMBD;
        t->data = all;
        hf_set(&hf, "vocab_size", "8192");
        hf_write(&hf, folder);
        struct exchange_model m = open_model(folder);
        const struct model own = model_of(&m, ALL / HF_EMBD, HF_POSITIONS);
        assert_string_equal(own.parameter[0].name, "wte.weight");
        const float *values = read_poisoned(&m, &own.parameter[0], EXCHANGE_WEIGHT);
        for (int i = 0; i < ALL; i++) {
            double expected = value_of((unsigned)i, brain ? 7 : 10), x = (double)values[i];
            bool same =
                isnan(expected) ? isnan(x) : x == expected && signbit(x) == signbit(expected);
            if (!same) fail_msg("%#x became %a, not %a", (unsigned)i, x, expected);
        }
        exchange_close(&m);
    }
}

static void test_files_of_16_bits(void **)
{
    for (int brain = 0; brain < 2; brain++) {
        hf_init(&hf);
        for (int i = 0; i < hf.tensors; i++)
            hf_narrow(&hf, &hf.tensor[i], brain ? SAFETENSORS_BF16 : SAFETENSORS_F16);
        hf_write(&hf, folder);
        hf_init(&hf);
        struct exchange_model m = open_model(folder);
        assert_values(&m, &hf, HF_VOCAB, HF_POSITIONS);
        exchange_close(&m);
    }
}

/* A tensor of several of the reader's pieces (65,536 values), the last of them not whole. */
static void test_long_tensor_of_16_bits(void **)
{
    enum { ROWS = 20001 };
    float *values = ARENA_NEW(&arena, float, ROWS *HF_EMBD);
    for (int i = 0; i < ROWS * HF_EMBD; i++) values[i] = (float)(i % 255 - 127);
    struct safetensor *t = hf_tensor(&hf, "wte.weight");
    t->dim[0] = ROWS;
    t->data = values;
    hf_narrow(&hf, t, SAFETENSORS_F16);
    hf_set(&hf, "vocab_size", "20001");
    hf_write(&hf, folder);
    t->data = values;
    struct exchange_model m = open_model(folder);
    assert_values(&m, &hf, ROWS, HF_POSITIONS);
    assert_values(&m, &hf, ROWS - 3, HF_POSITIONS);
    exchange_close(&m);
}

/* Numbers of float64 are rounded to the nearest float32, in several of the reader's pieces. */
static void test_long_tensor_of_64_bits(void **)
{
    enum { ROWS = 20001 };
    double *wide = ARENA_NEW(&arena, double, ROWS *HF_EMBD);
    float *values = ARENA_NEW(&arena, float, ROWS *HF_EMBD);
    for (int i = 0; i < ROWS * HF_EMBD; i++) {
        wide[i] = (i - 80000) / 3.0;
        values[i] = (float)wide[i];
    }
    struct safetensor *t = hf_tensor(&hf, "wte.weight");
    t->type = SAFETENSORS_F64;
    t->dim[0] = ROWS;
    t->data = wide;
    hf_set(&hf, "vocab_size", "20001");
    hf_write(&hf, folder);
    t->data = values;
    struct exchange_model m = open_model(folder);
    assert_values(&m, &hf, ROWS, HF_POSITIONS);
    exchange_close(&m);
}

/* --- keys ------------------------------------------------------------------------------------- */

static void test_keys_of_the_model(void **)
{
    static const struct {
        const char *key, *value;
        enum status st;
        enum gelu gelu;
    } cases[] = {
        {"activation_function", "\"gelu\"", ST_OK, GELU_ERF},
        {"activation_function", "\"gelu_python\"", ST_OK, GELU_ERF},
        {"activation_function", "\"gelu_new\"", ST_OK, GELU_TANH},
        {"activation_function", "\"gelu_fast\"", ST_OK, GELU_TANH},
        {"activation_function", "\"gelu_pytorch_tanh\"", ST_OK, GELU_TANH},
        {"activation_function", NULL, ST_OK, GELU_TANH},
        {"activation_function", "\"relu\"", ST_UNSUPPORTED, 0},
        {"n_inner", NULL, ST_OK, GELU_TANH},
        {"n_inner", "32", ST_OK, GELU_TANH},
        {"n_inner", "31", ST_UNSUPPORTED, 0},
        {"layer_norm_epsilon", "0.00001", ST_OK, GELU_TANH},
        {"layer_norm_epsilon", NULL, ST_OK, GELU_TANH},
        {"layer_norm_epsilon", "1e-6", ST_UNSUPPORTED, 0},
        {"scale_attn_weights", "true", ST_OK, GELU_TANH},
        {"scale_attn_weights", "false", ST_UNSUPPORTED, 0},
        {"scale_attn_by_inverse_layer_idx", "false", ST_OK, GELU_TANH},
        {"add_cross_attention", "false", ST_OK, GELU_TANH},
        {"tie_word_embeddings", NULL, ST_OK, GELU_TANH},
    };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct config_model k;
        hf_init(&hf);
        hf_set(&hf, cases[i].key, cases[i].value);
        hf_write(&hf, folder);
        enum status st = exchange_config(folder, &k, &arena);
        if (st != cases[i].st) fail_msg("case %d: %d: %s", i, (int)st, fail_message());
        if (st == ST_OK) assert_int_equal(k.gelu, cases[i].gelu);
        if (st != ST_OK) assert_message_has(cases[i].key);
    }
}

/* --- published models ------------------------------------------------------------------------- */

static void test_keys_of_published_models(void **)
{
    static const struct {
        const char *name;
        int64_t n_layer, n_head, n_embd;
    } sizes[] = {{"gpt2", 12, 12, 768},
                 {"gpt2-medium", 24, 16, 1024},
                 {"gpt2-large", 36, 20, 1280},
                 {"gpt2-xl", 48, 25, 1600}};
    for (int i = 0; i < COUNT_OF(sizes); i++) {
        struct config_model k;
        assert_true(exchange_is(sizes[i].name, &arena));
        assert_int_equal(exchange_config(sizes[i].name, &k, &arena), ST_OK);
        assert_int_equal(k.n_layer, sizes[i].n_layer);
        assert_int_equal(k.n_head, sizes[i].n_head);
        assert_int_equal(k.n_embd, sizes[i].n_embd);
        assert_int_equal(k.block_size, 1024);
        assert_int_equal(k.vocab_size, 50257);
        assert_true(k.bias && k.gelu == GELU_TANH && !k.n_kv_head);
    }
    assert_false(exchange_is("gpt2-huge", &arena));
    struct exchange_model m;
    assert_int_equal(exchange_open(&m, "gpt2-huge", &arena), ST_USAGE);
    assert_message_has("gpt2-medium");
}

/* The cache of Hugging Face: files of a snapshot are links to blobs. `owner` ends with "--". */
static void write_hub(const char *owner, const char *revision)
{
    const char *top = arena_printf(&arena, "%s/models--%sgpt2", workdir_path("hub"), owner);
    const char *snapshot = arena_printf(&arena, "%s/snapshots/%s", top, revision);
    const char *refs = arena_printf(&arena, "%s/refs", top);
    static const char *const names[] = {"config.json", "model.safetensors"};
    assert_int_equal(file_make_dirs(snapshot), ST_OK);
    assert_int_equal(file_make_dirs(refs), ST_OK);
    hf_write(&hf, arena_printf(&arena, "%s/blobs", top));
    workdir_write(arena_printf(&arena, "%s/main", refs), revision, (int64_t)strlen(revision));
    for (int i = 0; i < COUNT_OF(names); i++) {
        const char *blob = arena_printf(&arena, "%s/blobs/%d0cafe", top, i);
        rename(arena_printf(&arena, "%s/blobs/%s", top, names[i]), blob);
        assert_int_equal(symlink(arena_printf(&arena, "../../blobs/%d0cafe", i),
                                 arena_printf(&arena, "%s/%s", snapshot, names[i])),
                         0);
    }
}

static void test_cache_of_hugging_face(void **)
{
    const char *const owners[] = {"openai-community--", ""};
    setenv("XDG_CACHE_HOME", workdir_path("cache"), 1);
    for (int i = 0; i < COUNT_OF(owners); i++) {
        setenv("HF_HUB_CACHE", workdir_path("hub"), 1);
        write_hub(owners[i], "607a30d783dfa663caf39e06633721c8d4cfcd7e");
        struct exchange_model m = open_model("gpt2");
        assert_non_null(strstr(m.path, "snapshots/607a30d783dfa663caf39e06633721c8d4cfcd7e"));
        assert_values(&m, &hf, HF_VOCAB, HF_POSITIONS);
        exchange_close(&m);
        assert_int_equal(file_remove_dir(workdir_path("hub")), ST_OK);
    }
    /* HF_HOME holds the folder "hub"; no folder is needed for a cache of Strobe's own. */
    write_hub(owners[0], "abcdef");
    unsetenv("HF_HUB_CACHE");
    unsetenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (home) home = arena_strdup(&arena, home);
    unsetenv("HOME");
    setenv("HF_HOME", workdir_path("."), 1);
    struct exchange_model m;
    enum status st = exchange_open(&m, "gpt2", &arena);
    if (home) setenv("HOME", home, 1);
    unsetenv("HF_HOME");
    if (st != ST_OK) fail_msg("%s", fail_message());
    exchange_close(&m);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_values_and_keys),           TEST(test_names_without_prefix),
        TEST(test_other_sizes_of_the_tables), TEST(test_shards),
        TEST(test_masks_are_skipped),         TEST(test_heads),
        TEST(test_all_numbers_of_16_bits),    TEST(test_files_of_16_bits),
        TEST(test_long_tensor_of_16_bits),    TEST(test_long_tensor_of_64_bits),
        TEST(test_keys_of_the_model),         TEST(test_keys_of_published_models),
        TEST(test_cache_of_hugging_face),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

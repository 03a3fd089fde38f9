/* Models written for other programs and read back, their vocabularies, and Strobe's checkpoints. */
#include "../support/capture.h"
#include "../support/hf.h"
#include "../support/message.h"
#include "../support/workdir.h"
#include "base/file.h"
#include "base/json.h"
#include "data/kind.h"
#include "exchange/exchange.h"
#include "text/tokenizer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static struct arena arena;
static struct hf hf;
static const char *folder, *out;

static int set_up(void **)
{
    workdir_open();
    folder = workdir_path("model");
    out = workdir_path("exports/out");
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

static struct model model_of(const struct exchange_model *m)
{
    struct model own;
    struct config_model keys = m->config.model;
    keys.vocab_size = keys.pad_vocab = 0;
    model_init(&own, &keys, m->vocab, 0, &arena);
    return own;
}

static const float *read(const struct exchange_model *m, const struct parameter *p,
                         enum exchange_part part)
{
    float *values = ARENA_NEW(&arena, float, type_elements(&p->type));
    if (exchange_read(m, p, part, values) != ST_OK) fail_msg("%s", fail_message());
    return values;
}

static struct vocabulary numbers(int size)
{
    struct vocabulary v;
    data_tokens.sized(&v, size, &arena);
    return v;
}

static void write_hf(const struct exchange_model *m, const struct vocabulary *v)
{
    const struct exchange_format *f = exchange_find_format("hf");
    assert_non_null(f);
    if (exchange_write(m, v, f, out, &arena) != ST_OK) fail_msg("%s", fail_message());
}

/* --- Strobe's checkpoints --------------------------------------------------------------------- */

/* What a checkpoint of the test has: value k of a parameter's part. */
static float value_at(int parameter, int part, int64_t k)
{
    return (float)((parameter * 31 + part * 7 + k) % 113) - 50.25f;
}

static const char *const no_endings[] = {NULL};
static const char *const adamw[] = {".m", ".v", NULL};
static const char *const sgd[] = {".momentum", NULL};

static struct config small_config(void)
{
    struct config c;
    config_init(&c);
    c.model.n_layer = 1;
    c.model.n_head = 2;
    c.model.n_embd = HF_EMBD;
    c.model.block_size = HF_POSITIONS;
    return c;
}

/* `rest`: the members after the configuration. */
static void write_state(const struct config *c, const char *rest)
{
    struct str text = {};
    config_print(c, &text);
    json_t *quote = json_string(str_text(&text));
    char *quoted = json_dumps(quote, JSON_ENCODE_ANY);
    workdir_text("model/state.json", arena_printf(&arena, "{\"config\": %s, %s}", quoted, rest));
    free(quoted);
    json_decref(quote);
    str_release(&text);
}

/* `endings`: of the states of each parameter; `lacking` of the last parameters lack theirs. */
static void write_checkpoint(const struct config *c, const char *const *endings, int lacking)
{
    struct model own;
    struct safetensor tensor[128];
    int n = 0, weights;
    model_init(&own, &c->model, HF_VOCAB, 0, &arena);
    assert_int_equal(file_make_dirs(folder), ST_OK);
    for (int part = 0; part == 0 || endings[part - 1]; part++)
        for (int i = 0; i < own.parameters - (part ? lacking : 0); i++) {
            const struct parameter *p = &own.parameter[i];
            const char *ending = part ? endings[part - 1] : "";
            float *data = ARENA_NEW(&arena, float, type_elements(&p->type));
            for (int64_t k = 0; k < type_elements(&p->type); k++) data[k] = value_at(i, part, k);
            tensor[n] = (struct safetensor){.name = arena_printf(&arena, "%s%s", p->name, ending),
                                            .rank = p->type.rank,
                                            .data = data};
            for (int d = 0; d < p->type.rank; d++) tensor[n].dim[d] = p->type.dim[d];
            n++;
        }
    weights = own.parameters;
    assert_int_equal(
        safetensors_write(workdir_path("model/model.safetensors"), tensor, weights, NULL), ST_OK);
    assert_int_equal(safetensors_write(workdir_path("model/optimizer.safetensors"),
                                       tensor + weights, n - weights, NULL),
                     ST_OK);
    write_state(c, "\"iter\": 7, \"best_val_loss\": 1.5");
}

static void test_checkpoints_of_strobe(void **)
{
    const struct {
        const char *const *endings;
        int states;
    } cases[] = {{adamw, 2}, {sgd, 1}, {no_endings, 0}};
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < COUNT_OF(cases); i++) {
            struct config c = small_config();
            c.model.kind = kind ? MODEL_CS336 : MODEL_GPT;
            c.train.optimizer = cases[i].states == 1 ? OPTIMIZER_SGD : OPTIMIZER_ADAMW;
            write_checkpoint(&c, cases[i].endings, 0);
            struct exchange_model m = open_model(folder);
            assert_ptr_equal(m.format, &exchange_strobe);
            assert_int_equal(m.states, cases[i].states);
            assert_int_equal(m.iter, 7);
            assert_true(m.best_val_loss == 1.5);
            assert_int_equal(m.vocab, HF_VOCAB);
            assert_int_equal(m.config.train.optimizer, c.train.optimizer);
            const struct model own = model_of(&m);
            for (int p = 0; p < own.parameters; p++)
                for (int part = 0; part <= m.states; part++) {
                    const float *values = read(&m, &own.parameter[p], part);
                    for (int64_t k = 0; k < type_elements(&own.parameter[p].type); k++)
                        assert_true(values[k] == value_at(p, part, k));
                }
            exchange_close(&m);
            write_state(&c, "\"iter\": 0, \"best_val_loss\": null");
            m = open_model(folder);
            assert_true(isinf(m.best_val_loss) && m.iter == 0);
            exchange_close(&m);
        }
}

static void refused(const char *part)
{
    struct exchange_model m;
    enum status st = exchange_open(&m, folder, &arena);
    if (st != ST_FORMAT && st != ST_UNSUPPORTED && !is_of_files(st))
        fail_msg("%s: status %d: %s", part, (int)st, fail_message());
    assert_message_has(part);
    assert_message_has(folder);
}

static void test_damaged_checkpoints(void **)
{
    static const char *const mixed[] = {".m", ".momentum", NULL}, *const odd[] = {".m", ".w", NULL},
                             *const second[] = {".v", NULL}, *const none[] = {"", NULL};
    static const float table[1];
    const int64_t wide[] = {(int64_t)1 << 60, 0};
    const struct config c = small_config();
    const char *state = workdir_path("model/state.json");
    static const char *const texts[] = {"",    "{}", "[]", "{\"config\": 3}", "{\"config\": \"\"",
                                        "\xff"};
    write_checkpoint(&c, mixed, 0);
    refused("twice");
    write_checkpoint(&c, odd, 0);
    refused("wte.weight.w is not the state of an optimizer");
    write_checkpoint(&c, none, 0);
    refused("not the state of an optimizer");
    write_checkpoint(&c, sgd, 0);
    refused("the states of another optimizer than adamw");
    struct config other = c;
    other.train.optimizer = OPTIMIZER_SGD;
    write_checkpoint(&other, adamw, 0);
    refused("the states of another optimizer than sgd");
    write_checkpoint(&c, second, 0);
    refused("has no tensor wte.weight");
    write_checkpoint(&c, adamw, 1);
    refused("has no tensor ln_f.weight");
    remove(workdir_path("model/optimizer.safetensors"));
    refused("optimizer.safetensors");
    write_checkpoint(&c, adamw, 0);
    for (int i = 0; i < COUNT_OF(texts); i++) {
        workdir_text("model/state.json", texts[i]);
        refused("has no \"config\"");
    }
    workdir_text("model/state.json", "{\"config\": \"n_layer = 3\\n\", \"iter\": 7}");
    refused("is (11,8), but");
    workdir_text("model/state.json", "{\"config\": \"n_layer = many\\n\", \"iter\": 7}");
    refused("n_layer");
    workdir_text("model/state.json", "{\"config\": \"include = /etc/passwd\\n\", \"iter\": 7}");
    refused("include");
    workdir_text("model/state.json", "{\"config\": \"n_head = 7\\n\", \"iter\": 7}");
    refused("n_head");
    write_state(&c, "\"iter\": -1");
    refused("\"iter\"");
    write_state(&c, "\"iter\": \"7\"");
    refused("\"iter\"");
    write_state(&c, "\"iter\": 7");
    workdir_truncate(state, (int64_t)1 << 40);
    refused("state.json");
    remove(state);
    assert_int_equal(mkdir(state, 0777), 0);
    refused("state.json");

    remove(state);
    write_checkpoint(&c, no_endings, 0);
    const struct safetensor huge = {
        .name = "wte.weight", .rank = 2, .dim = {wide[0], wide[1]}, .data = table};
    assert_int_equal(safetensors_write(workdir_path("model/model.safetensors"), &huge, 1, NULL),
                     ST_OK);
    refused("no table of tokens");
    assert_int_equal(safetensors_write(workdir_path("model/model.safetensors"), NULL, 0, NULL),
                     ST_OK);
    refused("no table of tokens");
}

/* --- writing ---------------------------------------------------------------------------------- */

static void test_written_and_read_back(void **)
{
    hf_write(&hf, folder);
    struct exchange_model m = open_model(folder);
    const struct vocabulary v = numbers(HF_VOCAB);
    write_hf(&m, &v);
    struct exchange_model back = open_model(out);
    const struct model own = model_of(&m);
    for (int i = 0; i < own.parameters; i++)
        assert_memory_equal(read(&back, &own.parameter[i], 0),
                            hf_tensor(&hf, own.parameter[i].name)->data,
                            (size_t)type_elements(&own.parameter[i].type) * sizeof(float));
    assert_memory_equal(&back.config.model, &m.config.model, sizeof m.config.model);
    assert_int_equal(exchange_write(&m, &v, m.format, out, &arena), ST_USAGE);
    assert_message_has("exists already");
    exchange_close(&back);
    exchange_close(&m);
    assert_null(exchange_find_format("strobe"));
    assert_null(exchange_find_format(""));
    assert_non_null(strstr(exchange_format_names(&arena), "hf"));
}

static void test_rows_beyond_the_vocabulary(void **)
{
    static const int sizes[] = {1, HF_VOCAB - 1, HF_VOCAB + 2};
    hf_write(&hf, folder);
    const float *table = hf_tensor(&hf, "wte.weight")->data;
    for (int i = 0; i < COUNT_OF(sizes); i++) {
        struct exchange_model m = open_model(folder);
        const struct vocabulary v = numbers(sizes[i]);
        m.config.model.vocab_size = 0; /* so in a checkpoint whose other rows are padding */
        write_hf(&m, &v);
        struct exchange_model back = open_model(out);
        assert_int_equal(back.vocab, sizes[i]);
        const struct model own = model_of(&back);
        const float *values = read(&back, &own.parameter[0], 0);
        for (int k = 0; k < sizes[i] * HF_EMBD; k++)
            assert_true(values[k] == (k < HF_VOCAB * HF_EMBD ? table[k] : 0));
        exchange_close(&back);
        exchange_close(&m);
        assert_int_equal(file_remove_dir(out), ST_OK);
    }
}

/* Biases that the model lacks are zeros; gelu, the type of the model and its groups of heads. */
static void test_models_of_strobe_are_written(void **)
{
    const struct vocabulary v = numbers(HF_VOCAB);
    for (int tanh = 0; tanh < 2; tanh++) {
        struct config c = small_config();
        c.model.bias = false;
        c.model.gelu = tanh ? GELU_TANH : GELU_ERF;
        write_checkpoint(&c, adamw, 0);
        struct exchange_model m = open_model(folder);
        write_hf(&m, &v);
        struct exchange_model back = open_model(out);
        assert_int_equal(back.config.model.gelu, c.model.gelu);
        assert_true(back.config.model.bias);
        assert_int_equal(back.states, 0);
        const struct model ours = model_of(&m), theirs = model_of(&back);
        int zeros = 0;
        for (int i = 0; i < theirs.parameters; i++) {
            const struct parameter *p = &theirs.parameter[i];
            const float *values = read(&back, p, 0);
            int k = 0;
            while (k < ours.parameters && strcmp(ours.parameter[k].name, p->name)) k++;
            zeros += k == ours.parameters;
            for (int64_t j = 0; j < type_elements(&p->type); j++)
                assert_true(values[j] == (k == ours.parameters ? 0 : value_at(k, 0, j)));
        }
        assert_int_equal(zeros, 7);
        exchange_close(&back);
        exchange_close(&m);
        assert_int_equal(file_remove_dir(out), ST_OK);
    }
    for (int i = 0; i < 2; i++) {
        struct config c = small_config();
        if (i) c.model.n_kv_head = 1;
        if (!i) c.model.kind = MODEL_CS336;
        write_checkpoint(&c, adamw, 0);
        struct exchange_model m = open_model(folder);
        assert_int_equal(exchange_write(&m, &v, &exchange_huggingface, out, &arena),
                         ST_UNSUPPORTED);
        assert_message_has("a key head for each query head");
        assert_false(file_exists(out));
        exchange_close(&m);
    }
}

/* --- vocabularies ----------------------------------------------------------------------------- */

/* Opens the folder's vocabulary; returns the warnings. */
static const char *open_vocabulary(const char *path, struct vocabulary *ret)
{
    struct exchange_model m = open_model(path);
    stderr_capture();
    enum status st = exchange_vocabulary(&m, ret, &arena);
    const char *warnings = stderr_release();
    if (st != ST_OK) fail_msg("%s", fail_message());
    exchange_close(&m);
    return warnings;
}

static void write_vocab(const char *size, int64_t rows)
{
    hf_init(&hf);
    struct safetensor *t = hf_tensor(&hf, "wte.weight");
    t->dim[0] = rows;
    t->data = ARENA_NEW(&arena, float, rows *HF_EMBD);
    hf_set(&hf, "vocab_size", size);
    hf_write(&hf, folder);
}

static void test_characters(void **)
{
    static const char *const texts[] = {
        "\t", "\n", " ", "\"", "'", "<", "\\", "a", "\xc3\xb6", "\xe6\x97\xa5", "\xf0\x9f\x98\x80"};
    const struct vocabulary v = {.kind = &data_characters, .size = HF_VOCAB, .text = texts};
    assert_int_equal(COUNT_OF(texts), HF_VOCAB);
    hf_write(&hf, folder);
    struct exchange_model m = open_model(folder);
    write_hf(&m, &v);
    exchange_close(&m);
    struct vocabulary back;
    assert_string_equal(open_vocabulary(out, &back), "");
    assert_ptr_equal(back.kind, &data_characters);
    assert_int_equal(back.size, HF_VOCAB);
    for (int i = 0; i < HF_VOCAB; i++) assert_string_equal(back.text[i], texts[i]);
    assert_true(vocabulary_same(&v, &back));
}

static void test_tokenizer_of_gpt2(void **)
{
    static const char *const names[] = {"vocab.json", "merges.txt"};
    static const int64_t rows[] = {270, 300, 269};
    enum { IDS = 270 };
    for (int i = 0; i < COUNT_OF(rows); i++) {
        write_vocab(arena_printf(&arena, "%lld", (long long)rows[i]), rows[i]);
        for (int k = 0; k < COUNT_OF(names); k++) {
            char *data;
            int64_t n;
            assert_int_equal(
                file_read(arena_printf(&arena, "tests/tokenizer/%s", names[k]), &arena, &data, &n),
                ST_OK);
            workdir_write(arena_printf(&arena, "%s/%s", folder, names[k]), data, n);
        }
        struct vocabulary v, back;
        const char *warnings = open_vocabulary(folder, &v);
        if (rows[i] < IDS) {
            assert_non_null(strstr(warnings, "has 270 tokens, but the model has 269"));
            assert_ptr_equal(v.kind, &data_tokens);
            continue;
        }
        assert_string_equal(warnings, "");
        assert_ptr_equal(v.kind, &data_byte_pairs);
        assert_int_equal(v.size, IDS);
        int32_t *ids;
        int64_t n;
        assert_int_equal(vocabulary_encode(&v, " the dog", &arena, &ids, &n), ST_OK);
        assert_int_equal(n, 2);
        struct exchange_model m = open_model(folder);
        write_hf(&m, &v);
        exchange_close(&m);
        assert_string_equal(open_vocabulary(out, &back), "");
        assert_true(vocabulary_same(&v, &back));
        assert_int_equal(file_remove_dir(out), ST_OK);
    }
}

/* Tokenizers that cannot be used: one warning, and ids as numbers. */
static void test_other_tokenizers(void **)
{
#define CHARACTERS(ids)                                      \
    "{\"model\":{\"type\":\"WordLevel\",\"vocab\":" ids "}," \
    "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[\\\\s\\\\S]\"}}}"
    static const char *const texts[] = {
        "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",-1.5]]}}",
        "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}}}",
        "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0}}}",
        "",
        "{",
        "[]",
        "3",
        "{}",
        "{\"model\":[]}",
        "{\"model\":{\"type\":\"BPE\"}}",
        CHARACTERS("{}"),
        CHARACTERS("[]"),
        CHARACTERS("{\"a\":1}"),
        CHARACTERS("{\"a\":-1}"),
        CHARACTERS("{\"a\":\"0\"}"),
        CHARACTERS("{\"a\":0.0}"),
        CHARACTERS("{\"a\":0,\"b\":0}"),
        CHARACTERS("{\"a\":0,\"b\":2}"),
        CHARACTERS("{\"b\":0,\"a\":1}"),
        CHARACTERS("{\"ab\":0}"),
        CHARACTERS("{\"\":0}"),
        CHARACTERS("{\"a\":9223372036854775807}"),
        CHARACTERS("{\"0\":0,\"1\":1,\"2\":2,\"3\":3,\"4\":4,\"5\":5,\"6\":6,\"7\":7,\"8\":8,"
                   "\"9\":9,\"A\":10,\"B\":11}"),
    };
    struct vocabulary v;
    hf_write(&hf, folder);
    assert_string_equal(open_vocabulary(folder, &v), "");
    assert_ptr_equal(v.kind, &data_tokens);
    assert_int_equal(v.size, HF_VOCAB);
    workdir_text("model/tokenizer.json", CHARACTERS("{\"a\":0,\"b\":1}"));
    assert_string_equal(open_vocabulary(folder, &v), "");
    assert_int_equal(v.size, 2);
    for (int i = 0; i < COUNT_OF(texts); i++) {
        workdir_text("model/tokenizer.json", texts[i]);
        const char *warnings = open_vocabulary(folder, &v);
        if (!strstr(warnings, "tokens are shown as numbers")) fail_msg("%d: %s", i, warnings);
        assert_ptr_equal(v.kind, &data_tokens);
        assert_int_equal(v.size, HF_VOCAB);
        assert_string_equal(vocabulary_text(&v, HF_VOCAB - 1), "<10>");
    }
    remove(workdir_path("model/tokenizer.json"));
    assert_int_equal(mkfifo(workdir_path("model/tokenizer.json"), 0666), 0);
    assert_non_null(strstr(open_vocabulary(folder, &v), "is a FIFO"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_checkpoints_of_strobe),
        TEST(test_damaged_checkpoints),
        TEST(test_written_and_read_back),
        TEST(test_rows_beyond_the_vocabulary),
        TEST(test_models_of_strobe_are_written),
        TEST(test_characters),
        TEST(test_tokenizer_of_gpt2),
        TEST(test_other_tokenizers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

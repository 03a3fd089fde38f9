/* A file that PyTorch wrote, files that torch_write.c writes, and files not to be trusted. */
#include "exchange/torch_file.h"

#include "../support/workdir.h"
#include "exchange/torch_write.h"
#include "torch_sample.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
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

static void expect_message(const char *part)
{
    if (!strstr(fail_message(), part)) fail_msg("\"%s\" lacks \"%s\"", fail_message(), part);
}

/* Releases what was opened before. */
static enum status open_bytes(const char *bytes, int64_t n, struct torch_file *f)
{
    const char *path = workdir_path("x.pt");
    arena_release(&arena);
    unlink(path); /* writing a new file waits for no disk */
    workdir_write(path, bytes, n);
    return torch_open(f, path, &arena);
}

static const struct pickle_value *get(const struct pickle_value *v, const char *key)
{
    const struct pickle_value *found = pickle_find(v, key);
    if (!found) fail_msg("there is no %s", key);
    return found;
}

/* Compares shape and data of a tensor with what is expected; returns where it is. */
static int64_t expect_tensor(const struct torch_file *f, const struct pickle_value *v,
                             enum safetensors_type type, int rank, const int64_t *dim,
                             const void *data, int64_t bytes)
{
    struct torch_tensor t;
    char read[256];
    assert_true(torch_is_tensor(v));
    if (torch_tensor(f, "x", v, &t) != ST_OK) fail_msg("%s", fail_message());
    assert_int_equal(t.type, type);
    assert_int_equal(t.rank, rank);
    for (int i = 0; i < rank; i++) assert_int_equal(t.dim[i], dim[i]);
    assert_int_equal(t.bytes, bytes);
    assert_int_equal(torch_read(f, &t, read), ST_OK);
    if (bytes) assert_memory_equal(read, data, bytes);
    assert_int_equal(torch_check(f, &t), ST_OK);
    return t.from;
}

/* --- PyTorch's file --------------------------------------------------------------------------- */

static const float weight[6] = {1.5f, -2.0f, 0.0f, 1e-30f, 3e30f, -0.0f};
static const int64_t shape[] = {2, 3};

static void test_sample(void **state)
{
    (void)state;
    struct torch_file f;
    if (open_bytes(torch_sample, sizeof torch_sample - 1, &f) != ST_OK)
        fail_msg("%s", fail_message());
    const struct pickle_value *model = get(&f.root, "model");
    assert_true(model->dict->is_ordered);
    assert_int_equal(model->dict->count, 3);
    int64_t wte =
        expect_tensor(&f, get(model, "wte.weight"), SAFETENSORS_F32, 2, shape, weight, 24);
    int64_t head =
        expect_tensor(&f, get(model, "lm_head.weight"), SAFETENSORS_F32, 2, shape, weight, 24);
    assert_int_equal(wte, head);
    int64_t bias = expect_tensor(&f, get(model, "bias"), SAFETENSORS_F32, 1, (int64_t[]){1},
                                 &(float){0.25f}, 4);
    assert_int_not_equal(wte, bias);

    const struct pickle_value *optimizer = get(&f.root, "optimizer"),
                              *moments = get(optimizer, "state");
    assert_int_equal(moments->dict->count, 1);
    assert_int_equal(moments->dict->item[0].key.number, 0);
    const struct pickle_value *first = &moments->dict->item[0].value;
    expect_tensor(&f, get(first, "step"), SAFETENSORS_F32, 0, NULL, &(float){1}, 4);
    const struct pickle_value *groups = get(optimizer, "param_groups");
    assert_int_equal(groups->list->count, 2);
    assert_true(get(&groups->list->item[0], "weight_decay")->real == 0.1);
    const struct pickle_value *betas = get(&groups->list->item[1], "betas");
    assert_true(betas->list->is_tuple);
    assert_true(betas->list->item[1].real == 0.95);
    assert_int_equal(get(&groups->list->item[1], "params")->list->item[0].number, 1);

    const struct pickle_value *arguments = get(&f.root, "model_args");
    assert_int_equal(get(arguments, "n_layer")->number, 1);
    assert_true(get(arguments, "dropout")->type == PICKLE_REAL);
    assert_true(get(arguments, "bias")->type == PICKLE_BOOL && get(arguments, "bias")->number);
    assert_int_equal(get(arguments, "vocab_size")->type, PICKLE_NONE);
    assert_int_equal(get(&f.root, "iter_num")->number, 2000);
    expect_tensor(&f, get(&f.root, "best_val_loss"), SAFETENSORS_F32, 0, NULL, &(float){1.5f}, 4);
    const struct pickle_value *config = get(&f.root, "config");
    assert_true(get(config, "seed")->number == 1ll << 40);
    assert_false(get(config, "compile")->number);
    assert_memory_equal(get(config, "out_dir")->text, "out", 3);
    assert_false(torch_is_tensor(config));
    struct torch_tensor t;
    assert_int_equal(torch_tensor(&f, "config", config, &t), ST_FORMAT);
    expect_message("x.pt: config is not a tensor");
    torch_close(&f);
    torch_close(&f);
}

static void test_truncation(void **state)
{
    (void)state;
    for (int64_t n = 0; n < (int64_t)sizeof torch_sample - 1; n++) {
        struct torch_file f;
        if (open_bytes(torch_sample, n, &f) == ST_OK) fail_msg("%d bytes", (int)n);
    }
}

/* With any byte changed it is refused, or every tensor that can be read is one that was written. */
static void test_changed_bytes(void **state)
{
    (void)state;
    static char bytes[sizeof torch_sample];
    memcpy(bytes, torch_sample, sizeof bytes);
    int opened = 0;
    for (int64_t i = 0; i < (int64_t)sizeof bytes - 1; i++) {
        struct torch_file f;
        struct torch_tensor t;
        float read[6];
        bytes[i] ^= (char)(1 << i % 8);
        enum status st = open_bytes(bytes, sizeof bytes - 1, &f);
        bytes[i] ^= (char)(1 << i % 8);
        if (st != ST_OK) continue;
        opened++;
        if (torch_tensor(&f, "x", get(get(&f.root, "model"), "wte.weight"), &t) == ST_OK &&
            torch_read(&f, &t, read) == ST_OK)
            assert_memory_equal(read, weight, sizeof weight);
        torch_close(&f);
    }
    assert_true(opened > 0);
}

/* --- our own files ---------------------------------------------------------------------------- */

static const uint8_t all_bytes[64] = {1, 2, 3, 0x80, 0xff, 0x3f, 0, 0x7f, 0xc0, 5, 6, 7};

static const int64_t integers[] = {0,         255,       256,       -1,       INT32_MAX,
                                   INT32_MIN, 1ll << 31, INT64_MIN, INT64_MAX};

static void write_own(const char *path)
{
    struct torch_writer w;
    assert_int_equal(torch_writer_open(&w, path, &arena), ST_OK);
    int first = torch_put_storage(&w, SAFETENSORS_F32, weight, 6);
    torch_begin(&w, TORCH_DICT);
    torch_put_text(&w, "model");
    torch_begin(&w, TORCH_ORDERED_DICT);
    torch_put_text(&w, "wte");
    torch_put_tensor(&w, first, 0, 2, shape);
    torch_put_text(&w, "lm_head");
    torch_put_tensor(&w, first, 0, 2, shape);
    torch_put_text(&w, "part");
    torch_put_tensor(&w, first, 4, 1, (int64_t[]){2});
    torch_put_text(&w, "scalar");
    torch_put_tensor(&w, first, 1, 0, NULL);
    torch_put_text(&w, "empty");
    torch_put_tensor(&w, torch_put_storage(&w, SAFETENSORS_I64, NULL, 0), 0, 2, (int64_t[]){0, 7});
    torch_end(&w);
    torch_put_text(&w, "types");
    torch_begin(&w, TORCH_TUPLE);
    for (int type = 0; type < SAFETENSORS_TYPE_COUNT; type++)
        torch_put_tensor(&w, torch_put_storage(&w, type, all_bytes, 3), 0, 1, (int64_t[]){3});
    torch_end(&w);
    torch_put_text(&w, "numbers");
    torch_begin(&w, TORCH_LIST);
    for (int i = 0; i < COUNT_OF(integers); i++) torch_put_number(&w, integers[i]);
    torch_begin(&w, TORCH_LIST);
    torch_end(&w);
    torch_begin(&w, TORCH_TUPLE);
    torch_end(&w);
    torch_begin(&w, TORCH_DICT);
    torch_end(&w);
    torch_end(&w);
    torch_put_text(&w, "real");
    torch_put_real(&w, 0.1);
    torch_put_text(&w, "yes");
    torch_put_bool(&w, true);
    torch_put_text(&w, "no");
    torch_put_bool(&w, false);
    torch_put_text(&w, "none");
    torch_put_none(&w);
    torch_put_text(&w, "\xc3\xa9");
    torch_put_text(&w, "");
    torch_end(&w);
    assert_int_equal(torch_writer_commit(&w), ST_OK);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct torch_file f;
    write_own(workdir_path("own.pt"));
    if (torch_open(&f, workdir_path("own.pt"), &arena) != ST_OK) fail_msg("%s", fail_message());
    const struct pickle_value *model = get(&f.root, "model");
    int64_t wte = expect_tensor(&f, get(model, "wte"), SAFETENSORS_F32, 2, shape, weight, 24);
    assert_int_equal(
        expect_tensor(&f, get(model, "lm_head"), SAFETENSORS_F32, 2, shape, weight, 24), wte);
    assert_int_equal(
        expect_tensor(&f, get(model, "part"), SAFETENSORS_F32, 1, (int64_t[]){2}, weight + 4, 8),
        wte + 16);
    expect_tensor(&f, get(model, "scalar"), SAFETENSORS_F32, 0, NULL, weight + 1, 4);
    expect_tensor(&f, get(model, "empty"), SAFETENSORS_I64, 2, (int64_t[]){0, 7}, NULL, 0);
    static const int widths[SAFETENSORS_TYPE_COUNT] = {4, 8, 2, 2, 4, 8, 2, 1, 1, 1};
    const struct pickle_list *types = get(&f.root, "types")->list;
    assert_true(types->is_tuple);
    for (int type = 0; type < SAFETENSORS_TYPE_COUNT; type++)
        expect_tensor(&f, &types->item[type], type, 1, (int64_t[]){3}, all_bytes, 3 * widths[type]);
    const struct pickle_list *numbers = get(&f.root, "numbers")->list;
    assert_int_equal(numbers->count, COUNT_OF(integers) + 3);
    for (int i = 0; i < COUNT_OF(integers); i++)
        assert_true(numbers->item[i].number == integers[i]);
    const struct pickle_value *empty = numbers->item + COUNT_OF(integers);
    assert_true(!empty[0].list->count && !empty[0].list->is_tuple);
    assert_true(!empty[1].list->count && empty[1].list->is_tuple);
    assert_int_equal(empty[2].dict->count, 0);
    assert_true(get(&f.root, "real")->real == 0.1 && get(&f.root, "yes")->number == 1);
    assert_true(get(&f.root, "no")->number == 0 && get(&f.root, "none")->type == PICKLE_NONE);
    assert_int_equal(get(&f.root, "\xc3\xa9")->number, 0);
    torch_close(&f);
}

static void test_full_disk(void **state)
{
    (void)state;
    static float large[100000];
    struct torch_writer w;
    const char *path = workdir_path("own.pt");
    struct rlimit before, small;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(torch_writer_open(&w, path, &arena), ST_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = 300000, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    torch_put_storage(&w, SAFETENSORS_F32, large, COUNT_OF(large));
    torch_put_none(&w);
    enum status st = torch_writer_commit(&w);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(st, ST_IO);
    expect_message("own.pt: File too large");
    assert_false(file_exists(path));
    assert_int_equal(torch_writer_open(&w, path, &arena), ST_OK);
    torch_writer_discard(&w);
    assert_false(file_exists(path));
    assert_int_equal(torch_writer_open(&w, workdir_path("missing/own.pt"), &arena), ST_ABSENT);
}

/* --- hostile files ---------------------------------------------------------------------------- */

/* A file with a given pickle, a storage of 24 bytes and another entry. */
static enum status open_pickle(const char *pickle, int64_t n, const char *other, const char *text,
                               struct torch_file *f)
{
    struct zip_writer w;
    const char *path = workdir_path("x.pt");
    unlink(path);
    arena_release(&arena);
    assert_int_equal(zip_writer_open(&w, path, &arena), ST_OK);
    if (pickle) zip_writer_add(&w, "a/data.pkl", pickle, n);
    zip_writer_add(&w, "a/data/0", weight, sizeof weight);
    if (other) zip_writer_add(&w, other, text, (int64_t)strlen(text));
    assert_int_equal(zip_writer_commit(&w), ST_OK);
    return torch_open(f, path, &arena);
}

#define START  \
    "\x80\x02" \
    "ctorch._utils\n_rebuild_tensor_v2\n("
#define PARAMETER \
    "\x80\x02"    \
    "ctorch._utils\n_rebuild_parameter\n"
#define STORE(class, key) "(X\x07\0\0\0storagec" class "\n" key "NK\x06tQ"
#define KEY0      \
    "X\x01\0\0\0" \
    "0"
#define FLOATS STORE("torch\nFloatStorage", KEY0)

static const struct {
    const char *pickle;
    int64_t n;
    enum status expected;
    const char *part;
} tensors[] = {
#define TENSOR(text, expected, part)          \
    {                                         \
        text, sizeof text - 1, expected, part \
    }
    TENSOR(START FLOATS "K\0K\2K\3\x86K\3K\1\x86tR.", ST_OK, ""),
    TENSOR(START FLOATS "K\5)(ttR.", ST_OK, ""),
    TENSOR(START FLOATS "K\6)(ttR.", ST_FORMAT, "x reaches beyond its storage"),
    TENSOR(START FLOATS "K\0K\6\x85K\1\x85tR.", ST_OK, ""),
    TENSOR(START FLOATS "K\0K\7\x85K\1\x85tR.", ST_FORMAT, "x reaches beyond its storage"),
    TENSOR(START FLOATS "K\1K\6\x85K\1\x85tR.", ST_FORMAT, "x reaches beyond its storage"),
    TENSOR(START FLOATS "K\0K\1K\6\x86K\x63K\1\x86tR.", ST_OK, ""),
    TENSOR(START FLOATS "K\0K\0K\6\x86K\x63K\2\x86tR.", ST_OK, ""),
    TENSOR(START FLOATS "K\0K\3K\2\x86K\1K\3\x86tR.", ST_UNSUPPORTED,
           "x of shape (3,2) has the strides (1,3), so its elements are not in order"),
    TENSOR(START FLOATS "K\0K\2K\2\x86K\3K\1\x86tR.", ST_UNSUPPORTED, "has the strides (3,1)"),
    TENSOR(START FLOATS "K\0K\2\x85K\0\x85tR.", ST_UNSUPPORTED, "has the strides (0)"),
    TENSOR(START FLOATS "K\0K\2\x85)tR.", ST_FORMAT, "x has no shape with as many strides"),
    TENSOR(START FLOATS "K\0K\2K\1tR.", ST_FORMAT, "x has no shape with as many strides"),
    TENSOR(START FLOATS "K\0J\xff\xff\xff\xff\x85K\1\x85tR.", ST_FORMAT,
           "x has a shape or strides"),
    TENSOR(START FLOATS "K\0K\2\x85J\xff\xff\xff\xff\x85tR.", ST_FORMAT,
           "x has a shape or strides"),
    TENSOR(START FLOATS "K\0N\x85K\1\x85tR.", ST_FORMAT, "x has a shape or strides"),
    TENSOR(START FLOATS "J\xff\xff\xff\xff))tR.", ST_FORMAT,
           "x has an offset that is not a number"),
    TENSOR(START FLOATS "\x8a\x08\0\0\0\0\0\0\0\x40))tR.", ST_FORMAT, "reaches beyond its storage"),
    TENSOR(START FLOATS "K\0\x8a\x08\0\0\0\0\0\0\0\x40\x85K\1\x85tR.", ST_FORMAT,
           "reaches beyond its storage"),
    TENSOR(START FLOATS "K\0\x8a\x08\0\0\0\0\0\0\0\x40K\0\x8a\x08\0\0\0\0\0\0\0\x40\x87"
                        "K\0K\0K\1\x87tR.",
           ST_FORMAT, "x has a shape that is too large"),
    TENSOR(START FLOATS "K\0(K\1K\1K\1K\1K\1K\1K\1K\1K\1t(K\1K\1K\1K\1K\1K\1K\1K\1K\1ttR.",
           ST_UNSUPPORTED, "x has 9 dimensions, more than the 8 that are read"),
    TENSOR(START FLOATS "K\0)tR.", ST_FORMAT, "x is not a tensor"),
    TENSOR(START "K\0K\0))tR.", ST_FORMAT, "x has no storage in the file"),
    TENSOR(START "K\0\x85QK\0))tR.", ST_FORMAT, "x has no storage in the file"),
    TENSOR(START STORE("torch\nFloatStorage", "K\0") "K\0))tR.", ST_FORMAT, "of a form that"),
    TENSOR(START STORE("collections\nOrderedDict", KEY0) "K\0))tR.", ST_FORMAT, "of a form that"),
    TENSOR(START STORE("torch\nDoubleStorage", KEY0) "K\0))tR.", ST_FORMAT,
           "x is in data/0, which has 24 bytes instead of 6 elements of 8"),
    TENSOR(START STORE("torch\nFloatStorage", "X\1\0\0\0"
                                              "1") "K\0))tR.",
           ST_FORMAT, "x is in data/1, which the file does not have"),
    TENSOR(START STORE("torch\nFloatStorage", "X\3\0\0\0"
                                              "0\0"
                                              "1") "K\0))tR.",
           ST_FORMAT, "x is in data/0, which the file does not have"),
    TENSOR(START STORE("torch\nFloatStorage", "X\0\0\0\0") "K\0))tR.", ST_FORMAT,
           "x is in data/, which the file does not have"),
    TENSOR(PARAMETER ")R.", ST_FORMAT, "x is not a tensor"),
    TENSOR(PARAMETER "N\x85R.", ST_FORMAT, "x is not a tensor"),
    TENSOR(PARAMETER "ctorch._utils\n_rebuild_tensor_v2\n(" FLOATS "K\0))tR\x88N\x87R.", ST_OK, ""),
    TENSOR("\x80\x02"
           "cos\nsystem\n.",
           ST_FORMAT, "x.pt: data.pkl: byte 2 imports os.system"),
    TENSOR("\x80\x02"
           "c__main__\nGPT\n.",
           ST_FORMAT, "save model.state_dict() instead"),
    TENSOR("", ST_FORMAT, "x.pt: data.pkl is not a pickle"),
    TENSOR("\x80\x02"
           "N.",
           ST_FORMAT, "x is not a tensor"),
};

static void test_hostile_tensors(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT_OF(tensors); i++) {
        struct torch_file f = {};
        struct torch_tensor t;
        float read[6];
        enum status st = open_pickle(tensors[i].pickle, tensors[i].n, NULL, NULL, &f);
        if (st == ST_OK) st = torch_tensor(&f, "x", &f.root, &t);
        if (st != tensors[i].expected) fail_msg("case %d: status %d, %s", i, st, fail_message());
        if (st == ST_OK)
            assert_int_equal(torch_read(&f, &t, read), ST_OK);
        else if (!strstr(fail_message(), tensors[i].part) || !strstr(fail_message(), "x.pt"))
            fail_msg("case %d: \"%s\" lacks \"%s\"", i, fail_message(), tensors[i].part);
        torch_close(&f);
    }
}

static void test_hostile_files(void **state)
{
    (void)state;
    static const struct {
        const char *other, *text;
        enum status expected;
        const char *part;
    } cases[] = {
        {"a/byteorder", "little", ST_OK, ""},
        {"a/byteorder", "big", ST_UNSUPPORTED, "byteorder is \"big\", and only little is read"},
        {"a/byteorder", "little-endian", ST_UNSUPPORTED, "byteorder is \"\""},
        {"b/data.pkl", "", ST_FORMAT, "has a/data.pkl and b/data.pkl: torch.save writes only one"},
        {"b/c/data.pkl", "", ST_OK, ""},
        {"data.pkl", "", ST_OK, ""},
        {"a/constants.pkl", "", ST_UNSUPPORTED, "is a program of TorchScript"},
    };
    struct torch_file f = {};
    for (int i = 0; i < COUNT_OF(cases); i++) {
        enum status st = open_pickle("\x80\x02N.", 4, cases[i].other, cases[i].text, &f);
        if (st != cases[i].expected) fail_msg("case %d: status %d, %s", i, st, fail_message());
        if (st != ST_OK) expect_message(cases[i].part);
        torch_close(&f);
    }
    assert_int_equal(open_pickle(NULL, 0, NULL, NULL, &f), ST_FORMAT);
    expect_message("is a zip file without NAME/data.pkl: it was not written by torch.save");
    static char large[PICKLE_BYTES_MOST + 1];
    assert_int_equal(open_pickle(large, sizeof large, NULL, NULL, &f), ST_UNSUPPORTED);
    expect_message("data.pkl has 16777217 bytes, more than the 16777216");
    assert_null(f.zip.path);
}

static void test_other_formats(void **state)
{
    (void)state;
    struct torch_file f = {};
    assert_int_equal(open_bytes("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.", 15, &f),
                     ST_UNSUPPORTED);
    expect_message("x.pt was written by PyTorch before 1.6");
    assert_int_equal(open_bytes("", 0, &f), ST_FORMAT);
    expect_message("is not a zip file");
    assert_int_equal(torch_open(&f, workdir_path("missing.pt"), &arena), ST_ABSENT);
}

/* The checksum of a storage is compared when one of its tensors is read, whole or in part. */
static void test_wrong_checksum(void **state)
{
    (void)state;
    struct torch_file f;
    struct torch_tensor t;
    float read[6];
    const char *path = workdir_path("own.pt");
    write_own(path);
    workdir_flip(path, 64, 3);
    assert_int_equal(torch_open(&f, path, &arena), ST_OK);
    static const char *const names[] = {"wte", "part"};
    for (int i = 0; i < COUNT_OF(names); i++) {
        assert_int_equal(torch_tensor(&f, "x", get(get(&f.root, "model"), names[i]), &t), ST_OK);
        assert_int_equal(torch_read(&f, &t, read), ST_FORMAT);
        expect_message("own.pt: entry archive/data/0 has the checksum");
        assert_int_equal(torch_check(&f, &t), ST_FORMAT);
    }
    torch_close(&f);
    unlink(path);
    write_own(path);
    assert_int_equal(torch_open(&f, path, &arena), ST_OK);
    workdir_flip(path, zip_find(&f.zip, "archive/data.pkl")->from + 20, 3);
    torch_close(&f);
    assert_int_equal(torch_open(&f, path, &arena), ST_FORMAT);
    expect_message("entry archive/data.pkl has the checksum");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_sample),        TEST(test_truncation),    TEST(test_changed_bytes),
        TEST(test_round_trip),    TEST(test_full_disk),     TEST(test_hostile_tensors),
        TEST(test_hostile_files), TEST(test_other_formats), TEST(test_wrong_checksum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

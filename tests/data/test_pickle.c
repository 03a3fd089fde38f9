/* Pickles as Python 3.11 writes them, and pickles that are damaged or hostile. */
#include "data/pickle.h"

#include "../support/workdir.h"
#include "data/kind.h"
#include "data/nanogpt_meta.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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

/* {'vocab_size': 5, 'itos': {0: '\n', 1: ' ', 2: 'a', 3: 'é', 4: '🎲'}, 'stoi': the inverse} */
#define BODY_2                                                                       \
    "}q\x00(X\x0a\x00\x00\x00vocab_sizeq\x01K\x05X\x04\x00\x00\x00itosq\x02}q\x03("  \
    "K\x00X\x01\x00\x00\x00\x0aq\x04K\x01X\x01\x00\x00\x00 q\x05K\x02X\x01\x00\x00"  \
    "\x00"                                                                           \
    "aq\x06K\x03X\x02\x00\x00\x00\xc3\xa9q\x07K\x04X\x04\x00\x00\x00\xf0\x9f\x8e"    \
    "\xb2q\x08uX\x04\x00\x00\x00stoiq\x09}q\x0a(h\x04K\x00h\x05K\x01h\x06K\x02h\x07" \
    "K\x03h\x08K\x04uu."
#define BODY_4                                                                          \
    "\x95`\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x0avocab_size\x94K\x05\x8c\x04itos"    \
    "\x94}\x94(K\x00\x8c\x01\x0a\x94K\x01\x8c\x01 \x94K\x02\x8c\x01"                    \
    "a\x94K\x03\x8c\x02\xc3\xa9\x94K\x04\x8c\x04\xf0\x9f\x8e\xb2\x94u\x8c\x04stoi\x94}" \
    "\x94(h\x04K\x00h\x05K\x01h\x06K\x02h\x07K\x03h\x08K\x04uu."

static const struct {
    const char *bytes;
    int64_t count;
} protocols[] = {
    {"\x80\x02" BODY_2, sizeof BODY_2 + 1},
    {"\x80\x03" BODY_2, sizeof BODY_2 + 1},
    {"\x80\x04" BODY_4, sizeof BODY_4 + 1},
    {"\x80\x05" BODY_4, sizeof BODY_4 + 1},
};

static enum status read_meta(struct vocabulary *v, const char *bytes, int64_t n)
{
    workdir_write(workdir_path("meta.pkl"), bytes, n);
    return nanogpt_meta_read(v, workdir_path("meta.pkl"), &arena);
}

static void test_protocols(void **state)
{
    (void)state;
    static const char *const expected[] = {"\n", " ", "a", "\xc3\xa9", "\xf0\x9f\x8e\xb2"};
    for (int i = 0; i < COUNT_OF(protocols); i++) {
        struct vocabulary v;
        if (read_meta(&v, protocols[i].bytes, protocols[i].count) != ST_OK)
            fail_msg("%d: %s", i, fail_message());
        assert_int_equal(v.size, COUNT_OF(expected));
        for (int k = 0; k < v.size; k++) assert_string_equal(vocabulary_text(&v, k), expected[k]);
    }
}

static void test_written(void **state)
{
    (void)state;
    const char *const path = workdir_path("written.pkl");
    struct vocabulary v, back;
    assert_int_equal(read_meta(&v, protocols[0].bytes, protocols[0].count), ST_OK);
    assert_int_equal(nanogpt_meta_write(&v, path), ST_OK);
    if (nanogpt_meta_read(&back, path, &arena) != ST_OK) fail_msg("%s", fail_message());
    assert_int_equal(back.size, v.size);
    for (int k = 0; k < v.size; k++)
        assert_string_equal(vocabulary_text(&back, k), vocabulary_text(&v, k));
}

/* Cut anywhere, it is refused; with any bit flipped it is refused or gives a valid vocabulary. */
static void test_damage(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT_OF(protocols); i += 2) {
        struct vocabulary v;
        for (int64_t n = 0; n < protocols[i].count; n++)
            if (read_meta(&v, protocols[i].bytes, n) == ST_OK) fail_msg("%d bytes", (int)n);
        for (int64_t bit = 0; bit < 8 * protocols[i].count; bit++) {
            char bytes[512];
            memcpy(bytes, protocols[i].bytes, (size_t)protocols[i].count);
            bytes[bit / 8] ^= (char)(1 << bit % 8);
            if (read_meta(&v, bytes, protocols[i].count) != ST_OK) continue;
            assert_int_equal(v.kind->invalid_entry(&v), -1);
        }
    }
}

struct hostile {
    const char *bytes;
    int64_t count;
    const char *part;
};
#define PICKLE(text, part)                     \
    {                                          \
        "\x80\x04" text, sizeof text + 1, part \
    }

static void expect_refused_as(enum pickle_kind kind, const struct hostile *x, int n)
{
    for (int i = 0; i < n; i++) {
        struct pickle_value v;
        enum status st = pickle_read(kind, "x.pkl", x[i].bytes, x[i].count, &arena, &v);
        if (st != ST_FORMAT) fail_msg("case %d (%s): status %d", i, x[i].part, st);
        if (!strstr(fail_message(), x[i].part) || !strstr(fail_message(), "x.pkl"))
            fail_msg("case %d: \"%s\" lacks \"%s\"", i, fail_message(), x[i].part);
    }
}

static void expect_refused(const struct hostile *x, int n)
{
    expect_refused_as(PICKLE_PLAIN, x, n);
}

static void test_code_is_not_run(void **state)
{
    (void)state;
    static const struct hostile cases[] = {
        PICKLE("cos\nsystem\n(\x8c\x04"
               "echoR.",
               "byte 2 is the instruction 0x63 GLOBAL"),
        PICKLE("\x8c\x02os\x8c\x06system\x93.", "0x93 STACK_GLOBAL"),
        PICKLE("}}R.", "byte 4 is the instruction 0x52 REDUCE"),
        PICKLE("}}b.", "BUILD"),
        PICKLE("(ios\nsystem\n.", "INST"),
        PICKLE("}}\x81.", "NEWOBJ"),
        PICKLE("Pxyz\n.", "PERSID"),
        PICKLE("\x82\x01.", "EXT1"),
        PICKLE("]\x94.", "EMPTY_LIST"),
        PICKLE("G\x3f\xf0\x00\x00\x00\x00\x00\x00.", "BINFLOAT"),
        PICKLE("\xff.", "the instruction 0xff, which"),
    };
    expect_refused(cases, COUNT_OF(cases));
    assert_non_null(strstr(fail_message(), "Strobe runs no code that a file contains"));
}

static void test_malformed(void **state)
{
    (void)state;
    static const struct hostile cases[] = {
        {"", 0, "not a pickle of protocol 2 to 5"},
        {"}.", 2, "not a pickle of protocol 2 to 5"},
        {"\x80\x01}.", 4, "protocol 1"},
        {"\x80\x06}.", 4, "protocol 6"},
        {"\x80", 1, "not a pickle"},
        PICKLE("", "ends before the pickle does"),
        PICKLE("K", "in the middle of an instruction"),
        PICKLE(".", "without a single value"),
        PICKLE("}}.", "without a single value"),
        PICKLE("(.", "without a single value"),
        PICKLE("}.}", "goes on after the end"),
        PICKLE("\x8c\x05"
               "abc.",
               "a text is longer than the file"),
        PICKLE("X\xff\xff\xff\xff"
               "abc.",
               "a text is longer than the file"),
        PICKLE("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"
               "abc.",
               "a text is longer than the file"),
        PICKLE("\x8a\x09"
               "123456789.",
               "more than 64 bits"),
        PICKLE("h\x00.", "was not remembered"),
        PICKLE("}\x94h\x01.", "was not remembered"),
        PICKLE("}j\xff\xff\xff\xff.", "was not remembered"),
        PICKLE("\x94.", "no value to remember"),
        PICKLE("(\x94.", "no value to remember"),
        PICKLE("}q\x01.", "out of order"),
        PICKLE("}r\xff\xff\xff\xff.", "out of order"),
        PICKLE("u.", "no mark"),
        PICKLE("(u.", "do not belong to a dictionary"),
        PICKLE("K\x01(K\x02K\x03u.", "do not belong to a dictionary"),
        PICKLE("}(K\x02u.", "do not belong to a dictionary"),
        PICKLE("K\x02s.", "do not belong to a dictionary"),
        PICKLE("s.", "do not belong to a dictionary"),
        PICKLE("}(K\x02s.", "a mark is not a value"),
        PICKLE("}}K\x02s.", "a key is a dictionary"),
    };
    expect_refused(cases, COUNT_OF(cases));
}

/* Numbers of each instruction; a dictionary that contains itself; the last of equal keys counts. */
static void test_values(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        int64_t count, expected;
    } numbers[] = {
        {"\x80\x02K\xff.", 5, 255},
        {"\x80\x02M\xff\xff.", 6, 65535},
        {"\x80\x02J\xff\xff\xff\xff.", 8, -1},
        {"\x80\x02J\x00\x00\x01\x00.", 8, 65536},
        {"\x80\x02\x8a\x00.", 5, 0},
        {"\x80\x02\x8a\x01\x80.", 6, -128},
        {"\x80\x02\x8a\x05\x00\x00\x00\x00\x01.", 10, 1ll << 32},
        {"\x80\x02\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f.", 13, INT64_MAX},
    };
    struct pickle_value v;
    for (int i = 0; i < COUNT_OF(numbers); i++) {
        assert_int_equal(
            pickle_read(PICKLE_PLAIN, "x", numbers[i].bytes, numbers[i].count, &arena, &v), ST_OK);
        assert_int_equal(v.type, PICKLE_NUMBER);
        assert_true(v.number == numbers[i].expected);
        assert_null(pickle_find(&v, "a"));
    }
    static const char own[] = "\x80\x04}\x94\x8c\x01"
                              "ah\x00s\x8c\x01"
                              "bK\x07s\x8c\x01"
                              "bK\x08s.";
    assert_int_equal(pickle_read(PICKLE_PLAIN, "x", own, sizeof own - 1, &arena, &v), ST_OK);
    assert_ptr_equal(pickle_find(&v, "a")->dict, v.dict);
    assert_int_equal(pickle_find(&v, "b")->number, 8);
    assert_null(pickle_find(&v, "c"));
}

/* What grows without end is stopped at a count, and nothing is deeper than the stack of values. */
static void test_bounds(void **state)
{
    (void)state;
    enum { MANY = 1 << 20 };
    static char bytes[PICKLE_BYTES_MOST + 1];
    static const char *const repeated[] = {"}", "(", "}\x94", "K\x01"};
    for (int i = 0; i < COUNT_OF(repeated); i++) {
        size_t n = strlen(repeated[i]);
        memcpy(bytes, "\x80\x04", 2);
        for (size_t k = 0; k < MANY; k++) memcpy(bytes + 2 + k * n, repeated[i], n);
        struct pickle_value v;
        assert_int_equal(pickle_read(PICKLE_PLAIN, "x", bytes, (int64_t)(2 + MANY * n), &arena, &v),
                         ST_FORMAT);
        assert_non_null(strstr(fail_message(), "too many values"));
    }
    memcpy(bytes, "\x80\x04}", 3);
    for (size_t k = 0; k < MANY; k++) memcpy(bytes + 3 + 5 * k, "K\x01K\x01s", 5);
    struct pickle_value v;
    assert_int_equal(pickle_read(PICKLE_PLAIN, "x", bytes, 3 + 5 * MANY, &arena, &v), ST_FORMAT);
    assert_non_null(strstr(fail_message(), "too many entries"));
    assert_int_equal(pickle_read(PICKLE_PLAIN, "x", bytes, sizeof bytes, &arena, &v), ST_FORMAT);
    assert_non_null(strstr(fail_message(), "more than 16777216"));
}

static struct pickle_value read_torch(const char *bytes, int64_t n)
{
    struct pickle_value v;
    if (pickle_read(PICKLE_TORCH, "x.pkl", bytes, n, &arena, &v) != ST_OK)
        fail_msg("%s", fail_message());
    return v;
}
#define READ_TORCH(text) read_torch("\x80\x02" text, sizeof text + 1)

/* The values that only checkpoints of tensors have. */
static void test_torch_values(void **state)
{
    (void)state;
    struct pickle_value v = READ_TORCH("(NN\x88\x89G\xbf\xf8\x00\x00\x00\x00\x00\x00l.");
    assert_int_equal(v.type, PICKLE_LIST);
    assert_false(v.list->is_tuple);
    assert_int_equal(v.list->count, 5);
    static const enum pickle_type types[] = {PICKLE_NONE, PICKLE_NONE, PICKLE_BOOL, PICKLE_BOOL,
                                             PICKLE_REAL};
    for (int i = 0; i < 5; i++) assert_int_equal(v.list->item[i].type, types[i]);
    assert_int_equal(v.list->item[2].number, 1);
    assert_int_equal(v.list->item[3].number, 0);
    assert_true(v.list->item[4].real == -1.5);

    v = READ_TORCH("]q\x00(K\x01K\x02"
                   "eK\x03"
                   "a.");
    assert_int_equal(v.list->count, 3);
    for (int i = 0; i < 3; i++) assert_int_equal(v.list->item[i].number, i + 1);
    v = READ_TORCH("]q\x00h\x00"
                   "a.");
    assert_ptr_equal(v.list->item[0].list, v.list);
    static const char *const tuples[] = {"\x80\x02).", "\x80\x02K\x01\x85.",
                                         "\x80\x02K\x01K\x02\x86.", "\x80\x02K\x01K\x02K\x03\x87.",
                                         "\x80\x02(K\x01K\x02K\x03K\x04t."};
    for (int n = 0; n < COUNT_OF(tuples); n++) {
        v = read_torch(tuples[n], (int64_t)strlen(tuples[n]));
        assert_int_equal(v.type, PICKLE_LIST);
        assert_true(v.list->is_tuple);
        assert_int_equal(v.list->count, n);
        for (int i = 0; i < n; i++) assert_int_equal(v.list->item[i].number, i + 1);
    }
    v = READ_TORCH("(X\x01\x00\x00\x00"
                   "aK\x05"
                   "d.");
    assert_int_equal(pickle_find(&v, "a")->number, 5);
    assert_true(READ_TORCH("\x8b\x02\x00\x00\x00\xff\xfe.").number == -257);
}

/* What torch.load would import, call and fetch is only named. */
static void test_torch_calls(void **state)
{
    (void)state;
    struct pickle_value v = READ_TORCH("ctorch\nFloatStorage\n.");
    assert_int_equal(v.type, PICKLE_NAME);
    assert_string_equal(v.text, "torch.FloatStorage");
    v = READ_TORCH("\x8c\x0ctorch._utils\x8c\x12_rebuild_parameter\x93K\x01\x85R.");
    assert_int_equal(v.type, PICKLE_CALL);
    assert_string_equal(v.text, "torch._utils._rebuild_parameter");
    assert_int_equal(v.list->count, 1);
    v = READ_TORCH("K\x01K\x02\x86Q.");
    assert_int_equal(v.type, PICKLE_PERSISTENT);
    assert_int_equal(v.list->count, 2);
    v = READ_TORCH("ccollections\nOrderedDict\n)R(X\x01\x00\x00\x00"
                   "aK\x05u}(X\x01\x00\x00\x00"
                   "aK\x06ub.");
    assert_int_equal(v.type, PICKLE_DICT);
    assert_true(v.dict->is_ordered);
    assert_int_equal(pickle_find(&v, "a")->number, 5);
}

static void test_torch_refusals(void **state)
{
    (void)state;
    static const struct hostile cases[] = {
        PICKLE(
            "cos\nsystem\n\x8c\x04"
            "echo\x85R.",
            "byte 2 imports os.system, which no checkpoint of tensors needs: Strobe runs no code"),
        PICKLE("\x8c\x02os\x8c\x06system\x93.", "byte 14 imports os.system"),
        PICKLE("c__main__\nGPT\n.", "save model.state_dict() instead of the model"),
        PICKLE("ctorch\nFloatStorag\n.", "imports torch.FloatStorag,"),
        PICKLE("ctorch\nFloatStorages\n.", "imports torch.FloatStorages,"),
        PICKLE("ctorch._utils\nFloatStorage\n.", "imports torch._utils.FloatStorage,"),
        PICKLE("c\n\n.", "byte 2 imports ., which"),
        PICKLE("ctorch\nFloatStorage", "in the middle of an instruction"),
        PICKLE("ctorch", "in the middle of an instruction"),
        PICKLE("K\x01\x8c\x01x\x93.", "the name of an import is not text"),
        PICKLE("\x8c\x01x\x93.", "an instruction lacks values"),
        PICKLE("(\x8c\x01x\x93.", "a mark is not a value"),
        PICKLE("\x8c\x02os\x85R.", "an instruction lacks values"),
        PICKLE("\x8c\x02os)R.", "a call is not one of a name with a tuple"),
        PICKLE("ctorch\nFloatStorage\n]R.", "a call is not one of a name with a tuple"),
        PICKLE("ccollections\nOrderedDict\nK\x01\x85R.", "an OrderedDict is made with arguments"),
        PICKLE("}}b.", "fields belong to something else than an OrderedDict"),
        PICKLE("]}b.", "fields belong to something else"),
        PICKLE("b.", "lacks values"),
        PICKLE("Q.", "lacks values"),
        PICKLE("K\x01Q.", "is not named by a tuple"),
        PICKLE("]Q.", "is not named by a tuple"),
        PICKLE("(\x85.", "a mark is not a value"),
        PICKLE("K\x01\x86.", "lacks values"),
        PICKLE("t.", "no mark"),
        PICKLE("l.", "no mark"),
        PICKLE("d.", "no mark"),
        PICKLE("e.", "no mark"),
        PICKLE("(e.", "elements do not belong to a list"),
        PICKLE("K\x01(e.", "elements do not belong to a list"),
        PICKLE(")K\x01"
               "a.",
               "elements do not belong to a list"),
        PICKLE("K\x01"
               "a.",
               "lacks values"),
        PICKLE("(K\x01"
               "d.",
               "do not belong to a dictionary"),
        PICKLE("})K\x01s.", "a key is neither a text nor a number"),
        PICKLE("}}K\x01s.", "a key is a dictionary"),
        PICKLE("G\x00\x00\x00\x00\x00\x00.", "in the middle of an instruction"),
        PICKLE("\x8b\x09\x00\x00\x00"
               "123456789.",
               "more than 64 bits"),
        PICKLE("\x8b\xff\xff\xff\xff.", "more than 64 bits"),
        PICKLE("}}\x81.", "NEWOBJ, which no checkpoint of tensors needs: Strobe runs no code"),
        PICKLE("(ios\nsystem\n.", "INST"),
        PICKLE("\x82\x01.", "EXT1"),
        PICKLE("Pxyz\n.", "PERSID"),
    };
    expect_refused_as(PICKLE_TORCH, cases, COUNT_OF(cases));
}

/* Instructions that leave the stack as it is make values too. */
static void test_torch_bounds(void **state)
{
    (void)state;
    enum { MANY = 1 << 20 };
    static char bytes[2 * MANY + 64];
    static const struct {
        const char *begin, *repeated;
    } cases[] = {
        {"\x80\x04]", "\x85"},
        {"\x80\x04]", "]a"},
        {"\x80\x04]", "Na"},
        {"\x80\x04"
         "ccollections\nOrderedDict\n)R",
         ")b"},
        {"\x80\x04"
         "ccollections\nOrderedDict\n)R",
         "}b"},
    };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        int64_t at = (int64_t)strlen(cases[i].begin), n = (int64_t)strlen(cases[i].repeated);
        memcpy(bytes, cases[i].begin, (size_t)at);
        for (int k = 0; k < MANY; k++, at += n) memcpy(bytes + at, cases[i].repeated, (size_t)n);
        struct pickle_value v;
        assert_int_equal(pickle_read(PICKLE_TORCH, "x", bytes, at, &arena, &v), ST_FORMAT);
        if (!strstr(fail_message(), "too many entries")) fail_msg("%d: %s", i, fail_message());
    }
}

#define META(size, itos, stoi, part) \
    PICKLE("}(\x8c\x0avocab_size" size "\x8c\x04itos}(" itos "u\x8c\x04stoi}(" stoi "uu.", part)

/* Pickles of the right form that are no vocabulary. */
static void test_other_dictionaries(void **state)
{
    (void)state;
    static const struct hostile cases[] = {
        PICKLE("}.", "is not a dictionary with \"vocab_size\""),
        PICKLE("K\x01.", "is not a dictionary with \"vocab_size\""),
        PICKLE("}(\x8c\x0avocab_sizeK\x01\x8c\x04itosK\x01\x8c\x04stoi}u.", "is not a dictionary"),
        META("K\x00", "", "", "\"vocab_size\" is 0, not 1 to 65536"),
        META("J\x01\x00\x01\x00", "", "", "\"vocab_size\" is 65537"),
        META("K\x02",
             "K\x00\x8c\x01"
             "a",
             "\x8c\x01"
             "aK\x00",
             "\"itos\" has no entry 1"),
        META("K\x01",
             "K\x01\x8c\x01"
             "a",
             "", "numbers below 1 to texts"),
        META("K\x01", "K\x00K\x00", "", "numbers below 1 to texts"),
        META("K\x01",
             "\x8c\x01"
             "aK\x00",
             "", "numbers below 1 to texts"),
        META("K\x02",
             "K\x00\x8c\x01"
             "bK\x01\x8c\x01"
             "a",
             "", "entry 1 of the vocabulary"),
        META("K\x02",
             "K\x00\x8c\x01"
             "aK\x01\x8c\x01"
             "a",
             "", "entry 1 of the vocabulary"),
        META("K\x01",
             "K\x00\x8c\x02"
             "ab",
             "", "entry 0 of the vocabulary is not a single"),
        META("K\x01", "K\x00\x8c\x01\xff", "", "entry 0 of the vocabulary"),
        META("K\x01",
             "K\x00\x8c\x02"
             "a\x00",
             "", "entry 0 of the vocabulary"),
        META("K\x01",
             "K\x00\x8c\x01"
             "a",
             "\x8c\x01"
             "bK\x00",
             "contradicts \"itos\""),
        META("K\x01",
             "K\x00\x8c\x01"
             "a",
             "\x8c\x01"
             "aK\x01",
             "contradicts \"itos\""),
        META("K\x01",
             "K\x00\x8c\x01"
             "a",
             "\x8c\x01"
             "a}",
             "contradicts \"itos\""),
    };
    for (int i = 0; i < COUNT_OF(cases); i++) {
        struct vocabulary v;
        if (read_meta(&v, cases[i].bytes, cases[i].count) != ST_FORMAT) fail_msg("case %d", i);
        if (!strstr(fail_message(), cases[i].part))
            fail_msg("case %d: \"%s\" lacks \"%s\"", i, fail_message(), cases[i].part);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_protocols),          TEST(test_damage),       TEST(test_code_is_not_run),
        TEST(test_malformed),          TEST(test_values),       TEST(test_bounds),
        TEST(test_other_dictionaries), TEST(test_torch_values), TEST(test_torch_calls),
        TEST(test_torch_refusals),     TEST(test_torch_bounds), TEST(test_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

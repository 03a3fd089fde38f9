/* A struct is written and read through one table of its fields. */
#include "base/record.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct pair {
    int at;
    double *x;
    int n;
};

struct thing {
    const char *name, **word;
    double ms, bytes, *series, busy;
    int words, n, index, count, pairs, figures;
    bool flag;
    struct pair *pair;
    struct figure *figure;
};

/* clang-format off */
#define S struct pair
TUPLE(pair, F(INT, "at", at), F(WHOLES, "x", x, N(n)));
#undef S
#define S struct thing
RECORD(threads, T("busy", busy));
RECORD(thing, F(TEXT, "name", name), T("ms", ms), F(WHOLE, "bytes", bytes), F(INDEX, "index", index),
       F(INT, "count", count), F(FLAG, "flag", flag), F(TEXTS, "words", word, N(words)),
       F(SERIES, "series", series, N(n), .digits = 3), PART("threads", threads),
       F(LIST, "pairs", pair, N(pairs), .of = &pair_record),
       F(FIGURES, "figures", figure, N(figures)));
#undef S
/* clang-format on */

static struct arena arena;

static char *text_of(const struct thing *t)
{
    json_t *j = record_json(&thing_record, t);
    char *text = json_dumps(j, JSON_COMPACT | JSON_REAL_PRECISION(15));
    json_decref(j);
    return text;
}

static struct thing take(const char *text)
{
    struct thing t;
    json_t *j = json_loads(text, 0, NULL);
    assert_non_null(j);
    memset(&t, 0x5a, sizeof t);
    record_take(&thing_record, j, &t, &arena);
    json_decref(j);
    return t;
}

static const char whole[] =
    "{\"name\":\"x\",\"ms\":1.234568,\"bytes\":9007199254740991,\"index\":3,\"count\":-1,"
    "\"flag\":true,\"words\":[\"a\",\"b\"],\"series\":[0.5,null],\"threads\":{\"busy\":2.0},"
    "\"pairs\":[[4,10,20],[5]],\"figures\":{\"forward\":1.5}}";
static const char nothing[] =
    "{\"name\":null,\"ms\":null,\"bytes\":null,\"index\":null,\"count\":-1,\"flag\":false,"
    "\"words\":[],\"series\":[],\"threads\":null,\"pairs\":[],\"figures\":{}}";

static void check_text(const struct thing *t, const char *expected)
{
    char *text = text_of(t);
    assert_string_equal(text, expected);
    free(text);
}

static void test_what_is_read_is_written(void **state)
{
    (void)state;
    struct thing t = take(whole);
    assert_true(t.bytes == 9007199254740991 && t.index == 3 && t.flag && t.words == 2);
    assert_true(t.n == 2 && t.series[0] == 0.5 && isnan(t.series[1]) && t.busy == 2);
    assert_true(t.pairs == 2 && t.pair[0].n == 2 && t.pair[0].x[1] == 20 && t.pair[1].n == 0);
    assert_string_equal(t.figure[0].name, "forward");
    check_text(&t, whole);
    t.ms = 1.23456789;
    check_text(&t, whole); /* seven digits */
}

static void test_what_is_missing(void **state)
{
    (void)state;
    struct thing t = take("{}");
    assert_true(!t.name && isnan(t.ms) && t.index == -1 && !t.flag && isnan(t.busy));
    check_text(&t, nothing);
}

static void test_what_is_of_another_type(void **state)
{
    (void)state;
    struct thing t = take("{\"name\":\"\",\"ms\":\"long\",\"bytes\":[],\"index\":1.5,\"count\":-7,"
                          "\"flag\":1,\"words\":{},\"series\":7,\"threads\":[1],\"pairs\":null,"
                          "\"figures\":[2],\"unknown\":1}");
    check_text(&t, nothing);
    t = take("{\"words\":[1,\"\",\"a\"],\"pairs\":[7],\"figures\":{\"a\":\"b\"}}");
    assert_int_equal(t.words, 1);
    assert_string_equal(t.word[0], "a");
    assert_true(t.pairs == 1 && t.pair[0].at == -1 && t.pair[0].n == 0 && t.figures == 0);
    t = take("{\"index\":1e300}");
    assert_int_equal(t.index, -1);
}

/* --- an array within the struct, names, and numbers that need not be there -------------------- */

enum color { RED, GREEN };
static const char *const colors[] = {"red", "green"};

struct spot {
    enum color color;
    double size;
    int64_t at;
};

struct picture {
    struct spot spot[2];
    int spots;
    double width, height;
    const char *title;
};

/* clang-format off */
#define S struct spot
RECORD(spot, F(NAME, "color", color, .names = colors, .most = COUNT_OF(colors)),
       F(REAL, "size", size, .digits = 3, .sparse = true), F(COUNT, "at", at));
#undef S
#define S struct picture
RECORD(picture, F(LIST, "spots", spot, N(spots), .of = &spot_record, .most = 2),
       F(REAL, "width", width), F(REAL, "height", height), F(TEXT, "title", title));
#undef S
/* clang-format on */

static void check_json(json_t *j, const char *expected)
{
    char *text = json_dumps(j, JSON_COMPACT);
    assert_string_equal(text, expected);
    free(text);
    json_decref(j);
}

static void test_arrays_and_names(void **state)
{
    (void)state;
    struct picture p;
    json_t *j = json_loads("{\"spots\":[{\"color\":\"green\",\"at\":3},"
                           "{\"size\":2.0},{}],"
                           "\"width\":4.0}",
                           0, NULL);
    record_take(&picture_record, j, &p, &arena);
    json_decref(j);
    assert_int_equal(p.spots, 2); /* more than two are left out */
    assert_true(p.spot[0].color == GREEN && isnan(p.spot[0].size) && (int)p.spot[1].color == -1);
    p.spot[1].color = RED;
    check_json(record_json(&picture_record, &p), "{\"spots\":[{\"color\":\"green\",\"at\":3},"
                                                 "{\"color\":\"red\",\"size\":2.0,\"at\":-1}],"
                                                 "\"width\":4.0,\"height\":null,\"title\":null}");
    check_json(record_columns(&spot_record, p.spot, 2),
               "{\"color\":[\"green\",\"red\"],\"size\":[null,2.0],\"at\":[3,-1]}");
}

static void test_filling(void **state)
{
    (void)state;
    struct picture known = {.width = 4, .height = NAN}, other = {.width = 1, .height = 2};
    other.title = "x";
    record_fill(&picture_record, &known, &other);
    assert_true(known.width == 4 && known.height == 2);
    assert_string_equal(known.title, "x");
}

static int teardown(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_read_is_written),
        cmocka_unit_test(test_what_is_missing),
        cmocka_unit_test(test_what_is_of_another_type),
        cmocka_unit_test(test_arrays_and_names),
        cmocka_unit_test(test_filling),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}

#include "../support/profile_text.h"
#include "../support/run_fixture.h"
#include "base/str.h"
#include "present/markup.h"
#include "report/profile_page.h"
#include "report/roofline.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct profile_file read_rows(struct fixture *f, const struct profile_text_row *row)
{
    struct profile_file p;
    fixture_write(f, "a/profile.json", profile_text(row, &f->arena));
    if (profile_file_read(fixture_path(f, "a/profile.json"), "a<b", &f->arena, &p) != ST_OK)
        fail_msg("%s", fail_message());
    return p;
}

static int count_of(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text++) n++;
    return n;
}

static char *picture_of(struct fixture *f, const struct profile_file *p)
{
    struct roofline_frame frame = roofline_frame_of(p, 1);
    struct markup m = {0};
    roofline_print_picture(p, &frame, &m);
    char *text = arena_strdup(&f->arena, markup_text(&m));
    markup_release(&m);
    return text;
}

/* The number after `word`, in the element that begins at `at`. */
static double number_behind(const char *at, const char *word)
{
    const char *found = strstr(at, word);
    assert_non_null(found);
    return strtod(found + strlen(word), NULL);
}

/* Three kernels do arithmetic; the copy does not. The softmax takes longest, so it is drawn first
 * and is the largest. */
static void test_points(void **state)
{
    struct fixture *f = *state;
    struct profile_file p = read_rows(f, profile_slow);
    const char *text = picture_of(f, &p);
    assert_int_equal(count_of(text, "<title>"), 4); /* one is of the picture */
    const char *softmax = strstr(text, "<circle"), *matmul = strstr(softmax + 1, "<circle");
    assert_non_null(
        strstr(text, "<title>SOFTMAX f32 (4,8) avx512\nsoftmax, 7 ms per step (56 %), 2 times"));
    static const char largest[] = "<circle class=\"chart-point\" style=\"--c:var(--family-2)\"";
    assert_memory_equal(softmax, largest, sizeof largest - 1);
    /* Area is time: 7 ms against 2 ms. */
    double large = number_behind(softmax, " r=\""), small = number_behind(matmul, " r=\"");
    assert_float_equal(large * large / (small * small), 3.5, 0.06);
    /* 64 FLOP per byte are to the right of 1/8, and 32 MFLOP/s above 286 kFLOP/s. */
    assert_true(number_behind(matmul, " cx=\"") > number_behind(softmax, " cx=\"") + 100);
    assert_true(number_behind(matmul, " cy=\"") < number_behind(softmax, " cy=\"") - 50);
    assert_non_null(strstr(text, "Not shown: 1 kernel, 1 of 12.5 ms"));
    /* The rate of work that needed other kernels as well is lower. */
    p.kernel[p.row[1].kernel].work_ms *= 2;
    text = picture_of(f, &p);
    assert_non_null(strstr(text, "floor 1 ms; it takes 14 times as long"));
}

static void test_ceilings_and_date(void **state)
{
    struct fixture *f = *state;
    struct profile_file p = read_rows(f, profile_slow);
    const char *text = picture_of(f, &p);
    assert_int_equal(count_of(text, "class=\"chart-ceiling"), 3);
    assert_non_null(strstr(text, ">memory 40 GB/s<"));
    assert_non_null(strstr(text, ">L2 200 GB/s<"));
    assert_non_null(strstr(text, ">f32 400 GFLOP/s<"));
    assert_non_null(strstr(text, "Peaks measured 2026-01-02, A processor."));
    /* The picture is valid without ceilings. */
    p.products = p.copies = 0;
    p.machine = NULL;
    text = picture_of(f, &p);
    assert_int_equal(count_of(text, "class=\"chart-ceiling"), 0);
    assert_null(strstr(text, "measured"));
    assert_int_equal(count_of(text, "<title>"), 4);
}

static void test_labels(void **state)
{
    struct fixture *f = *state;
    struct profile_file p = read_rows(f, profile_slow);
    const char *text = picture_of(f, &p);
    assert_int_equal(count_of(text, "class=\"chart-label\""), 3);
    assert_non_null(strstr(text, ">SOFTMAX f32 (4,8), 56 %</text>"));
}

/* Whatever a file contains, every coordinate is a number and no text becomes an element. */
/* A kernel that is too short to widen the frame is counted, not drawn outside of it. */
static void test_points_outside_the_frame(void **state)
{
    struct fixture *f = *state;
    struct profile_file p = read_rows(f, profile_slow);
    struct roofline_frame frame = roofline_frame_of(&p, 1);
    frame.y_high = 1; /* below every rate */
    json_t *points = roofline_points(&p, &frame);
    assert_int_equal(json_array_size(json_object_get(points, "points")), 0);
    json_decref(points);
    frame.y_high = 1e15;
    points = roofline_points(&p, &frame);
    assert_int_equal(json_array_size(json_object_get(points, "points")), 3);
    json_decref(points);
}

static void test_odd_numbers(void **state)
{
    struct fixture *f = *state;
    static const struct profile_text_row odd[] = {
        {"forward/w", "norms", "<b>&", "8", "k", -1, 2e6, 1e15, 1},
        {"forward/x", "norms", "A", "8", "k", -1, 1e-12, 1, 1e15},
        {"forward/y", "norms", "B", "8", "k", -1, 1e6, 1e18, 1},
        {"forward/z", "norms", "C", "8", "k", -1, 0, 5, 5},
        {0},
    };
    struct profile_file p = read_rows(f, odd);
    const char *text = picture_of(f, &p);
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    assert_null(strstr(text, "<b>"));
    assert_int_equal(count_of(text, "&lt;b&gt;&amp; 8"), 2); /* in its tooltip and next to it */
    static const struct profile_text_row none[] = {
        {"forward/z", "norms", "C", "8", "k", -1, 0, 5, 5}, {0}};
    p = read_rows(f, none);
    assert_false(roofline_has_points(&p));
    assert_null(strstr(picture_of(f, &p), "nan"));
}

/* Every text of a profile is hostile: none becomes an element, an attribute or a style. */
static void test_hostile_texts(void **state)
{
    struct fixture *f = *state;
    static const char hostile[] = "\\\"'><script>alert(1)</script><img src=x onerror=alert(2)>"
                                  "--></style>\\u001b\\u2028\\u202e";
    static const char *const keys[] = {
        "bound", "op",    "shape", "types", "phase",         "kernel", "scope",
        "dtype", "range", "gpu",   "date",  "device_kernel", "peak_of"};
    struct str json = {0};
    str_append(&json, "{\"v\":1,\"machine\":{");
    for (int i = 0; i < COUNT_OF(keys); i++) str_printf(&json, "\"%s\":\"%s\",", keys[i], hostile);
    str_printf(&json,
               "\"copies\":[{\"bytes_per_thread\":1e9,\"bytes_per_s\":1e11}],"
               "\"products\":[{\"dtype\":\"%s\",\"flops_per_s\":1e12}]},\"rows\":[{",
               hostile);
    for (int i = 0; i < COUNT_OF(keys); i++) str_printf(&json, "\"%s\":\"%s\",", keys[i], hostile);
    str_printf(&json, "\"flops\":1e9,\"bytes\":1e6,\"floor_ms\":0.5,\"per_step\":1,"
                      "\"ms_per_step\":3}]}");
    fixture_write(f, "a/profile.json", str_text(&json));
    str_release(&json);
    struct profile_file p;
    if (profile_file_read(fixture_path(f, "a/profile.json"), "</title><script>", &f->arena, &p) !=
        ST_OK)
        fail_msg("%s", fail_message());
    const char *picture = picture_of(f, &p);
    struct markup m = {0};
    roofline_print_file(&p, 1, &m);
    const char *texts[] = {picture, markup_text(&m)};
    for (int i = 0; i < COUNT_OF(texts); i++) {
        assert_non_null(strstr(texts[i], "bound by &quot;&#39;&gt;&lt;script&gt;"));
        assert_int_equal(count_of(texts[i], "<script"), 0);
        assert_int_equal(count_of(texts[i], "<img"), 0);
        assert_int_equal(count_of(texts[i], "</style>"), 1);
        assert_null(strpbrk(texts[i], "\x1b"));
        assert_null(strstr(texts[i], "\xe2\x80"));
    }
    markup_release(&m);
}

static void test_file_has_its_colors(void **state)
{
    struct fixture *f = *state;
    struct profile_file p[2] = {read_rows(f, profile_slow), read_rows(f, profile_flash)};
    struct markup m = {0};
    roofline_print_file(p, 2, &m);
    const char *text = markup_text(&m);
    assert_memory_equal(text, "<svg ", 5);
    assert_non_null(strstr(text, "--family-0: light-dark("));
    assert_int_equal(count_of(text, ">a&lt;b</text>"), 2);
    assert_int_equal(count_of(text, "<svg"), 1);
    assert_null(strstr(text, "url("));
    /* Both have the same scale, and the machine's copy bandwidth once each. */
    assert_int_equal(count_of(text, ">memory 40 GB/s<"), 2);
    markup_release(&m);
}

/* The page's data equal the file; a repeated string is written once. */
static void test_page_data(void **state)
{
    struct fixture *f = *state;
    struct profile_file p[2] = {read_rows(f, profile_slow), read_rows(f, profile_flash)};
    struct changes change;
    struct profile_set set = {p, 2, NULL, 0, &change, 1};
    changes_find(&p[0], &p[1], &f->arena, &change);
    json_t *data = profile_page_json(&set, &f->arena);
    json_t *slow = json_array_get(json_object_get(data, "profiles"), 0);
    json_t *rows = json_object_get(slow, "rows"), *phase = json_object_get(rows, "phase");
    json_t *texts = json_object_get(phase, "of"), *at = json_object_get(phase, "at");
    size_t i, same = 0, n = json_array_size(json_object_get(rows, "kernel_of"));
    json_t *text;
    assert_int_equal(n, p[0].rows);
    assert_int_equal(json_array_size(at), n);
    json_array_foreach(texts, i, text) same += !strcmp(json_string_value(text), "forward");
    assert_int_equal(same, 1);
    json_t *ms = json_object_get(rows, "ms_per_step");
    assert_float_equal(json_number_value(json_array_get(ms, 1)), 3, 1e-9);
    json_t *moments = json_object_get(json_object_get(slow, "timeline"), "moments");
    assert_int_equal(json_array_size(moments), 2);
    json_t *columns = json_object_get(json_object_get(slow, "memory"), "moments");
    assert_int_equal(json_integer_value(json_array_get(json_array_get(columns, 1), 2)), 300);
    json_t *changed = json_array_get(json_object_get(data, "changes"), 0);
    assert_int_equal(json_array_size(json_object_get(changed, "rows")), 6);
    json_decref(data);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_points),
        WITH_FIXTURE(test_ceilings_and_date),
        WITH_FIXTURE(test_labels),
        WITH_FIXTURE(test_points_outside_the_frame),
        WITH_FIXTURE(test_odd_numbers),
        WITH_FIXTURE(test_page_data),
        WITH_FIXTURE(test_file_has_its_colors),
        WITH_FIXTURE(test_hostile_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

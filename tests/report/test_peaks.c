/* Profiles of one machine with different ceilings: the best serve all, and that is said. */
#include "../support/profile_text.h"
#include "../support/run_fixture.h"
#include "report/changes.h"
#include "report/peaks.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char *with(const char *text, const char *word, const char *other, struct arena *a)
{
    const char *at = strstr(text, word);
    assert_non_null(at);
    return arena_printf(a, "%.*s%s%s", (int)(at - text), text, other, at + strlen(word));
}

/* A matmul, and a copy between the two sizes of the record. */
static const struct profile_text_row rows[] = {
    {"forward/scores", "matmul", "MATMUL", "8 x 8 x 8", "onednn", -1, 4, 8e8, 1e6},
    {"forward/add", "pointwise", "ADD", "8", "simd", -1, 2, 1e3, 1 << 23},
    {0},
};

static struct profile_file profile(struct fixture *f, const char *name, const char *flops,
                                   const char *large, const char *machine)
{
    struct profile_file p;
    struct arena *a = &f->arena;
    const char *file = arena_printf(a, "%s/profile.json", name), *text = profile_text(rows, a);
    text = with(text, "\"cpu\":\"A processor\"", machine, a);
    text = with(text, "4e11", flops, a);
    text = with(text, "4e10", large, a);
    text = with(text, "\"words\":[", "\"words\":[{\"about\":\"floor\",\"text\":\"old\"},", a);
    fixture_write(f, file, text);
    if (profile_file_read(fixture_path(f, file), name, a, &p) != ST_OK)
        fail_msg("%s", fail_message());
    return p;
}

static const char here[] = "\"cpu\":\"A processor\",\"threads\":2,\"isa\":\"avx2\"",
                  there[] = "\"cpu\":\"A processor\",\"threads\":2,\"isa\":\"plain\"";

static void test_the_best_serve_both(void **state)
{
    struct fixture *f = *state;
    struct profile_file p[] = {profile(f, "a", "4e11", "5e10", here),
                               profile(f, "b", "8e11", "4e10", here)};
    peaks_raise(p, 2, &f->arena);
    for (int i = 0; i < 2; i++) {
        assert_true(p[i].product[0].rate == 8e11);
        assert_string_equal(p[i].copy[0].name, "memory");
        assert_true(p[i].copy[0].rate == 5e10);
    }
    assert_true(p[0].raised && p[1].raised);
    /* 8e8 FLOPs at 800 GFLOP/s; 4 MiB a thread are 1/5 of the way from 2 to 64 MiB, by logarithm */
    double matmul = 1, add = 1e3 * (1 << 23) / (1e11 - 0.2 * 5e10);
    assert_float_equal(p[0].row[0].floor_ms, matmul, 1e-9);
    assert_float_equal(p[1].row[1].floor_ms, add, 1e-9);
    assert_float_equal(p[1].kernel[p[1].row[1].kernel].floor_ms, add, 1e-9);
    assert_float_equal(profile_file_floor(&p[0]), profile_file_floor(&p[1]), 1e-9);
    assert_memory_equal(p[0].answer[0].text, "the work of the plan takes at least 1.", 38);

    struct changes c;
    changes_find(&p[0], &p[1], &f->arena, &c);
    assert_non_null(strstr(
        changes_words(&c, &f->arena),
        " Floors and shares are by the best ceilings of these profiles, since one can only be "
        "measured too low."));
}

static void test_equal_and_other_machines_stay(void **state)
{
    struct fixture *f = *state;
    struct profile_file p[] = {profile(f, "a", "4e11", "4e10", here),
                               profile(f, "b", "4e11", "4e10", here),
                               profile(f, "c", "8e11", "4e10", there)};
    peaks_raise(p, 3, &f->arena);
    for (int i = 0; i < 3; i++) {
        struct changes c;
        assert_false(p[i].raised);
        assert_true(p[i].product[0].rate == (i < 2 ? 4e11 : 8e11));
        assert_true(p[i].row[0].floor_ms == 0.5); /* as in the file */
        assert_string_equal(p[i].answer[0].text, "old");
        changes_find(&p[0], &p[i], &f->arena, &c);
        assert_null(strstr(changes_words(&c, &f->arena), "ceilings"));
    }
}

/* A row that is faster than copies of its size had its data in a cache: its own time is the floor,
 * down to that of the fastest copy. */
static void test_a_floor_is_not_beaten(void **state)
{
    struct fixture *f = *state;
    struct profile_file p[] = {profile(f, "a", "4e11", "5e10", here),
                               profile(f, "b", "8e11", "4e10", here)};
    p[0].row[1].run_ms.median = p[1].row[1].run_ms.median = 0.05;
    peaks_raise(p, 2, &f->arena);
    assert_float_equal(p[0].row[1].floor_ms, 0.05, 1e-9);
    p[0] = profile(f, "a", "4e11", "5e10", here);
    p[1] = profile(f, "b", "8e11", "4e10", here);
    p[0].row[1].run_ms.median = 0.01;
    peaks_raise(p, 2, &f->arena);
    assert_float_equal(p[0].row[1].floor_ms, 1e3 * (1 << 23) / 2e11, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_best_serve_both, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_a_floor_is_not_beaten, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_equal_and_other_machines_stay, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

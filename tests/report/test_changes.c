#include "../support/profile_text.h"
#include "../support/run_fixture.h"
#include "base/str.h"
#include "report/changes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct profile_file read_rows(struct fixture *f, const char *name,
                                     const struct profile_text_row *row)
{
    struct profile_file p;
    const char *file = arena_printf(&f->arena, "%s/profile.json", name);
    fixture_write(f, file, profile_text(row, &f->arena));
    if (profile_file_read(fixture_path(f, file), name, &f->arena, &p) != ST_OK)
        fail_msg("%s", fail_message());
    return p;
}

static const struct change *find(const struct changes *c, const char *place)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->change[i].place, place) == 0) return &c->change[i];
    fail_msg("no change at %s", place);
    return NULL;
}

static void assert_adds_up(const struct changes *c)
{
    double before = 0, after = 0, kinds = 0;
    for (int i = 0; i < c->n; i++) {
        before += c->change[i].before.ms;
        after += c->change[i].after.ms;
    }
    for (int kind = 0; kind < CHANGE_KINDS; kind++) kinds += c->kind_ms[kind];
    assert_float_equal(before, c->before_ms, 1e-9);
    assert_float_equal(after, c->after_ms, 1e-9);
    assert_float_equal(kinds, c->after_ms - c->before_ms, 1e-9);
}

static void test_slow_against_flash(void **state)
{
    struct fixture *f = *state;
    struct profile_file slow = read_rows(f, "slow", profile_slow),
                        flash = read_rows(f, "flash", profile_flash);
    struct changes c;
    changes_find(&slow, &flash, &f->arena, &c);
    assert_float_equal(c.before_ms, 12.5, 1e-9);
    assert_float_equal(c.after_ms, 8, 1e-9);
    assert_adds_up(&c);

    /* Softmax of both blocks is one line, and the largest. */
    const struct change *x = &c.change[0];
    assert_string_equal(x->place, "forward / block / attention / softmax");
    assert_int_equal(x->kind, CHANGE_VANISHED);
    assert_float_equal(x->before.ms, 7, 1e-9);
    assert_float_equal(x->before.per_step, 2, 1e-9);
    assert_null(x->after.kernel);

    x = find(&c, "forward / block / attention / flash attention");
    assert_int_equal(x->kind, CHANGE_CAME);
    assert_float_equal(x->after.ms, 3, 1e-9);

    x = find(&c, "forward / block / MLP / up");
    assert_int_equal(x->kind, CHANGE_REPLACED);
    assert_string_equal(x->before.kernel, "MATMUL 4 x 32 x 16 onednn");
    assert_string_equal(x->after.kernel, "LINEAR 4 x 32 x 16 onednn");

    assert_int_equal(find(&c, "forward / of no kernel")->kind, CHANGE_KEPT);
    assert_int_equal(find(&c, "idle")->kind, CHANGE_KEPT);
    assert_int_equal(c.kind_n[CHANGE_VANISHED], 2);
    assert_float_equal(c.kind_ms[CHANGE_VANISHED], -9, 1e-9);
}

static void test_against_itself(void **state)
{
    struct fixture *f = *state;
    struct profile_file p = read_rows(f, "slow", profile_slow);
    struct changes c;
    changes_find(&p, &p, &f->arena, &c);
    assert_adds_up(&c);
    assert_int_equal(c.kind_n[CHANGE_KEPT], c.n);
    for (int i = 0; i < c.n; i++)
        assert_float_equal(c.change[i].after.ms, c.change[i].before.ms, 0);
}

/* Several kernels that replace one are compared with it together. */
static void test_many_for_one(void **state)
{
    struct fixture *f = *state;
    static const struct profile_text_row
        one[] = {{"forward/norm", "norms", "LAYERNORM", "8", "avx512", -1, 1, 1, 1}, {0}},
        many[] = {
            {"forward/norm", "norms", "SUM", "8", "avx512", -1, 1, 1, 1},
            {"forward/norm", "norms", "MUL", "8", "avx512", -1, 2, 1, 1},
            {"forward/norm", "norms", "SUB", "8", "avx512", -1, 1.5, 1, 1},
            {0},
        };
    struct profile_file x = read_rows(f, "many", many), y = read_rows(f, "one", one);
    struct changes c;
    changes_find(&x, &y, &f->arena, &c);
    assert_adds_up(&c);
    const struct change *norm = find(&c, "forward / norm");
    assert_int_equal(norm->kind, CHANGE_REPLACED);
    assert_string_equal(norm->before.kernel, "MUL 8 avx512 and 2 more");
    assert_float_equal(norm->before.ms, 4.5, 1e-9);
    assert_float_equal(norm->before.per_step, 3, 1e-9);
}

/* Time of the step that is in no row gets a line, so the lines always add up. */
static void test_time_in_no_row(void **state)
{
    struct fixture *f = *state;
    struct profile_file p = read_rows(f, "slow", profile_slow), lossy = p;
    lossy.step_ms.mean += 2;
    struct changes c;
    changes_find(&p, &lossy, &f->arena, &c);
    assert_adds_up(&c);
    assert_float_equal(find(&c, "in no row")->after.ms, 2, 1e-9);
}

/* A line that varies by more than it differs is noise; a new line has nothing to be compared
 * with. */
static void test_noise(void **state)
{
    struct fixture *f = *state;
    struct profile_file slow = read_rows(f, "slow", profile_slow),
                        flash = read_rows(f, "flash", profile_flash);
    struct changes c;
    const char *place = "forward / block / MLP / up";
    changes_find(&slow, &flash, &f->arena, &c);
    const struct change *x = find(&c, place);
    double differs = fabs(x->after.ms - x->before.ms);
    assert_true(differs > 0 && !change_is_noise(x)); /* its variation is unknown */
    for (int i = 0; i < slow.rows; i++) slow.row[i].std = 2 * differs;
    changes_find(&slow, &flash, &f->arena, &c);
    assert_true(change_is_noise(find(&c, place)));
    assert_false(change_is_noise(find(&c, "forward / block / attention / flash attention")));
    assert_non_null(strstr(changes_words(&c, &f->arena), "are within the noise"));
    for (int i = 0; i < slow.rows; i++) slow.row[i].std = differs / 1e3;
    changes_find(&slow, &flash, &f->arena, &c);
    assert_false(change_is_noise(find(&c, place)));
}

static void test_table(void **state)
{
    struct fixture *f = *state;
    struct profile_file slow = read_rows(f, "slow", profile_slow),
                        flash = read_rows(f, "flash", profile_flash);
    struct changes c;
    changes_find(&slow, &flash, &f->arena, &c);
    for (int most = 0; most <= c.n; most++) {
        struct table t = changes_table(&c, most, &f->arena);
        double sum = 0;
        for (int i = 0; i < t.rows - 1; i++) sum += table_at(&t, i, 4)->number;
        assert_float_equal(sum, -4.5, 1e-9);
        assert_float_equal(table_at(&t, t.rows - 1, 4)->number, -4.5, 1e-9);
        assert_int_equal(t.rows, (most && most < c.n ? most + 1 : c.n) + 1);
    }
    const char *words = changes_words(&c, &f->arena);
    if (!strstr(words, "A step of flash takes 8.000 ms, 4.500 ms less than one of slow: kernels "
                       "that vanished -9.000 ms, kernels that came +3.000 ms"))
        fail_msg("%s", words);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_slow_against_flash),
        WITH_FIXTURE(test_against_itself),
        WITH_FIXTURE(test_many_for_one),
        WITH_FIXTURE(test_time_in_no_row),
        WITH_FIXTURE(test_noise),
        WITH_FIXTURE(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

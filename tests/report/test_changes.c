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

    assert_int_equal(find(&c, "forward / inputs and results")->kind, CHANGE_KEPT);
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

/* Gives a profile `n` chunks of turns `of`, every row `ms` long in each, with a burst at every
 * third. */
static void add_chunks(struct fixture *f, struct profile_file *p, double of, int n, double ms)
{
    struct profile_file_chunks *c = &p->chunks;
    double *x = ARENA_NEW(&f->arena, double, n);
    c->turn = ARENA_NEW(&f->arena, double, n);
    for (int i = 0; i < n; i++) {
        c->turn[i] = i + 1;
        x[i] = ms * (i % 3 ? 1 : 1.5);
    }
    c->n = n;
    p->tokens = 1000;
    c->of = of;
    c->plain_ms = c->step_ms = c->idle_ms = x;
    for (int i = 0; i < p->rows; i++) p->row[i].chunk_ms = x;
}

/* Lines get the verdict of their chunks; a new line has nothing to be compared with. */
static void test_verdicts(void **state)
{
    struct fixture *f = *state;
    struct profile_file slow = read_rows(f, "slow", profile_slow),
                        flash = read_rows(f, "flash", profile_flash);
    struct changes c;
    const char *place = "forward / block / MLP / up";
    changes_find(&slow, &flash, &f->arena, &c);
    assert_int_equal(find(&c, place)->verdict.kind, VERDICT_NONE); /* an older file */
    assert_int_equal(c.speed.how, JUDGED_NOT);
    assert_non_null(strstr(changes_words(&c, &f->arena), "because slow has no times of chunks"));
    add_chunks(f, &slow, 7, 20, 1.1);
    add_chunks(f, &flash, 7, 18, 1);
    changes_find(&slow, &flash, &f->arena, &c);
    assert_int_equal(find(&c, place)->verdict.kind, VERDICT_FASTER);
    assert_int_equal(find(&c, "forward / block / attention / flash attention")->verdict.kind,
                     VERDICT_NONE);
    assert_null(strstr(changes_words(&c, &f->arena), "no times of chunks"));
    if (!strstr(changes_words(&c, &f->arena), "flash is 1.10 times as fast as slow (1.10 to 1.10, "
                                              "in 18 turns)"))
        fail_msg("%s", changes_words(&c, &f->arena));
    /* the same times, but not in turns with each other */
    flash.chunks.of = 8;
    changes_find(&slow, &flash, &f->arena, &c);
    assert_int_equal(find(&c, place)->verdict.kind, VERDICT_UNCERTAIN);
    assert_non_null(strstr(changes_words(&c, &f->arena), "are not known to differ"));
    assert_non_null(
        strstr(changes_words(&c, &f->arena), "cannot be told apart in speed from slow"));
    /* apart on a busy machine */
    add_chunks(f, &flash, NAN, 18, 0.1);
    changes_find(&slow, &flash, &f->arena, &c);
    assert_int_equal(find(&c, place)->verdict.kind, VERDICT_FASTER);
    flash.threads = slow.threads = 2;
    flash.others = 1;
    changes_find(&slow, &flash, &f->arena, &c);
    assert_int_equal(c.speed.how, JUDGED_BUSY); /* of as many as threads, in older files */
    flash.processors = 20;
    changes_find(&slow, &flash, &f->arena, &c);
    assert_int_equal(c.speed.how, JUDGED_APART);
    flash.processors = 4;
    changes_find(&slow, &flash, &f->arena, &c);
    assert_int_equal(find(&c, place)->verdict.kind, VERDICT_UNCERTAIN);
    /* four times the tokens in twice the time */
    flash.others = 0;
    add_chunks(f, &slow, 7, 20, 1);
    add_chunks(f, &flash, 7, 20, 2);
    flash.tokens = 4000;
    changes_find(&slow, &flash, &f->arena, &c);
    assert_int_equal(find(&c, place)->verdict.kind, VERDICT_FASTER);
    const char *words = changes_words(&c, &f->arena);
    assert_non_null(strstr(words, "flash is 2.00 times as fast per token as slow"));
    assert_non_null(strstr(words, ", for 4000 tokens instead of 1000 ("));
    /* the work of an update does not grow with the tokens */
    for (int i = 0; i < slow.rows; i++) slow.row[i].range.word[0] = "update";
    for (int i = 0; i < flash.rows; i++) flash.row[i].range.word[0] = "update";
    place = "update / block / MLP / up";
    changes_find(&slow, &flash, &f->arena, &c);
    assert_int_equal(find(&c, place)->verdict.kind, VERDICT_SLOWER);
    /* equal plans */
    slow.work = flash.work = "abc";
    slow.commit = flash.commit = "def";
    changes_find(&slow, &flash, &f->arena, &c);
    assert_int_equal(c.speed.how, JUDGED_SAME_PLAN);
    assert_int_equal(find(&c, place)->verdict.kind, VERDICT_NONE);
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
        WITH_FIXTURE(test_slow_against_flash), WITH_FIXTURE(test_against_itself),
        WITH_FIXTURE(test_many_for_one),       WITH_FIXTURE(test_time_in_no_row),
        WITH_FIXTURE(test_verdicts),           WITH_FIXTURE(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Verdicts about two timed series: equal work, turns, equal plans, other programs, texts. */
#include "base/judge.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { N = 20 };

static double slow[N], fast[N];

static void fill(double slow_ms, double fast_ms)
{
    for (int i = 0; i < N; i++) {
        slow[i] = slow_ms * (i % 3 ? 1 : 1.5); /* a burst */
        fast[i] = fast_ms * (i % 3 ? 1 : 1.5);
    }
}

static struct timed timed(const double *ms, double work, const struct timed_turn *turn)
{
    return (struct timed){.ms = ms, .n = N, .turn = turn, .work = work, .unit = "token"};
}

/* Twice the time for four times the tokens is twice the speed. */
static void test_equal_work(void **state)
{
    (void)state;
    struct arena a = {0};
    fill(10, 20);
    const struct timed_turn *turn = timed_rounds(N, &a);
    struct timed x = timed(slow, 1000, turn), y = timed(fast, 4000, turn);
    struct judgement j = judge(&x, &y);
    assert_int_equal(j.how, JUDGED_IN_TURNS);
    assert_string_equal(judge_words(&j, "A", &a),
                        "is 2.00 times as fast per token as A (2.00 to 2.00, in 20 turns)");
    assert_string_equal(judge_name(&j), "faster");
    assert_string_equal(judge_cell(&j, &a), "2.00 x");
    x.n = 5;
    j = judge(&x, &y);
    assert_non_null(strstr(judge_words(&j, "A", &a), "5 turns were measured; a verdict needs 8"));
    x.n = N;
    y.ms = x.ms;
    y.work = 1000;
    j = judge(&x, &y);
    assert_string_equal(judge_words(&j, "A", &a), "is as fast as A, within 2 % (in 20 turns)");
    y.ms = fast;
    j = judge(&x, &y);
    assert_string_equal(judge_words(&j, "A", &a),
                        "is 2.00 times as slow as A (2.00 to 2.00, in 20 turns)");
    /* another unit, or unknown work: no speed */
    y.unit = "FLOP";
    j = judge(&x, &y);
    assert_int_equal(j.how, JUDGED_NOT);
    assert_null(judge_words(&j, "A", &a));
    y.unit = "token";
    y.work = NAN;
    assert_int_equal(judge(&x, &y).how, JUDGED_NOT);
    arena_release(&a);
}

/* Only times in the same turn of the same set are pairs; else bursts and other programs matter. */
static void test_apart(void **state)
{
    (void)state;
    struct arena a = {0};
    fill(11, 10);
    struct timed_turn other[N];
    for (int i = 0; i < N; i++) other[i] = (struct timed_turn){1, i};
    struct timed x = timed(slow, 1, timed_rounds(N, &a)), y = timed(fast, 1, other);
    struct judgement j = judge(&x, &y);
    assert_int_equal(j.how, JUDGED_APART);
    assert_string_equal(judge_name(&j), "cannot tell");
    assert_string_equal(
        judge_words(&j, "A", &a),
        "cannot be told apart in speed from A (0.73 to 1.65 times as fast, measured "
        "apart)");
    fill(110, 10);
    assert_string_equal(judge_cell(&j, &a), "cannot tell");
    y.others = 0.5;
    j = judge(&x, &y);
    assert_int_equal(j.how, JUDGED_BUSY);
    assert_int_equal(j.verdict.kind, VERDICT_UNCERTAIN);
    assert_non_null(judge_words(&j, "A", &a));
    for (int i = 0; i < N; i++) other[i].of = 0; /* in turns, they do not matter */
    assert_int_equal(judge(&x, &y).verdict.kind, VERDICT_FASTER);
    arena_release(&a);
}

static void test_equal_plans(void **state)
{
    (void)state;
    struct arena a = {0};
    fill(20, 10);
    struct timed x = timed(slow, 1, NULL), y = timed(fast, 1, NULL);
    x.plan = "abc here";
    y.plan = "abc there";
    assert_int_equal(judge(&x, &y).how, JUDGED_APART);
    y.plan = "abc here";
    struct judgement j = judge(&x, &y);
    assert_int_equal(j.how, JUDGED_SAME_PLAN);
    assert_string_equal(judge_cell(&j, &a), "same plan");
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_work),
        cmocka_unit_test(test_apart),
        cmocka_unit_test(test_equal_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Interleaved timing: order, number of samples, results. */
#include "measure/rounds.h"

#include "base/interrupt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>

enum { LOG_MOST = 4096 };

/* The sequence of samples of fake contenders, each of which takes `ms` per call. */
static struct {
    int who[LOG_MOST], calls[LOG_MOST], n;
} seen;

struct thing {
    int number;
    double ms[ROUNDS_PARTS];
    int taken, fails_at; /* 0: never */
};

/* Sends Ctrl-C during sample `stops_at` of this contender; NULL: never. */
static const struct thing *stops;
static int stops_at;

static enum status sample(void *user, int calls, double *ret_ms)
{
    struct thing *t = user;
    seen.who[seen.n] = t->number;
    seen.calls[seen.n++] = calls;
    t->taken++;
    if (t == stops && t->taken == stops_at) raise(SIGINT);
    if (t->taken == t->fails_at) return (fail)(ST_NUMERIC, "number %d fails", t->number);
    ret_ms[0] = t->ms[0];
    ret_ms[1] = t->ms[1];
    return ST_OK;
}

static struct contender contender(struct thing *t, int parts, double budget_ms)
{
    return (struct contender){.sample = sample, .user = t, .parts = parts, .budget_ms = budget_ms};
}

static void test_slow_contenders_give_fewer_samples(void **state)
{
    (void)state;
    struct thing fast = {0, {1}, 0, 0}, slow = {1, {20}, 0, 0}, slowest = {2, {1000}, 0, 0},
                 slower = {3, {60}, 0, 0};
    struct contender c[] = {contender(&fast, 1, 100), contender(&slow, 1, 100),
                            contender(&slowest, 1, 100), contender(&slower, 1, 100)};
    struct rounds r = {.most = 20, .least = 2, .warmup = 3};
    seen.n = 0;
    assert_int_equal(rounds_run(&r, c, 4), ST_OK);
    assert_int_equal(c[0].samples, 20);
    assert_int_equal(c[1].samples, 5);
    assert_int_equal(c[2].samples, 1); /* one sample exceeds its budget */
    assert_int_equal(c[3].samples, 2); /* the minimum */
    /* the slowest has one warm-up call */
    assert_int_equal(fast.taken, 4 + 20);
    assert_int_equal(slow.taken, 4 + 5);
    assert_int_equal(slowest.taken, 1 + 1);
    /* four samples of the fast one between two of the slow one */
    int at[5], n = 0;
    for (int i = 13; i < seen.n; i++)
        if (seen.who[i] == 1) at[n++] = i;
    assert_int_equal(n, 5);
    for (int i = 1; i < n; i++) {
        int between = 0;
        for (int k = at[i - 1]; k < at[i]; k++) between += seen.who[k] == 0;
        assert_int_equal(between, 4);
    }
    assert_int_equal(c[0].total.n, 20);
    assert_true(c[1].total.median == 20 && c[1].total.std == 0 && c[1].first_ms == 20);
}

static void test_short_contenders_run_several_times_per_sample(void **state)
{
    (void)state;
    struct thing shortest = {0, {0.01}, 0, 0}, alone = {1, {0.01}, 0, 0};
    struct contender c[] = {contender(&shortest, 1, 1000), contender(&alone, 1, 1000)};
    struct rounds r = {.most = 7, .least = 7, .warmup = 1};
    c[1].one_by_one = true;
    seen.n = 0;
    assert_int_equal(rounds_run(&r, c, 2), ST_OK);
    assert_int_equal(c[0].calls, 10);
    assert_int_equal(c[1].calls, 1);
    for (int i = seen.n - 2; i < seen.n; i++)
        assert_int_equal(seen.calls[i], seen.who[i] == 0 ? 10 : 1);
    for (int i = 6; i < seen.n; i += 2) /* each comes first in every second round */
        assert_int_equal(seen.who[i], (i - 4) / 2 % 2);
    assert_true(fabs(c[0].total.median - 0.01) < 1e-12); /* per call */
}

static void test_parts_and_their_sum(void **state)
{
    (void)state;
    struct thing both = {0, {3, 5}, 0, 0};
    struct contender c = contender(&both, 2, 1000);
    struct rounds r = {.most = 3, .least = 1, .warmup = 0};
    seen.n = 0;
    assert_int_equal(rounds_run(&r, &c, 1), ST_OK);
    assert_true(c.part[0].median == 3 && c.part[1].median == 5 && c.total.median == 8);
    assert_int_equal(c.total.n, 3);
}

static void note(void *user, double done_ms, double expected_ms)
{
    double *last = user;
    if (done_ms < last[0] || (last[1] > 0 && expected_ms != last[1])) last[2] = 1;
    if (done_ms <= 6 && expected_ms != 0) last[2] = 1; /* of the warm-up */
    last[0] = done_ms;
    last[1] = expected_ms;
}

static void test_progress_ends_at_the_expected_time(void **state)
{
    (void)state;
    struct thing a = {0, {2}, 0, 0}, b = {1, {4}, 0, 0};
    struct contender c[] = {contender(&a, 1, 1000), contender(&b, 1, 1000)};
    double last[3] = {0};
    struct rounds r = {.most = 5, .least = 5, .warmup = 0, .each = note, .user = last};
    seen.n = 0;
    assert_int_equal(rounds_run(&r, c, 2), ST_OK);
    assert_true(last[0] == 36 && last[1] == 36 && last[2] == 0);
}

static void test_a_failure_ends_it(void **state)
{
    (void)state;
    struct thing good = {0, {1}, 0, 0}, bad = {1, {1}, 0, 4};
    struct contender c[] = {contender(&good, 1, 1000), contender(&bad, 1, 1000)};
    struct rounds r = {.most = 50, .least = 1, .warmup = 0};
    seen.n = 0;
    assert_int_equal(rounds_run(&r, c, 2), ST_NUMERIC);
    assert_string_equal(fail_message(), "number 1 fails");
    assert_int_equal(bad.taken, 4);
}

static void test_ctrl_c_keeps_samples(void **state)
{
    (void)state;
    struct thing first = {0, {1}, 0, 0}, second = {1, {1}, 0, 0};
    struct contender c[] = {contender(&first, 1, 100), contender(&second, 1, 100)};
    struct rounds r = {.most = 20, .least = 2, .warmup = 1};
    seen.n = 0;
    stops = &second;
    stops_at = 5;
    interrupt_catch();
    assert_int_equal(rounds_run(&r, c, 2), ST_OK);
    assert_true(second.taken == 5 && c[1].samples == 3 && c[1].total.n == 3);
    assert_true(c[0].samples == first.taken - 2 && c[0].total.n == c[0].samples);
    second.taken = 3; /* before a sample counts */
    interrupt_catch();
    assert_int_equal(rounds_run(&r, c, 2), ST_INTERRUPTED);
    interrupt_release();
    stops = NULL;
}

/* A contender whose samples differ: `ms` times 1 or `burst`, by turns of `length` samples. */
struct bursty {
    double ms, burst;
    int length, taken;
};

static enum status bursty_sample(void *user, int, double *ret_ms)
{
    struct bursty *b = user;
    ret_ms[0] = b->ms * (b->taken++ / b->length % 2 ? b->burst : 1);
    return ST_OK;
}

static struct contender bursty_contender(struct bursty *b, double budget_ms)
{
    return (struct contender){
        .sample = bursty_sample, .user = b, .parts = 1, .one_by_one = true, .budget_ms = budget_ms};
}

/* Both see the same bursts, so the order is certain although their ranges overlap. */
static void test_certain_order_needs_no_more(void **state)
{
    (void)state;
    struct arena kept = {0};
    struct bursty one = {1.1, 2, 3, 0}, other = {1, 2, 3, 0};
    struct contender c[] = {bursty_contender(&one, 1e4), bursty_contender(&other, 1e4)};
    struct rounds r = {.most = 20, .least = 3, .keep = &kept, .go_on = true};
    struct verdict v[2];
    int fastest;
    assert_int_equal(rounds_run(&r, c, 2), ST_OK);
    rounds_order(c, 2, v, &fastest);
    assert_int_equal(fastest, 1);
    assert_int_equal(v[1].kind, VERDICT_NONE);
    assert_int_equal(v[0].kind, VERDICT_SLOWER);
    assert_int_equal(v[0].pairs, 20);
    assert_int_equal(c[0].samples, 20);
    arena_release(&kept);
}

/* Bursts of their own: more rounds, until the budget is spent or there are many of them. */
static void test_uncertain_order_goes_on(void **state)
{
    (void)state;
    struct verdict v[2];
    int fastest;
    for (int rich = 0; rich < 2; rich++) {
        struct arena kept = {0};
        struct bursty one = {1, 2, 3, 0}, other = {1, 2, 3, 3}; /* in turn */
        double budget_ms = rich ? 1e4 : 60;
        struct contender c[] = {bursty_contender(&one, budget_ms),
                                bursty_contender(&other, budget_ms)};
        struct rounds r = {.most = 20, .least = 3, .keep = &kept, .go_on = true};
        assert_int_equal(rounds_run(&r, c, 2), ST_OK);
        rounds_order(c, 2, v, &fastest);
        assert_int_equal(v[!fastest].kind, VERDICT_UNCERTAIN);
        if (rich)
            assert_in_range(c[0].samples, 20 * ROUNDS_MORE, 20 * (ROUNDS_MORE + 1));
        else
            assert_in_range(c[0].samples, 28, 50); /* 1.5 ms each, 120 ms for both */
        assert_int_equal(c[0].total.n, c[0].samples);
        arena_release(&kept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_certain_order_needs_no_more),
        cmocka_unit_test(test_uncertain_order_goes_on),
        cmocka_unit_test(test_slow_contenders_give_fewer_samples),
        cmocka_unit_test(test_short_contenders_run_several_times_per_sample),
        cmocka_unit_test(test_parts_and_their_sum),
        cmocka_unit_test(test_progress_ends_at_the_expected_time),
        cmocka_unit_test(test_a_failure_ends_it),
        cmocka_unit_test(test_ctrl_c_keeps_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The rule for verdicts: known intervals, and known ties and differences on a simulated machine
 * that another program slows down in bursts. Seeds and therefore counts are fixed. */
#include "base/verdict.h"

#include "base/rng.h"
#include "base/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* --- known answers ---------------------------------------------------------------------------- */

enum { PAIRS = 40 };

static void fill(double *x, int n, double value, double spread)
{
    for (int i = 0; i < n; i++) x[i] = value * (1 + spread * (i % 5 - 2));
}

static void test_exact(void **state)
{
    (void)state;
    double x[PAIRS], y[PAIRS];
    fill(x, PAIRS, 10, 0);
    fill(y, PAIRS, 8, 0);
    struct verdict v = verdict_of_pairs(x, y, PAIRS);
    assert_int_equal(v.kind, VERDICT_FASTER);
    assert_float_equal(v.speed, 1.25, 1e-9);
    assert_float_equal(v.low, 1.25, 1e-9);
    assert_float_equal(v.high, 1.25, 1e-9);
    assert_int_equal(v.pairs, PAIRS);
    assert_int_equal(verdict_of_pairs(y, x, PAIRS).kind, VERDICT_SLOWER);
    assert_int_equal(verdict_of_pairs(x, x, PAIRS).kind, VERDICT_SAME);
    assert_int_equal(verdict_of_series(x, PAIRS, y, PAIRS).kind, VERDICT_FASTER);
    assert_true(verdict_of_series(x, PAIRS, y, PAIRS).apart);
}

/* With eight pairs the extremes are the interval, with a confidence of 1 - 2/2^8 = 99.2 %. */
static void test_eight_pairs(void **state)
{
    (void)state;
    const double x[] = {10, 10, 10, 10, 10, 10, 10, 10};
    const double y[] = {9.0, 9.1, 8.9, 9.2, 8.8, 9.3, 8.7, 9.4};
    struct verdict v = verdict_of_pairs(x, y, 8);
    assert_int_equal(v.kind, VERDICT_FASTER);
    assert_float_equal(v.low, 10 / 9.4, 1e-9);
    assert_float_equal(v.high, 10 / 8.7, 1e-9);
    assert_int_equal(verdict_of_pairs(x, y, 7).kind, VERDICT_UNCERTAIN);
}

static void test_smallest_difference(void **state)
{
    (void)state;
    double x[PAIRS], y[PAIRS];
    fill(x, PAIRS, 10, 0);
    fill(y, PAIRS, 10 / 1.019, 0);
    assert_int_equal(verdict_of_pairs(x, y, PAIRS).kind, VERDICT_SAME);
    fill(y, PAIRS, 10 / 1.021, 0);
    assert_int_equal(verdict_of_pairs(x, y, PAIRS).kind, VERDICT_FASTER);
    /* no verdict if the interval crosses the limit of 2 % */
    fill(y, PAIRS, 10 / 1.02, 0.01);
    assert_int_equal(verdict_of_pairs(x, y, PAIRS).kind, VERDICT_UNCERTAIN);
}

static void test_few(void **state)
{
    (void)state;
    const double x[] = {10, 10, 10}, half[] = {5, 5, 5}, tenth[] = {1, 1.1, 0.9};
    assert_int_equal(verdict_of_pairs(x, half, 3).kind, VERDICT_UNCERTAIN);
    assert_int_equal(verdict_of_pairs(x, x, 3).kind, VERDICT_UNCERTAIN);
    assert_int_equal(verdict_of_pairs(x, tenth, 3).kind, VERDICT_FASTER);
    assert_int_equal(verdict_of_series(x, 3, tenth, 3).kind, VERDICT_FASTER);
    assert_int_equal(verdict_of_pairs(x, tenth, 2).kind, VERDICT_UNCERTAIN);
    assert_int_equal(verdict_of_series(x, 2, tenth, 2).kind, VERDICT_UNCERTAIN);
    assert_int_equal(verdict_of_pairs(x, tenth, 0).kind, VERDICT_UNCERTAIN);
    assert_int_equal(verdict_of_series(x, 0, tenth, 3).kind, VERDICT_UNCERTAIN);
}

static void test_no_numbers(void **state)
{
    (void)state;
    double x[PAIRS], y[PAIRS];
    fill(x, PAIRS, 10, 0);
    fill(y, PAIRS, 5, 0);
    x[3] = NAN;
    y[4] = INFINITY;
    y[5] = 0;
    struct verdict v = verdict_of_pairs(x, y, PAIRS);
    assert_int_equal(v.pairs, PAIRS - 3);
    assert_float_equal(v.speed, 2, 1e-9);
    assert_float_equal(verdict_of_series(x, PAIRS, y, PAIRS).speed, 2, 1e-9);
}

/* Measured apart, the drift of either series widens the interval. */
static void test_apart_has_the_drift(void **state)
{
    (void)state;
    double x[PAIRS], y[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        x[i] = 10 * (1 + 0.3 * i / PAIRS);
        y[i] = x[i] / 1.1;
    }
    assert_int_equal(verdict_of_pairs(x, y, PAIRS).kind, VERDICT_FASTER);
    struct verdict v = verdict_of_series(x, PAIRS, y, PAIRS);
    assert_int_equal(v.kind, VERDICT_UNCERTAIN);
    assert_true(v.low < 0.9 && v.high > 1.3);
}

static void test_chunks(void **state)
{
    (void)state;
    double x[1000], chunk[VERDICT_CHUNKS];
    for (int i = 0; i < 1000; i++) x[i] = i;
    assert_int_equal(verdict_chunks(x, 1000, chunk), VERDICT_CHUNKS);
    assert_float_equal(chunk[0], 9.5, 1e-9); /* of 0 ... 19 */
    assert_int_equal(verdict_chunks(x, 5, chunk), 5);
    assert_float_equal(chunk[4], 4, 1e-9);
}

static void test_words(void **state)
{
    (void)state;
    assert_string_equal(verdict_name(VERDICT_UNCERTAIN), "cannot tell");
}

/* The same numbers give the same verdict, also when thousands of pairs are first summarized. */
static void test_deterministic(void **state)
{
    (void)state;
    static double x[5000], y[5000];
    for (int i = 0; i < 5000; i++) {
        x[i] = 10 + rng_normal(1, RNG_TEST, 0, (uint64_t)i);
        y[i] = 9 + rng_normal(1, RNG_TEST, 1, (uint64_t)i);
    }
    struct verdict v = verdict_of_pairs(x, y, 5000), w = verdict_of_pairs(x, y, 5000);
    assert_true(v.low == w.low && v.high == w.high && v.speed == w.speed && v.kind == w.kind);
    assert_int_equal(v.kind, VERDICT_FASTER);
    assert_in_range(v.pairs, 256, 512);
}

/* --- a machine with bursts -------------------------------------------------------------------- */

/* Another program, on for `on` and off for `off` steps on average, slows steps `slow` times. */
struct machine {
    uint32_t seed;
    double on, off, slow;
    bool busy;
    uint64_t step;
};

static double step_of(struct machine *m, double ms)
{
    double change = rng_uniform(m->seed, RNG_TEST, 0, m->step);
    if (change < 1 / (m->busy ? m->on : m->off)) m->busy = !m->busy;
    double noise = 0.02 * (double)rng_normal(m->seed, RNG_TEST, 1, m->step++);
    return ms * (m->busy ? m->slow : 1) * exp(noise);
}

static double chunk_of(struct machine *m, double ms, int steps)
{
    double x[64];
    for (int i = 0; i < steps; i++) x[i] = step_of(m, ms);
    return stats_of(x, steps).median;
}

struct trials {
    int kind[5]; /* of enum verdict_kind */
};

/* Two variants in turns, the second `speed` times as fast; `trials` trials with different seeds. */
static struct trials in_turns(double on, double off, double slow, int pairs, int steps,
                              double speed, int trials)
{
    struct trials t = {0};
    for (int trial = 0; trial < trials; trial++) {
        struct machine m = {(uint32_t)trial + 1, on, off, slow, false, 0};
        double x[64], y[64];
        for (int i = 0; i < pairs; i++) {
            if (i % 2) y[i] = chunk_of(&m, 10 / speed, steps);
            x[i] = chunk_of(&m, 10, steps);
            if (i % 2 == 0) y[i] = chunk_of(&m, 10 / speed, steps);
        }
        t.kind[verdict_of_pairs(x, y, pairs).kind]++;
    }
    return t;
}

static const struct {
    double on, off, slow; /* lengths in steps */
} loads[] = {
    {8, 8, 1.8},    /* as long as a chunk */
    {4, 30, 2},     /* short and rare */
    {40, 40, 1.5},  /* several chunks */
    {200, 100, 2},  /* long */
    {1000, 10, 1.3} /* nearly always */
};
enum { TRIALS = 60 };

/* Prints the counts, so that the effect of a change of the rule can be seen. */
static void show(const char *what, int load, int pairs, const struct trials *t)
{
    print_message("%s, load %d, %2d pairs: %d same, %d cannot tell, %d faster, %d slower\n", what,
                  load, pairs, t->kind[VERDICT_SAME], t->kind[VERDICT_UNCERTAIN],
                  t->kind[VERDICT_FASTER], t->kind[VERDICT_SLOWER]);
}

static void test_ties_have_no_winner(void **state)
{
    (void)state;
    static const int pairs[] = {8, 16, 40};
    int named = 0, all = 0;
    for (int load = 0; load < COUNT_OF(loads); load++)
        for (int p = 0; p < COUNT_OF(pairs); p++) {
            struct trials t =
                in_turns(loads[load].on, loads[load].off, loads[load].slow, pairs[p], 8, 1, TRIALS);
            show("tie", load, pairs[p], &t);
            named += t.kind[VERDICT_FASTER] + t.kind[VERDICT_SLOWER];
            all += TRIALS;
        }
    assert_true(named * 1000 <= all); /* 1 in 1000 */
}

static void test_differences_are_never_turned_round(void **state)
{
    (void)state;
    int found = 0, all = 0;
    for (int load = 0; load < COUNT_OF(loads); load++) {
        struct trials t =
            in_turns(loads[load].on, loads[load].off, loads[load].slow, 40, 8, 1.1, TRIALS);
        show("10 %", load, 40, &t);
        assert_int_equal(t.kind[VERDICT_SLOWER], 0);
        assert_int_equal(t.kind[VERDICT_SAME], 0);
        found += t.kind[VERDICT_FASTER];
        all += TRIALS;
    }
    assert_true(found * 4 >= all * 3);
}

/* On a quiet machine the rule finds the true verdict, also for series measured apart. */
static void test_quiet(void **state)
{
    (void)state;
    struct trials t = in_turns(1, 1e9, 1, 16, 8, 1.1, TRIALS);
    show("10 %, quiet", 0, 16, &t);
    assert_int_equal(t.kind[VERDICT_FASTER], TRIALS);
    t = in_turns(1, 1e9, 1, 16, 8, 1, TRIALS);
    show("tie, quiet", 0, 16, &t);
    assert_true(t.kind[VERDICT_SAME] >= TRIALS * 9 / 10);
    assert_int_equal(t.kind[VERDICT_FASTER] + t.kind[VERDICT_SLOWER], 0);
}

/* Measured apart under long bursts: no tie becomes a difference, no difference is reversed. */
static void test_apart_under_bursts(void **state)
{
    (void)state;
    int named = 0, turned = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        struct machine m = {(uint32_t)trial + 1, 60, 60, 1.6, false, 0};
        double x[400], y[400], z[400];
        for (int i = 0; i < 400; i++) x[i] = step_of(&m, 10);
        for (int i = 0; i < 400; i++) y[i] = step_of(&m, 10);
        for (int i = 0; i < 400; i++) z[i] = step_of(&m, 9);
        enum verdict_kind tie = verdict_of_series(x, 400, y, 400).kind;
        enum verdict_kind faster = verdict_of_series(x, 400, z, 400).kind;
        named += tie == VERDICT_FASTER || tie == VERDICT_SLOWER;
        turned += faster == VERDICT_SLOWER;
    }
    print_message("apart: %d ties named, %d turned round\n", named, turned);
    assert_int_equal(named, 0);
    assert_int_equal(turned, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_eight_pairs),
        cmocka_unit_test(test_smallest_difference),
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_no_numbers),
        cmocka_unit_test(test_apart_has_the_drift),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_deterministic),
        cmocka_unit_test(test_ties_have_no_winner),
        cmocka_unit_test(test_differences_are_never_turned_round),
        cmocka_unit_test(test_quiet),
        cmocka_unit_test(test_apart_under_bursts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Placement of spans with given bytes and live ranges, without a graph. */
#include "base/arena.h"
#include "base/checked.h"
#include "base/rng.h"
#include "plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 200, STEPS = 100, ALIGNMENT = 64 };

static int64_t below(uint32_t sequence, uint64_t *i, int64_t n)
{
    return rng_below(7, RNG_TEST, sequence, (*i)++, n);
}

static int64_t aligned(int64_t n)
{
    return (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The maximum of live bytes over the steps: a lower bound for any placement. */
static int64_t lower_bound(const struct place_span *span, int n)
{
    int64_t most = 0;
    for (int t = 0; t <= STEPS; t++) {
        int64_t alive = 0;
        for (int i = 0; i < n; i++)
            if (span[i].first <= t && t <= span[i].last) alive += aligned(span[i].bytes);
        if (alive > most) most = alive;
    }
    return most;
}

static int64_t place(struct place_span *span, int n)
{
    struct arena scratch = {0};
    int64_t bytes = place_spans(span, n, &scratch);
    arena_release(&scratch);
    return bytes;
}

static int random_spans(struct place_span *span, uint32_t sequence)
{
    uint64_t at = 0;
    int n = (int)below(sequence, &at, MOST);
    for (int i = 0; i < n; i++) {
        int first = (int)below(sequence, &at, STEPS);
        int last = first + (int)below(sequence, &at, STEPS - first);
        int64_t size = below(sequence, &at, 3) ? 4096 << below(sequence, &at, 4)
                                               : 1 + below(sequence, &at, 100000);
        span[i] = (struct place_span){size, first, last, -1};
    }
    return n;
}

static void test_random_lifetimes(void **state)
{
    (void)state;
    struct place_span span[MOST];
    double worst = 1, sum = 0;
    enum { ROUNDS = 3000 };
    for (uint32_t round = 0; round < ROUNDS; round++) {
        int n = random_spans(span, round);
        int64_t bytes = place(span, n), bound = lower_bound(span, n);
        if (!place_valid(span, n)) fail_msg("round %u: spans overlap", round);
        int64_t end = 0;
        for (int i = 0; i < n; i++) {
            assert_true(span[i].offset >= 0 && span[i].offset % ALIGNMENT == 0);
            if (span[i].offset + span[i].bytes > end) end = span[i].offset + span[i].bytes;
        }
        assert_int_equal(bytes, aligned(end));
        assert_true(bytes >= bound);
        double ratio = bound ? (double)bytes / (double)bound : 1;
        sum += ratio;
        if (ratio > worst) worst = ratio;
    }
    print_message("over the lower bound: mean %.4f, worst %.4f\n", sum / ROUNDS, worst);
    assert_true(sum / ROUNDS < 1.05);
    assert_true(worst < 1.35);
}

/* The pattern of training: large values live from a forward step to the mirrored backward step, and
 * temporary values live around each step. */
static void test_training_lifetimes(void **state)
{
    (void)state;
    struct place_span span[MOST];
    for (uint32_t round = 0; round < 200; round++) {
        uint64_t at = 0;
        int n = 0, layers = 5 + (int)below(round, &at, 40);
        int64_t unit = 64 * (1 + below(round, &at, 1000));
        for (int l = 0; l < layers; l++) {
            span[n++] = (struct place_span){4 * unit, l, STEPS - l, 0}; /* saved for backward */
            span[n++] = (struct place_span){unit, l, l + 1, 0};
            span[n++] = (struct place_span){unit, STEPS - l - 1, STEPS - l, 0};
        }
        int64_t bytes = place(span, n);
        assert_true(place_valid(span, n));
        assert_int_equal(bytes, lower_bound(span, n));
    }
}

static void test_deterministic(void **state)
{
    (void)state;
    struct place_span a[MOST], b[MOST];
    for (uint32_t round = 0; round < 100; round++) {
        int n = random_spans(a, round);
        random_spans(b, round);
        for (int i = 0; i < n; i++) a[i].bytes = b[i].bytes = i % 3 ? 4096 : a[i].bytes; /* ties */
        int64_t first = place(a, n), second = place(b, n);
        assert_int_equal(first, second);
        for (int i = 0; i < n; i++) assert_int_equal(a[i].offset, b[i].offset);
    }
}

static void test_edges(void **state)
{
    (void)state;
    assert_int_equal(place(NULL, 0), 0);
    assert_true(place_valid(NULL, 0));
    struct place_span one[] = {{1, 3, 3, -1}};
    assert_int_equal(place(one, 1), ALIGNMENT);
    assert_int_equal(one[0].offset, 0);
    /* Spans that meet in one step overlap; spans that do not may share bytes. */
    struct place_span meet[] = {{100, 0, 5, 0}, {100, 5, 9, 0}};
    assert_int_equal(place(meet, 2), 256);
    struct place_span apart[] = {{100, 0, 4, 0}, {100, 5, 9, 0}};
    assert_int_equal(place(apart, 2), 128);
    assert_int_equal(apart[0].offset, apart[1].offset);
    /* A gap of exactly the right size is used. */
    struct place_span hole[] = {{640, 0, 9, 0}, {320, 0, 4, 0}, {256, 0, 9, 0}, {320, 5, 9, 0}};
    assert_int_equal(place(hole, 4), 640 + 320 + 256);
    struct place_span large[] = {{INT64_C(1) << 40, 0, 1, 0}, {INT64_C(1) << 40, 1, 2, 0}};
    assert_true(place(large, 2) == INT64_C(1) << 41);
    /* A sum that does not fit in 64 bits does not wrap around. */
    struct place_span huge[] = {{INT64_MAX / 2, 0, 1, 0},
                                {INT64_MAX / 2, 0, 1, 0},
                                {INT64_MAX / 2, 0, 1, 0},
                                {INT64_MAX, 0, 1, 0}};
    assert_true(place(huge, 4) == SIZE_TOO_LARGE);
}

static void test_valid_sees_an_overlap(void **state)
{
    (void)state;
    struct place_span span[MOST];
    int checked = 0;
    for (uint32_t round = 0; round < 300; round++) {
        int n = random_spans(span, round);
        place(span, n);
        for (int i = 0; i < n; i++)
            for (int k = 0; k < i; k++) {
                if (span[i].first > span[k].last || span[k].first > span[i].last) continue;
                struct place_span broken[2] = {span[i], span[k]};
                broken[0].offset = broken[1].offset + broken[1].bytes - 1; /* one byte too low */
                assert_false(place_valid(broken, 2));
                broken[0].offset++;
                assert_true(place_valid(broken, 2));
                broken[0].offset = broken[1].offset - broken[0].bytes + 1;
                assert_false(place_valid(broken, 2));
                broken[1].first = broken[0].last + 1; /* no longer live at the same time */
                broken[1].last = broken[1].first;
                assert_true(place_valid(broken, 2));
                checked++;
                i = n; /* one pair per round */
                break;
            }
    }
    assert_true(checked > 250);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_lifetimes),      cmocka_unit_test(test_training_lifetimes),
        cmocka_unit_test(test_deterministic),         cmocka_unit_test(test_edges),
        cmocka_unit_test(test_valid_sees_an_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

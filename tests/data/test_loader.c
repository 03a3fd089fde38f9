#include "data/loader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { TRAIN = 1000, VAL = 50, B = 4, T = 16 };

static uint16_t train_tokens[TRAIN], val_tokens[VAL];

/* Token i is i, so a batch shows its positions. */
static struct dataset counting(void)
{
    for (int i = 0; i < TRAIN; i++) train_tokens[i] = (uint16_t)i;
    for (int i = 0; i < VAL; i++) val_tokens[i] = (uint16_t)i;
    return (struct dataset){
        .name = "counting", .tokens = {train_tokens, val_tokens}, .count = {TRAIN, VAL}};
}

static void draw(enum split split, enum rng_stream stream, uint32_t seed, int64_t number,
                 int32_t *inputs, int32_t *targets)
{
    struct dataset d = counting();
    struct loader l;
    assert_int_equal(loader_init(&l, &d, split, stream, seed, B, T), ST_OK);
    l.next = number;
    loader_next(&l, inputs, targets);
    assert_int_equal(l.next, number + 1);
}

static void test_rows_are_contiguous_and_targets_shifted(void **state)
{
    (void)state;
    for (int n = 0; n < 200; n++) {
        int32_t in[B * T], target[B * T];
        draw(SPLIT_TRAIN, RNG_TRAIN_BATCH, 1337, n, in, target);
        for (int i = 0; i < B * T; i++) {
            assert_int_equal(target[i], in[i] + 1);
            assert_int_equal(in[i], in[i / T * T] + i % T);
            assert_true(target[i] < TRAIN);
        }
    }
}

/* Philox is specified, so these numbers (computed by another program) are the same on every
 * machine. They must not change: a change would make old runs unrepeatable. */
static void test_known_answer(void **state)
{
    (void)state;
    static const int32_t expected[] = {105, 294, 127, 404, 223, 793, 9, 564};
    int32_t in[B * T], target[B * T];
    for (int n = 0; n < 2; n++) {
        draw(SPLIT_TRAIN, RNG_TRAIN_BATCH, 1337, n, in, target);
        for (int b = 0; b < B; b++) assert_int_equal(in[b * T], expected[n * B + b]);
    }
}

static void test_order_depends_on_number_and_seed_alone(void **state)
{
    (void)state;
    struct dataset d = counting();
    struct loader l;
    assert_int_equal(loader_init(&l, &d, SPLIT_TRAIN, RNG_TRAIN_BATCH, 7, B, T), ST_OK);
    int32_t in[B * T], target[B * T], again[B * T], other[B * T];
    for (int n = 0; n < 20; n++) {
        loader_next(&l, in, target);
        draw(SPLIT_TRAIN, RNG_TRAIN_BATCH, 7, n, again, target);
        assert_memory_equal(in, again, sizeof in);
        draw(SPLIT_TRAIN, RNG_TRAIN_BATCH, 8, n, other, target);
        assert_memory_not_equal(in, other, sizeof in);
    }
}

static void test_evaluation_has_its_own_stream(void **state)
{
    (void)state;
    struct dataset d = counting();
    struct loader train, eval;
    assert_int_equal(loader_init(&train, &d, SPLIT_TRAIN, RNG_TRAIN_BATCH, 7, B, T), ST_OK);
    assert_int_equal(loader_init(&eval, &d, SPLIT_TRAIN, RNG_EVAL_BATCH, 7, B, T), ST_OK);
    int32_t in[B * T], target[B * T], alone[B * T], evaluated[B * T];
    for (int n = 0; n < 10; n++) {
        for (int k = 0; k < n; k++) loader_next(&eval, evaluated, target);
        loader_next(&train, in, target);
        draw(SPLIT_TRAIN, RNG_TRAIN_BATCH, 7, n, alone, target);
        assert_memory_equal(in, alone, sizeof in);
        draw(SPLIT_TRAIN, RNG_EVAL_BATCH, 7, n, evaluated, target);
        assert_memory_not_equal(in, evaluated, sizeof in);
    }
}

/* Two micro-batches of B/2 equal one batch of B. */
static void test_micro_batches_equal_one_batch(void **state)
{
    (void)state;
    struct dataset d = counting();
    struct loader whole, halves;
    assert_int_equal(loader_init(&whole, &d, SPLIT_TRAIN, RNG_TRAIN_BATCH, 7, B, T), ST_OK);
    assert_int_equal(loader_init(&halves, &d, SPLIT_TRAIN, RNG_TRAIN_BATCH, 7, B / 2, T), ST_OK);
    int32_t in[B * T], target[B * T], half_in[B * T], half_target[B * T];
    for (int n = 0; n < 10; n++) {
        loader_next(&whole, in, target);
        loader_next(&halves, half_in, half_target);
        loader_next(&halves, half_in + B / 2 * T, half_target + B / 2 * T);
        assert_memory_equal(in, half_in, sizeof in);
        assert_memory_equal(target, half_target, sizeof target);
    }
}

/* Every position is equally likely, including the first and the last: 34 positions of 50 tokens,
 * 8000 rows, 235 expected at each; 6 standard deviations are 92. */
static void test_covers_all_positions_evenly(void **state)
{
    (void)state;
    int seen[VAL] = {0};
    for (int n = 0; n < 2000; n++) {
        int32_t in[B * T], target[B * T];
        draw(SPLIT_VAL, RNG_EVAL_BATCH, 3, n, in, target);
        for (int b = 0; b < B; b++) seen[in[b * T]]++;
    }
    for (int place = 0; place < VAL - T; place++) assert_in_range(seen[place], 235 - 92, 235 + 92);
    for (int place = VAL - T; place < VAL; place++) assert_int_equal(seen[place], 0);
}

static void test_too_short_text_is_rejected(void **state)
{
    (void)state;
    struct dataset d = counting();
    struct loader l;
    assert_int_equal(loader_init(&l, &d, SPLIT_VAL, RNG_EVAL_BATCH, 1, B, VAL), ST_USAGE);
    assert_non_null(strstr(fail_message(), "validation split of counting has 50 tokens"));
    assert_non_null(strstr(fail_message(), "needs 51"));
    assert_int_equal(loader_init(&l, &d, SPLIT_VAL, RNG_EVAL_BATCH, 1, 1, VAL - 1), ST_OK);
    int32_t in[VAL], target[VAL];
    loader_next(&l, in, target);
    assert_int_equal(in[0], 0);
    assert_int_equal(target[VAL - 2], VAL - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_contiguous_and_targets_shifted),
        cmocka_unit_test(test_known_answer),
        cmocka_unit_test(test_order_depends_on_number_and_seed_alone),
        cmocka_unit_test(test_evaluation_has_its_own_stream),
        cmocka_unit_test(test_micro_batches_equal_one_batch),
        cmocka_unit_test(test_covers_all_positions_evenly),
        cmocka_unit_test(test_too_short_text_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "data/loader.h"

#include "../support/workdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { TRAIN = 1000, VAL = 50, B = 4, T = 16 };

static struct dataset d;
static struct arena arena;

/* Opens a file of uint16 tokens as a split. */
static void open_split(struct dataset *to, enum split split, const char *path)
{
    const struct token_file like = {
        .path = path, .bytes_per_token = sizeof(uint16_t), .count = to->count[split]};
    assert_int_equal(token_split_open(&to->tokens[split], &like, 1, "the test", &arena), ST_OK);
}

/* Token i is i, so a batch shows its positions. */
static int set_up(void **state)
{
    (void)state;
    uint16_t token[TRAIN];
    for (int i = 0; i < TRAIN; i++) token[i] = (uint16_t)i;
    workdir_open();
    d = (struct dataset){.name = "counting", .count = {TRAIN, VAL}, .remake = "`strobe data`"};
    d.vocabulary.size = TRAIN;
    for (int s = 0; s < SPLIT_COUNT; s++) {
        const char *path = workdir_path(s ? "val.bin" : "train.bin");
        workdir_write(path, token, d.count[s] * (int64_t)sizeof *token);
        open_split(&d, s, path);
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    dataset_close(&d);
    arena_release(&arena);
    workdir_close();
    return 0;
}

static void next(struct loader *l, int32_t *inputs, int32_t *targets)
{
    assert_int_equal(loader_next(l, inputs, targets), ST_OK);
}

static void draw(enum split split, enum rng_stream stream, uint32_t seed, int64_t number,
                 int32_t *inputs, int32_t *targets)
{
    struct loader l;
    assert_int_equal(loader_init(&l, &d, split, stream, seed, B, T), ST_OK);
    l.next = number;
    next(&l, inputs, targets);
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
    struct loader l;
    assert_int_equal(loader_init(&l, &d, SPLIT_TRAIN, RNG_TRAIN_BATCH, 7, B, T), ST_OK);
    int32_t in[B * T], target[B * T], again[B * T], other[B * T];
    for (int n = 0; n < 20; n++) {
        next(&l, in, target);
        draw(SPLIT_TRAIN, RNG_TRAIN_BATCH, 7, n, again, target);
        assert_memory_equal(in, again, sizeof in);
        draw(SPLIT_TRAIN, RNG_TRAIN_BATCH, 8, n, other, target);
        assert_memory_not_equal(in, other, sizeof in);
    }
}

static void test_evaluation_has_its_own_stream(void **state)
{
    (void)state;
    struct loader train, eval;
    assert_int_equal(loader_init(&train, &d, SPLIT_TRAIN, RNG_TRAIN_BATCH, 7, B, T), ST_OK);
    assert_int_equal(loader_init(&eval, &d, SPLIT_TRAIN, RNG_EVAL_BATCH, 7, B, T), ST_OK);
    int32_t in[B * T], target[B * T], alone[B * T], evaluated[B * T];
    for (int n = 0; n < 10; n++) {
        for (int k = 0; k < n; k++) next(&eval, evaluated, target);
        next(&train, in, target);
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
    struct loader whole, halves;
    assert_int_equal(loader_init(&whole, &d, SPLIT_TRAIN, RNG_TRAIN_BATCH, 7, B, T), ST_OK);
    assert_int_equal(loader_init(&halves, &d, SPLIT_TRAIN, RNG_TRAIN_BATCH, 7, B / 2, T), ST_OK);
    int32_t in[B * T], target[B * T], half_in[B * T], half_target[B * T];
    for (int n = 0; n < 10; n++) {
        next(&whole, in, target);
        next(&halves, half_in, half_target);
        next(&halves, half_in + B / 2 * T, half_target + B / 2 * T);
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
    struct loader l;
    assert_int_equal(loader_init(&l, &d, SPLIT_VAL, RNG_EVAL_BATCH, 1, B, VAL), ST_USAGE);
    assert_non_null(strstr(fail_message(), "validation split of counting has 50 tokens"));
    assert_non_null(strstr(fail_message(), "needs 51"));
    assert_int_equal(loader_init(&l, &d, SPLIT_VAL, RNG_EVAL_BATCH, 1, 1, VAL - 1), ST_OK);
    int32_t in[VAL], target[VAL];
    next(&l, in, target);
    assert_int_equal(in[0], 0);
    assert_int_equal(target[VAL - 2], VAL - 1);
}

/* Longer than what is read at once. */
static void test_long_rows(void **state)
{
    (void)state;
    enum { LONG = 2 * 16384 + 5 };
    static uint16_t token[LONG + 1];
    static int32_t in[LONG], target[LONG];
    for (int i = 0; i <= LONG; i++) token[i] = (uint16_t)i;
    struct dataset wide = {.name = "wide", .count = {LONG + 1}, .vocabulary.size = 65536};
    workdir_write(workdir_path("wide.bin"), token, sizeof token);
    open_split(&wide, SPLIT_TRAIN, workdir_path("wide.bin"));
    struct loader l;
    assert_int_equal(loader_init(&l, &wide, SPLIT_TRAIN, RNG_TRAIN_BATCH, 1, 1, LONG), ST_OK);
    next(&l, in, target);
    for (int i = 0; i < LONG; i++)
        if (in[i] != i || target[i] != i + 1) fail_msg("position %d has %d", i, in[i]);
    dataset_close(&wide);
}

/* The file is cut while it is used: an error, not SIGBUS; the loader can go on when it is back. */
static void test_a_file_that_shrinks(void **state)
{
    (void)state;
    struct loader l;
    int32_t in[B * T], target[B * T], again[B * T];
    assert_int_equal(loader_init(&l, &d, SPLIT_TRAIN, RNG_TRAIN_BATCH, 7, B, T), ST_OK);
    next(&l, in, target);
    workdir_truncate(workdir_path("train.bin"), 30);
    assert_int_equal(loader_next(&l, in, target), ST_FORMAT);
    assert_non_null(strstr(fail_message(), "train.bin was cut to 30 bytes"));
    assert_non_null(strstr(fail_message(), "`strobe data`"));
    assert_int_equal(l.next, 1);
    workdir_truncate(workdir_path("train.bin"), 0);
    assert_int_equal(loader_next(&l, in, target), ST_FORMAT);
    uint16_t token[TRAIN];
    for (int i = 0; i < TRAIN; i++) token[i] = (uint16_t)i;
    workdir_write(workdir_path("train.bin"), token, sizeof token);
    next(&l, in, target);
    draw(SPLIT_TRAIN, RNG_TRAIN_BATCH, 7, 1, again, target);
    assert_memory_equal(in, again, sizeof in);
}

/* A token that the vocabulary lacks is an error of the data: with its file, position and id. */
static void test_a_token_out_of_range(void **state)
{
    (void)state;
    struct loader l;
    int32_t in[B * T], target[B * T];
    d.vocabulary.size = VAL - 1; /* the last token of val.bin is 49 */
    assert_int_equal(loader_init(&l, &d, SPLIT_VAL, RNG_EVAL_BATCH, 1, 1, VAL - 1), ST_OK);
    assert_int_equal(loader_next(&l, in, target), ST_FORMAT);
    assert_non_null(
        strstr(fail_message(), "val.bin: token 49 is 49, but the vocabulary has only 49 tokens"));
    d.vocabulary.size = VAL;
    next(&l, in, target);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_rows_are_contiguous_and_targets_shifted),
        TEST(test_known_answer),
        TEST(test_order_depends_on_number_and_seed_alone),
        TEST(test_evaluation_has_its_own_stream),
        TEST(test_micro_batches_equal_one_batch),
        TEST(test_covers_all_positions_evenly),
        TEST(test_too_short_text_is_rejected),
        TEST(test_long_rows),
        TEST(test_a_file_that_shrinks),
        TEST(test_a_token_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

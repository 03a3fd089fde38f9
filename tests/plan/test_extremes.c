/* Plans of models with extreme values of keys: planning counts all sizes correctly or fails with
 * one sentence. Sanitizers detect overflows; every build checks the sums. */
#include "base/checked.h"
#include "base/rng.h"
#include "engine/facts.h"
#include "engine/fit.h"
#include "engine/memory.h"
#include "engine/tune.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 150 };

static const struct {
    const char *key, *values[8];
} axes[] = {
    {"model", {"gpt", "gpt", "gpt", "cs336", "attention_block", "elu", "toy"}},
    {"n_layer", {"1", "2", "3"}},
    {"n_head", {"1", "2", "64", "1024"}},
    {"n_kv_head", {"0", "0", "1"}},
    {"n_embd", {"1", "2", "64", "1024", "65536"}},
    {"block_size", {"1", "2", "65", "4096", "262144"}},
    {"batch_size", {"1", "3", "8192", "65536"}},
    {"d_ff", {"0", "1", "262144"}},
    {"bias", {"true", "false"}},
    {"dropout", {"0", "0.99"}},
    {"vocab_size", {"0", "65", "1000000"}},
    {"pad_vocab", {"0", "64", "128"}},
    {"gradient_accumulation_steps", {"1", "2", "65536"}},
    {"optimizer", {"adamw", "sgd"}},
    {"dtype", {"float32", "bfloat16", "float8"}},
    {"fusion", {"full", "full", "op", "primitive"}},
    {"flash", {"true", "false"}},
    {"recompute", {"none", "gelu", "block", "block:2"}},
    {"reuse", {"true", "true", "false"}},
};

static const char *pick(int axis, uint32_t round, uint64_t *at)
{
    int n = 0;
    while (n < COUNT_OF(axes[axis].values) && axes[axis].values[n]) n++;
    return axes[axis].values[rng_below(5, RNG_TEST, round, (*at)++, n)];
}

static struct config random_config(uint32_t round, struct arena *a)
{
    struct config c;
    uint64_t at = 0;
    config_init(&c);
    config_choose(&c, &(struct config_facts){0});
    c.plan.device = DEVICE_CPU;
    for (int i = 0; i < COUNT_OF(axes); i++) {
        const char *word = arena_printf(a, "%s=%s", axes[i].key, pick(i, round, &at));
        assert_int_equal(config_set(&c, word, a), ST_OK);
    }
    return c;
}

static void assert_sentence(enum status st)
{
    assert_int_not_equal(st, ST_OK);
    const char *text = fail_message();
    assert_true(strlen(text) > 10 && strlen(text) < 1000 && !strchr(text, '\n'));
}

/* Checks that no sum of a plan is negative or less than one of its terms. */
static void assert_counts(const struct program *p, struct arena *a)
{
    int64_t sum = 0;
    for (int i = 0; i < STORAGE_COUNT; i++) {
        assert_true(p->bytes[i] >= 0);
        sum = size_add(sum, p->bytes[i]);
    }
    assert_true(sum == program_bytes(p) && sum < SIZE_TOO_LARGE);
    struct memory_course c;
    memory_course(p, &c, a);
    for (int i = 0; i < c.moments; i++) {
        assert_true(c.moment[i].used >= 0 && c.moment[i].used <= c.total);
        for (int part = 0; part < MEMORY_PARTS; part++) assert_true(c.moment[i].bytes[part] >= 0);
    }
    struct facts f = facts_of(p);
    assert_true(f.flops >= 0 && f.total >= 0);
}

static bool plan(const struct config *c, int64_t vocab, struct arena *a)
{
    struct program p;
    enum status st = model_check(c);
    unsigned kinds = memory_kinds(c, EXTENT_STEP) | 1u << GRAPH_EVAL;
    if (st == ST_OK) st = program_for(&p, c, vocab, kinds, "cpu", a);
    if (st == ST_OK)
        assert_counts(&p, a);
    else
        assert_sentence(st);
    return st == ST_OK;
}

static void test_random_extremes(void **state)
{
    (void)state;
    int planned = 0, fitted = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct arena a = {0};
        struct target target;
        const struct tuning *tuning;
        struct config c = random_config(round, &a);
        int64_t vocab = c.model.vocab_size ? c.model.vocab_size : 65;
        bool fine = plan(&c, vocab, &a);
        planned += fine;
        if (fine && round % 8 == 0) {
            int64_t batch = -1;
            assert_int_equal(tune_target(&c, "cpu", &target, &tuning, &a), ST_OK);
            assert_int_equal(fit_batch(&c, vocab, memory_kinds(&c, EXTENT_STEP), &target, tuning,
                                       INT64_C(1) << 36, &batch),
                             ST_OK);
            assert_true(batch >= 0 && batch <= BATCH_SIZE_MOST);
            fitted += batch > 0;
        }
        arena_release(&a);
    }
    print_message("%d of %d configurations have a plan\n", planned, ROUNDS);
    assert_true(planned > ROUNDS / 8 && planned < ROUNDS && fitted > 0);
}

/* The matrices of slow attention have 2^61 bytes, and every layer keeps two of them. */
static void test_more_bytes_than_64_bits_count(void **state)
{
    (void)state;
    struct arena a = {0};
    struct config c;
    struct program p;
    config_init(&c);
    config_choose(&c, &(struct config_facts){0});
    c.plan.device = DEVICE_CPU;
    c.plan.flash = false;
    c.model.n_layer = 4;
    c.model.n_head = c.model.n_embd = 1024;
    c.model.block_size = 1 << 18;
    c.data.batch_size = (1 << 13) - 1;
    assert_int_equal(program_for(&p, &c, 65, 1u << GRAPH_MICRO, "cpu", &a), ST_MEMORY);
    if (!strstr(fail_message(), "more than the 16 TiB")) fail_msg("%s", fail_message());
    /* The search for the largest batch that fits also tries batches whose bytes overflow. */
    struct target target;
    const struct tuning *tuning;
    int64_t batch = -1;
    c.model.n_layer = 1;
    c.model.n_head = 1;
    c.model.n_embd = 64;
    assert_int_equal(tune_target(&c, "cpu", &target, &tuning, &a), ST_OK);
    assert_int_equal(
        fit_batch(&c, 65, 1u << GRAPH_MICRO, &target, tuning, INT64_C(1) << 42, &batch), ST_OK);
    assert_true(batch >= 1 && batch < 8);
    arena_release(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_bytes_than_64_bits_count),
        cmocka_unit_test(test_random_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

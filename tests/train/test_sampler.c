/* Text generation: the cache does not change the text, windows shift, and samples follow the
 * model's distribution. */
#include "train/sampler.h"

#include "../support/small.h"
#include "../support/tiny.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { LENGTH = 200, KINDS = 1 << GRAPH_LOGITS | 1 << GRAPH_DECODE };

/* A briefly trained model, so that its logits are not uniform. */
static struct learner learner;
static struct config config;
static struct arena arena;

static struct sampler_options options(uint32_t seed, bool cache)
{
    return (struct sampler_options){
        .temperature = 0.8, .top_k = 5, .top_p = 1, .seed = seed, .cache = cache};
}

static void write_text(const struct sampler_options *o, int64_t number, const int32_t *prompt,
                       int64_t n, int32_t text[LENGTH])
{
    struct sampler s;
    struct arena a = {0};
    sampler_init(&s, &learner.engine, o, &a);
    sampler_start(&s, number, prompt, n);
    for (int i = 0; i < LENGTH; i++) {
        assert_int_equal(sampler_next(&s, &text[i]), ST_OK);
        assert_in_range(text[i], 0, SMALL_VOCABULARY - 1);
    }
    arena_release(&a);
}

/* 200 tokens are far more than the window of 16. */
static void test_the_cache_changes_nothing(void **state)
{
    (void)state;
    const int32_t prompt[] = {2, 3, 2, 1};
    for (uint32_t seed = 1; seed <= 3; seed++) {
        int32_t with[LENGTH], without[LENGTH];
        struct sampler_options o = options(seed, true);
        write_text(&o, 0, prompt, COUNT_OF(prompt), with);
        o.cache = false;
        write_text(&o, 0, prompt, COUNT_OF(prompt), without);
        assert_memory_equal(with, without, sizeof with);
    }
}

static void test_seeds_and_texts_differ(void **state)
{
    (void)state;
    const int32_t prompt[] = {0};
    int32_t first[LENGTH], again[LENGTH], other[LENGTH];
    struct sampler_options o = options(1, true);
    write_text(&o, 0, prompt, 1, first);
    write_text(&o, 0, prompt, 1, again);
    assert_memory_equal(first, again, sizeof first);
    write_text(&o, 1, prompt, 1, other);
    assert_memory_not_equal(first, other, sizeof first);
    o.seed = 2;
    write_text(&o, 0, prompt, 1, other);
    assert_memory_not_equal(first, other, sizeof first);
}

static void first_logits(const int32_t *prompt, int64_t n, bool cache,
                         float logits[SMALL_VOCABULARY])
{
    struct sampler s;
    struct arena a = {0};
    struct sampler_options o = options(1, cache);
    int32_t token;
    sampler_init(&s, &learner.engine, &o, &a);
    sampler_start(&s, 0, prompt, n);
    assert_int_equal(sampler_next(&s, &token), ST_OK);
    memcpy(logits, s.logits, SMALL_VOCABULARY * sizeof(float));
    arena_release(&a);
}

/* In a long prompt, only the last block_size tokens matter, and each of them does. */
static void test_a_long_prompt_is_cropped(void **state)
{
    (void)state;
    enum { LONG = 40, T = 16 };
    int32_t prompt[LONG];
    float all[SMALL_VOCABULARY], other[SMALL_VOCABULARY];
    for (int i = 0; i < LONG; i++) prompt[i] = i * i % SMALL_VOCABULARY;
    first_logits(prompt, LONG, true, all);
    first_logits(prompt + LONG - T, T, false, other);
    assert_memory_equal(all, other, sizeof all);
    for (int i = LONG - T - 1; i < LONG; i++) {
        int32_t before = prompt[i];
        prompt[i] = (before + 1) % SMALL_VOCABULARY;
        first_logits(prompt, LONG, true, other);
        bool same = !memcmp(all, other, sizeof all);
        assert_int_equal(same, i < LONG - T);
        prompt[i] = before;
    }
}

/* The most likely token: by temperature 0, by top_k 1, and by a temperature close to 0. */
static void test_most_likely_token(void **state)
{
    (void)state;
    const int32_t prompt[] = {1, 2};
    int32_t cold[LENGTH], one[LENGTH], nearly[LENGTH];
    struct sampler_options o = options(1, true);
    o.temperature = 0;
    write_text(&o, 0, prompt, 2, cold);
    o.temperature = 1;
    o.top_k = 1;
    write_text(&o, 0, prompt, 2, one);
    o.temperature = 1e-4;
    o.top_k = 0;
    write_text(&o, 0, prompt, 2, nearly);
    assert_memory_equal(cold, one, sizeof cold);
    assert_memory_equal(cold, nearly, sizeof cold);
}

/* Sampled tokens have the frequencies given by the logits. None is outside the top k tokens, or
 * outside those of them that top_p keeps. Returns how many different tokens were sampled. */
static int check_frequencies(int k, double top_p)
{
    enum { DRAWS = 4000 };
    const int32_t prompt[] = {0};
    struct sampler_options o = {
        .temperature = 1.5, .top_k = k, .top_p = top_p, .seed = 3, .cache = true};
    struct arena a = {0};
    struct sampler s;
    int drawn[SMALL_VOCABULARY] = {0}, seen = 0;
    sampler_init(&s, &learner.engine, &o, &a);
    for (int i = 0; i < DRAWS; i++) {
        int32_t token;
        sampler_start(&s, i, prompt, 1);
        assert_int_equal(sampler_next(&s, &token), ST_OK);
        drawn[token]++;
    }
    double weight[SMALL_VOCABULARY], sum = 0;
    for (int i = 0; i < SMALL_VOCABULARY; i++) {
        int larger = 0;
        for (int j = 0; j < SMALL_VOCABULARY; j++) larger += s.logits[j] > s.logits[i];
        weight[i] = larger < k ? exp((double)s.logits[i] / o.temperature) : 0;
        sum += weight[i];
    }
    double kept = 0;
    bool in[SMALL_VOCABULARY] = {0};
    for (int best; kept < top_p * sum * (1 - 1e-12); in[best] = true, kept += weight[best]) {
        best = 0;
        for (int i = 1; i < SMALL_VOCABULARY; i++)
            if (in[best] || (!in[i] && weight[i] > weight[best])) best = i;
    }
    for (int i = 0; i < SMALL_VOCABULARY; i++)
        if (!in[i]) weight[i] = 0;
    sum = kept;
    for (int i = 0; i < SMALL_VOCABULARY; i++) {
        double p = weight[i] / sum, spread = sqrt(p * (1 - p) / DRAWS);
        assert_true(fabs(drawn[i] / (double)DRAWS - p) <= 5 * spread);
        seen += drawn[i] > 0;
    }
    arena_release(&a);
    return seen;
}

static void test_frequencies(void **state)
{
    (void)state;
    int all = check_frequencies(SMALL_VOCABULARY, 1);
    assert_int_equal(check_frequencies(3, 1), 3);
    int half = check_frequencies(SMALL_VOCABULARY, 0.5), most = check_frequencies(4, 0.9);
    assert_true(half >= 1 && half < all && most >= 1 && most <= 4);
    assert_int_equal(check_frequencies(SMALL_VOCABULARY, 0.01), 1);
}

/* Fills a row of a parameter with size, -size, size ...; if size < 0, every element is -size. */
static void fill_row(const struct tiny *t, const char *name, int64_t row, float size)
{
    const struct model *m = &t->engine.program.model;
    for (int i = 0; i < m->parameters; i++) {
        const struct parameter *p = &m->parameter[i];
        if (strcmp(p->name, name) != 0) continue;
        int64_t columns = type_columns(&p->type);
        float *x = tiny_parameter(t, STORAGE_WEIGHTS, p) + row * columns;
        for (int64_t c = 0; c < columns; c++) x[c] = size < 0 ? -size : c % 2 ? -size : size;
        return;
    }
    fail_msg("no parameter %s", name);
}

/* Ids of more than 16 bits. With all logits 0, each id is equally likely. Then the rows of the
 * first and the last id are parallel, so that the last id is the most likely after both. */
static void test_large_vocabularies(void **state)
{
    (void)state;
    static const int32_t sizes[] = {128000, 152000};
    for (int i = 0; i < COUNT_OF(sizes); i++) {
        enum { DRAWS = 400, QUARTERS = 4 };
        const int32_t size = sizes[i], prompt[] = {0, size - 1};
        struct tiny t = {};
        struct config c = tiny_config();
        struct sampler s;
        struct sampler_options o = {.temperature = 1, .seed = 3, .cache = true};
        int drawn[QUARTERS] = {0};
        tiny_open_bare(&t, &c, size, KINDS);
        sampler_init(&s, &t.engine, &o, &t.arena);
        for (int k = 0; k < DRAWS; k++) {
            int32_t token;
            sampler_start(&s, k, prompt, 1);
            assert_int_equal(sampler_next(&s, &token), ST_OK);
            assert_in_range(token, 0, size - 1);
            drawn[(int64_t)token * QUARTERS / size]++;
        }
        for (int q = 0; q < QUARTERS; q++) assert_in_range(drawn[q], 100 - 45, 100 + 45);
        sampler_close(&s);

        o.temperature = 0;
        sampler_init(&s, &t.engine, &o, &t.arena);
        fill_row(&t, "ln_f.weight", 0, -1);
        fill_row(&t, "wte.weight", 0, 1);
        fill_row(&t, "wte.weight", size - 1, 2);
        for (int n = 1; n <= 2; n++) {
            int32_t token;
            sampler_start(&s, 0, prompt, n);
            for (int k = 0; k < 3; k++) {
                assert_int_equal(sampler_next(&s, &token), ST_OK);
                assert_int_equal(token, size - 1);
            }
        }
        assert_true(fabsf(s.logits[size - 1] - 2 * s.logits[0]) < 1e-3f * s.logits[0]);
        assert_true(s.logits[0] > 1 && s.logits[1] == 0);
        sampler_close(&s);
        tiny_close(&t);
    }
}

static void test_corrupt_model_is_rejected(void **state)
{
    (void)state;
    struct learner l;
    struct arena a = {0};
    struct sampler s;
    struct sampler_options o = options(1, true);
    const int32_t prompt[] = {0};
    int32_t token = -1;
    small_learner(&l, &config, KINDS, &a);
    ((float *)l.engine.storage.base[STORAGE_WEIGHTS])[0] = NAN;
    sampler_init(&s, &l.engine, &o, &a);
    sampler_start(&s, 0, prompt, 1);
    assert_int_equal(sampler_next(&s, &token), ST_NUMERIC);
    assert_int_equal(token, -1);
    learner_close(&l);
    arena_release(&a);
}

static int make(void **state)
{
    (void)state;
    small_make();
    config = small_config();
    config.model.pad_vocab = 64; /* padding tokens are never sampled */
    small_learner(&learner, &config, KINDS, &arena);
    for (int i = 0; i < 30; i++) {
        struct learner_step s;
        if (tiny_learn(&learner, i, &s) != ST_OK) return 1;
    }
    return 0;
}

static int unmake(void **state)
{
    (void)state;
    learner_close(&learner);
    arena_release(&arena);
    small_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_cache_changes_nothing),
        cmocka_unit_test(test_seeds_and_texts_differ),
        cmocka_unit_test(test_a_long_prompt_is_cropped),
        cmocka_unit_test(test_most_likely_token),
        cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_large_vocabularies),
        cmocka_unit_test(test_corrupt_model_is_rejected),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}

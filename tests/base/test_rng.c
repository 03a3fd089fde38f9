#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

static void assert_philox(struct rng_words counter, uint32_t k0, uint32_t k1, struct rng_words want)
{
    struct rng_words got = rng_block(k0, (enum rng_stream)k1, counter);
    for (int i = 0; i < 4; i++) assert_int_equal(got.w[i], want.w[i]);
}

/* The known answers published by Random123 for philox4x32-10. */
static void test_known_answers(void **state)
{
    (void)state;
    uint32_t f = 0xffffffff;
    assert_philox((struct rng_words){{0, 0, 0, 0}}, 0, 0,
                  (struct rng_words){{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
    assert_philox((struct rng_words){{f, f, f, f}}, f, f,
                  (struct rng_words){{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
    assert_philox((struct rng_words){{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822,
                  0x299f31d0, (struct rng_words){{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

/* Tolerances are five standard errors. */
static void test_uniform(void **state)
{
    (void)state;
    enum { N = 100000 };
    double sum = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        float u = rng_uniform(1, RNG_TEST, 2, (uint64_t)i);
        assert_true(u >= 0 && u < 1);
        sum += u;
        squares += (u - 0.5) * (u - 0.5);
    }
    assert_float_equal(sum / N, 0.5, 5 * sqrt(1.0 / 12 / N));
    assert_float_equal(squares / N, 1.0 / 12, 5 * sqrt(1.0 / 180 / N));
}

static void test_normal(void **state)
{
    (void)state;
    enum { N = 100000 };
    double sum = 0, squares = 0, neighbors = 0, fourth = 0;
    float before = 0;
    for (int i = 0; i < N; i++) {
        float z = rng_normal(1, RNG_TEST, 3, (uint64_t)i);
        sum += z;
        squares += z * z;
        fourth += (double)z * z * z * z;
        neighbors += z * before;
        before = z;
    }
    assert_float_equal(sum / N, 0, 5 / sqrt(N));
    assert_float_equal(squares / N, 1, 5 * sqrt(2.0 / N));
    assert_float_equal(fourth / N, 3, 5 * sqrt(96.0 / N));
    assert_float_equal(neighbors / N, 0, 5 / sqrt(N)); /* also within a block */
}

/* rng_normals equals rng_normal for any first number and count. */
static void test_normals(void **state)
{
    (void)state;
    for (uint64_t first = 0; first < 4; first++)
        for (int n = 1; n < 8; n++) {
            float z[8] = {0};
            rng_normals(1, RNG_TEST, 3, first, n, z);
            for (int k = 0; k < n; k++)
                assert_true(z[k] == rng_normal(1, RNG_TEST, 3, first + (uint64_t)k));
            assert_true(z[n] == 0);
        }
}

static void test_below(void **state)
{
    (void)state;
    enum { N = 70000 };
    int seen[7] = {0};
    for (int i = 0; i < N; i++) {
        int64_t k = rng_below(1, RNG_TEST, 4, (uint64_t)i, 7);
        assert_in_range(k, 0, 6);
        seen[k]++;
    }
    for (int k = 0; k < 7; k++) assert_float_equal(seen[k], N / 7, 5 * sqrt(N / 7));
    assert_int_equal(rng_below(1, RNG_TEST, 4, 0, 1), 0);
    int64_t large = (int64_t)1 << 60;
    bool high = false;
    for (int i = 0; i < 64; i++) high |= rng_below(1, RNG_TEST, 5, (uint64_t)i, large) > large / 2;
    assert_true(high); /* the high words are used too */
}

static void test_all_words_matter(void **state)
{
    (void)state;
    float u = rng_uniform(1, RNG_TEST, 2, 5);
    assert_true(u != rng_uniform(2, RNG_TEST, 2, 5));
    assert_true(u != rng_uniform(1, RNG_INIT, 2, 5));
    assert_true(u != rng_uniform(1, RNG_TEST, 3, 5));
    assert_true(u != rng_uniform(1, RNG_TEST, 2, 6));
    assert_true(u != rng_uniform(1, RNG_TEST, 2, 5 + ((uint64_t)1 << 34)));
    assert_float_equal(u, rng_uniform(1, RNG_TEST, 2, 5), 0);
}

/* The 4x4 sets of dropout_attention cover a matrix, and each byte equals dropout_attention_byte. */
static void test_attention_sets(void **state)
{
    (void)state;
    enum { T = 48 };
    static bool covered[T][T];
    for (uint32_t q16 = 0; q16 < T / 16; q16++)
        for (uint32_t k16 = 0; k16 < T / 16; k16++)
            for (uint32_t set = 0; set < 16; set++) {
                uint32_t a = set / 4, b = set % 4;
                struct rng_words r = dropout_attention(9, 8, 7, 6, q16, k16, a, b);
                const uint32_t row[4] = {2 * a, 2 * a + 1, 2 * a + 8, 2 * a + 9};
                const uint32_t column[4] = {2 * b, 2 * b + 1, 2 * b + 8, 2 * b + 9};
                for (int i = 0; i < 4; i++)
                    for (int j = 0; j < 4; j++) {
                        uint32_t q = 16 * q16 + row[i], k = 16 * k16 + column[j];
                        assert_int_equal(dropout_attention_byte(9, 8, 7, 6, q, k),
                                         r.w[i] >> (8 * j) & 255);
                        assert_false(covered[q][k]);
                        covered[q][k] = true;
                    }
            }
    for (int i = 0; i < T * T; i++) assert_true(covered[i / T][i % T]);
}

static void test_dropout_is_unbiased(void **state)
{
    (void)state;
    enum { N = 1 << 18 };
    const double rates[] = {0.0, 0.1, 0.2, 0.5};
    for (int r = 0; r < COUNT_OF(rates); r++) {
        int threshold = dropout_threshold(rates[r]);
        assert_float_equal(threshold / 256.0, rates[r], 0.5 / 256);
        int64_t kept = 0, kept_attention = 0;
        for (uint32_t call = 0; call < N / 16; call++) {
            struct rng_words w = dropout_pointwise(3, 1, (uint32_t)r, call);
            for (int i = 0; i < 16; i++)
                kept += (int)(w.w[i / 4] >> (8 * (i % 4)) & 255) >= threshold;
        }
        for (uint32_t i = 0; i < N; i++)
            kept_attention +=
                dropout_attention_byte(3, 1, (uint32_t)r, 0, i / 512, i % 512) >= threshold;
        double p = threshold / 256.0, error = 5 * sqrt(p * (1 - p) / N) * dropout_scale(threshold);
        assert_float_equal(kept * dropout_scale(threshold) / N, 1, error + 1e-9);
        assert_float_equal(kept_attention * dropout_scale(threshold) / N, 1, error + 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),  cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_normal),         cmocka_unit_test(test_normals),
        cmocka_unit_test(test_below),          cmocka_unit_test(test_all_words_matter),
        cmocka_unit_test(test_attention_sets), cmocka_unit_test(test_dropout_is_unbiased),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The steps that lab memory finds in curves that are made up: with noise and outliers, of two to
 * four levels, and of none; and what else of it is pure: sizes, permutations, sums. */
#include "lab/memory/memory.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct made {
    int64_t size[MEMORY_SIZES];
    double y[MEMORY_SIZES];
    int n;
};

static double noise(double share)
{
    return 1 + share * (2.0 * rand() / RAND_MAX - 1);
}

/* Latencies of `levels` levels that end at edge[i]; each rises to the next over an octave. */
static struct made make(const int64_t *edge, const double *ns, int levels, double share)
{
    struct made m = {.n = 0};
    m.n = memory_sizes(4 << 10, 256 << 20, 1 << 10, m.size);
    for (int i = 0; i < m.n; i++) {
        int l = 0;
        while (l + 1 < levels && m.size[i] > edge[l]) l++;
        double part = l ? fmin(1, log2((double)m.size[i] / (double)edge[l - 1])) : 1;
        m.y[i] = l ? ns[l - 1] * pow(ns[l] / ns[l - 1], part) : ns[0];
        m.y[i] *= noise(share);
    }
    return m;
}

/* Within a quarter of an octave, the distance of two sizes, and a little. */
static void assert_near(int64_t found, int64_t edge)
{
    double off = fabs(log2((double)found / (double)edge));
    if (off > 0.3) fail_msg("found %lld instead of %lld", (long long)found, (long long)edge);
}

static void test_levels_are_found(void **state)
{
    (void)state;
    static const int64_t edge[] = {32 << 10, 512 << 10, 32 << 20, 0};
    static const double ns[] = {1.2, 3.8, 14, 95};
    srand(1);
    for (int levels = 2; levels <= 4; levels++)
        for (int trial = 0; trial < 50; trial++) {
            struct made m = make(edge, ns, levels, trial < 25 ? 0.02 : 0.07);
            struct memory_plateau p[MEMORY_PLATEAUS];
            assert_int_equal(memory_plateaus(m.size, m.y, m.n, p), levels);
            for (int i = 0; i < levels; i++) {
                if (i + 1 < levels) assert_near(m.size[p[i].last], edge[i]);
                assert_true(fabs(p[i].value / ns[i] - 1) < 0.15);
            }
            assert_int_equal(p[levels - 1].last, m.n - 1);
        }
}

static void test_outliers_and_gaps_change_nothing(void **state)
{
    (void)state;
    static const int64_t edge[] = {128 << 10, 8 << 20, 0};
    static const double ns[] = {20, 150, 400};
    struct memory_plateau p[MEMORY_PLATEAUS];
    struct made m = make(edge, ns, 3, 0.03);
    for (int i = 3; i < m.n; i += 4) m.y[i] *= 6;
    m.y[8] = NAN;
    assert_int_equal(memory_plateaus(m.size, m.y, m.n, p), 3);
    assert_near(m.size[p[0].last], edge[0]);
    assert_near(m.size[p[1].last], edge[1]);
}

/* No steps: constant, rising steadily, empty, a single point. */
static void test_no_levels(void **state)
{
    (void)state;
    static const int64_t none[] = {0};
    static const double ns[] = {5};
    struct memory_plateau p[MEMORY_PLATEAUS];
    struct made m = make(none, ns, 1, 0.07);
    assert_int_equal(memory_plateaus(m.size, m.y, m.n, p), 1);
    assert_int_equal(p[0].first, 0);
    assert_int_equal(p[0].last, m.n - 1);
    for (int i = 0; i < m.n; i++) m.y[i] = (double)m.size[i];
    assert_int_equal(memory_plateaus(m.size, m.y, m.n, p), 0);
    assert_int_equal(memory_plateaus(m.size, m.y, 0, p), 0);
    assert_int_equal(memory_plateaus(m.size, m.y, 1, p), 0);
    for (int i = 0; i < m.n; i++) m.y[i] = NAN;
    assert_int_equal(memory_plateaus(m.size, m.y, m.n, p), 0);
}

/* A cache that no step ends near, and one that is much smaller than the system says. */
static void test_caches_are_matched(void **state)
{
    (void)state;
    static const int64_t edge[] = {32 << 10, 1 << 20, 16 << 20, 0};
    static const double ns[] = {1, 4, 15, 90};
    static const struct memory_cache caches[] = {{"L1", 48 << 10, 1},
                                                 {"L2", 1 << 20, 1},
                                                 {"L3", 32 << 20, 2}},
                                     odd[] = {{"L1", 32 << 10, 1}, {"L2", 160 << 10, 1}};
    struct memory_plateau p[MEMORY_PLATEAUS];
    struct made m = make(edge, ns, 4, 0);
    int n = memory_plateaus(m.size, m.y, m.n, p), match[3];
    memory_match(m.size, p, n, caches, 3, match);
    for (int i = 0; i < 3; i++) assert_int_equal(match[i], i);
    memory_match(m.size, p, n, odd, 2, match);
    assert_int_equal(match[0], 0);
    assert_int_equal(match[1], -1);
}

static void test_sizes(void **state)
{
    (void)state;
    int64_t size[MEMORY_SIZES];
    int n = memory_sizes(4 << 10, 1 << 30, 1 << 10, size);
    assert_int_equal(n, 4 * 18 + 1);
    for (int i = 0; i < n; i++) {
        assert_int_equal(size[i] % (1 << 10), 0);
        if (i) assert_true(size[i] > size[i - 1]);
    }
    assert_int_equal(size[0], 4 << 10);
    assert_int_equal(size[n - 1], 1 << 30);
    assert_int_equal(memory_sizes(4 << 10, 1 << 10, 1 << 10, size), 0);
}

static void test_one_cycle(void **state)
{
    (void)state;
    for (int n = 1; n < 300; n += 37)
        for (int group = 1; group < 400; group += 57) {
            uint32_t next[300], at = 0;
            int crossings = 0;
            memory_cycle(next, n, group, 1);
            for (int i = 1; i < n; i++) {
                crossings += (int)at / group != (int)next[at] / group;
                at = next[at];
                assert_int_not_equal(at, 0);
            }
            assert_int_equal(next[at], 0);
            assert_int_equal(crossings, (n - 1) / group);
        }
}

static void test_sums(void **state)
{
    (void)state;
    static const uint64_t ends[][2] = {
        {0, 0}, {0, 1}, {3, 1000}, {7, 1001}, {1ull << 32, 5000000003}};
    for (int i = 0; i < COUNT_OF(ends) - 1; i++) {
        uint32_t sum = 0;
        for (uint64_t k = ends[i][0]; k < ends[i][1]; k++) sum += memory_word(k);
        assert_int_equal(memory_sum(ends[i][0], ends[i][1]), sum);
    }
    assert_int_equal(memory_sum(0, 5000000003),
                     memory_sum(0, 1ull << 32) + memory_sum(1ull << 32, 5000000003));
}

/* --- caches.h --------------------------------------------------------------------------------- */

static void put(const char *root, int index, const char *name, const char *text)
{
    char command[512];
    snprintf(command, sizeof command,
             "mkdir -p %s/cpu0/cache/index%d && echo %s >%s/cpu0/cache/index%d/%s", root, index,
             text, root, index, name);
    assert_int_equal(system(command), 0);
}

static void test_reported_caches(void **state)
{
    (void)state;
    static const char *const fact[][4] = {{"1", "Data", "48K", "0"},
                                          {"1", "Instruction", "32K", "0"},
                                          {"2", "Unified", "2048K", "0"},
                                          {"3", "Unified", "105M", "0-3,8-9,12"}};
    char root[] = "/tmp/test_caches_XXXXXX", command[64];
    struct cache_fact c[CACHES_MOST];
    assert_non_null(mkdtemp(root));
    assert_int_equal(caches_read(root, c), 0);
    for (int i = 0; i < COUNT_OF(fact); i++) {
        put(root, i, "level", fact[i][0]);
        put(root, i, "type", fact[i][1]);
        put(root, i, "size", fact[i][2]);
        put(root, i, "shared_cpu_list", fact[i][3]);
    }
    assert_int_equal(caches_read(root, c), 3);
    assert_int_equal(c[0].bytes, 48 << 10);
    assert_int_equal(c[1].level, 2);
    assert_int_equal(c[2].bytes, 105 << 20);
    assert_int_equal(c[2].sharing, 7);
    put(root, 3, "size", "nonsense");
    assert_int_equal(caches_read(root, c), 2);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels_are_found),
        cmocka_unit_test(test_outliers_and_gaps_change_nothing),
        cmocka_unit_test(test_no_levels),
        cmocka_unit_test(test_caches_are_matched),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_one_cycle),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_reported_caches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

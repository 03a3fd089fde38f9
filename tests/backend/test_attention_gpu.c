/* Attention's kernel rows for compute capability 9.0 against double precision: lengths near the
 * edges of tiles, head sizes, groups, extreme values, the dropout mask element by element,
 * sequences that must not affect each other, equal bits while other kernels run, and lengths and
 * tensors beyond 32 bits. Memory around inputs, outputs and scratch is NaN, and the NaN around
 * outputs must not change (row_run.h).
 *
 *     test_attention_gpu [--small] [NAME...]   runs the tests named; --small: for an emulated GPU
 *
 * "races" is for compute-sanitizer: few and short launches. Limits apply to errors by norm: of a
 * whole output, and of its worst row. A row whose terms cancel is compared with the norm that terms
 * of random signs would have. */
#include "backend/backend.h"
#include "base/rng.h"

#include "../support/attention_gpu.h"
#include "../support/cases.h"
#include "../support/hand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct attention_gpu gpu;
static bool small;
static int names;
static char **name;

/* --- against double precision --- */

#define SET(b, t, h, kv, d, ...)                                        \
    {                                                                   \
        .B = b, .T = t, .H = h, .KV = kv, .D = d, .causal = __VA_ARGS__ \
    }
#define TRY_SET(...) attention_try(&gpu, &(struct attention_setting)SET(__VA_ARGS__))

/* One head size of each kind of kernel; the last two have narrower tiles and more launches. */
static const int kinds[] = {64, 128, 192, 256};

static void try_tails(void)
{
    static const int all[] = {1,   2,   15,  16,  17,  63,   64,   65,
                              127, 129, 191, 193, 200, 1000, 1023, 1025},
                     few[] = {1, 17, 65, 193};
    for (int i = 0; i < (small ? COUNT_OF(few) : COUNT_OF(all)); i++) {
        int64_t T = small ? few[i] : all[i];
        for (int k = 0; k < (small ? 1 : COUNT_OF(kinds)); k++) {
            TRY_SET(2, T, 3, 3, kinds[k], true);
            if (!small) TRY_SET(2, T, 3, 3, kinds[k], false);
        }
    }
    if (small) TRY_SET(1, 193, 2, 2, 192, true);
    if (small) TRY_SET(1, 193, 2, 2, 256, true);
}

static void try_heads(void)
{
    static const int all[] = {16, 192, 256, 32, 64, 96, 128, 8, 40, 80, 104, 136, 160, 200, 248};
    for (int i = 0; i < (small ? 3 : COUNT_OF(all)); i++) {
        TRY_SET(2, small ? 70 : 333, 2, 2, all[i], true);
        TRY_SET(2, small ? 70 : 333, 2, 2, all[i], false);
    }
}

static void try_groups(void)
{
    if (small) {
        TRY_SET(1, 70, 4, 2, 64, true);
        TRY_SET(1, 193, 4, 2, 192, true);
        TRY_SET(1, 193, 4, 2, 256, true);
        return;
    }
    for (int D = 64; D <= 256; D += 64)
        for (int causal = 0; causal < 2; causal++) {
            TRY_SET(2, 200, 12, 1, D, causal);
            TRY_SET(2, 200, 12, 4, D, causal);
            TRY_SET(1, 200, 32, 8, D, causal);
        }
}

static void try_extremes(void)
{
    for (int of = NUMBERS_SHARP; of <= NUMBERS_SUNK; of++)
        for (int64_t D = 64; D <= (small ? 64 : 256); D += 64) {
            TRY_SET(1, small && of < NUMBERS_SPIKED ? 40 : 330, 1, 1, D, true,
                    .numbers = (enum numbers)of);
            if (small) continue;
            TRY_SET(1, 130, 2, 2, D, true, .numbers = (enum numbers)of);
            TRY_SET(1, 130, 2, 2, D, false, .numbers = (enum numbers)of);
            TRY_SET(2, 700, 2, 1, D, true, .numbers = (enum numbers)of);
        }
}

static void try_dropout(void)
{
    static const int all[] = {64, 256, 192, 16, 32, 96, 128};
    for (int i = 0; i < (small ? 2 : COUNT_OF(all)); i++) {
        TRY_SET(2, small ? 70 : 333, 2, 2, all[i], true, .threshold = 51);
        if (small) continue;
        TRY_SET(1, 333, 4, 2, all[i], false, .threshold = 200);
        TRY_SET(1, 333, 1, 1, all[i], true, .threshold = 128, .numbers = NUMBERS_SPIKED);
    }
}

static void try_long(void)
{
    if (small) return;
    TRY_SET(1, 65536, 2, 2, 64, true, .rows = 12);
    TRY_SET(1, 65536, 2, 2, 128, true, .rows = 12);
    TRY_SET(1, 65536, 2, 2, 256, true, .rows = 12);
}

/* Few blocks and tiles, with items that the kernel has to repeat; then more items than SMs. */
static void try_races(void)
{
    for (int D = 64; D <= (small ? 128 : 256); D += 64) {
        TRY_SET(1, 320, 1, 1, D, true, .numbers = NUMBERS_SPIKED);
        TRY_SET(1, 320, 1, 1, D, true, .threshold = 51);
        TRY_SET(1, 130, small ? 9 : 140, small ? 9 : 140, D, true);
    }
}

/* --- the dropout mask --- */

static void try_masks(void)
{
    static const int all[] = {64, 256, 16, 32, 96, 128, 192};
    int64_t kept = 0, seen = 0, none = 0;
    for (int i = 0; i < (small ? 2 : COUNT_OF(all)); i++) {
        struct attention_setting s = SET(1, small ? 40 : 300, 2, 2, all[i], true, .threshold = 51);
        attention_masks(&gpu, &s, i ? &none : &kept,
                        i ? &none : &seen); /* the same numbers for all */
        s.causal = false, s.threshold = 200;
        if (!small) attention_masks(&gpu, &s, &none, &none);
    }
    if (!seen) return;
    double mean = (double)kept / (double)seen, expected = 205.0 / 256;
    double sigma = sqrt(expected * (1 - expected) / (double)seen);
    printf("    kept %.5f of %lld, %.1f sigma from %.5f\n", mean, (long long)seen,
           fabs(mean - expected) / sigma, expected);
    if (fabs(mean - expected) > 4 * sigma)
        attention_wrong(&gpu, &(struct attention_setting){.threshold = 51}, "the mean");
}

/* --- equal bits --- */

/* Sequence 1 of three has no valid values; the others must have the same bits as alone. */
static void try_leak(void)
{
    static const float worthless[] = {1e4f, NAN};
    for (int i = 0; i < COUNT_OF(worthless); i++)
        for (int64_t D = 64; D <= (small ? 64 : 256); D += 64) {
            struct attention_setting s = SET(3, small ? 70 : 1000, 2, 2, D, true);
            attention_alone(&gpu, &s, worthless[i]);
            s.causal = false;
            if (!small) attention_alone(&gpu, &s, worthless[i]);
        }
}

static void try_determinism(void)
{
    for (int64_t D = 64; D <= (small ? 64 : 256); D += 64) {
        struct attention_setting s =
            SET(small ? 1 : 4, small ? 200 : 1000, 4, 4, D, true, .numbers = NUMBERS_SPIKED);
        attention_repeats(&gpu, &s, small ? 3 : 50);
        s.threshold = 51, s.numbers = NUMBERS_NORMAL, s.T = small ? 40 : 1000;
        if (!small) attention_repeats(&gpu, &s, 50);
    }
}

/* More than 2^31 elements of q, k, v: only the first and the last sequence are not zero. */
static void try_large(void)
{
    struct attention_setting s = SET(138, 4096, 20, 20, 64, true);
    if (small) s.B = 3, s.T = 70, s.H = s.KV = 2;
    attention_alone(&gpu, &s, 0);
}

/* --- all tests --- */

static const struct {
    const char *name;
    void (*run)(void);
    bool on_request; /* runs only if it is named */
} tests[] = {
    {"tails", try_tails, false},     {"heads", try_heads, false},
    {"groups", try_groups, false},   {"extremes", try_extremes, false},
    {"dropout", try_dropout, false}, {"masks", try_masks, false},
    {"leak", try_leak, false},       {"determinism", try_determinism, false},
    {"long", try_long, false},       {"large", try_large, false},
    {"races", try_races, true},
};

static bool wanted(int i)
{
    for (int n = 0; n < names; n++)
        if (!strcmp(name[n], tests[i].name)) return true;
    return names == 0 && !tests[i].on_request;
}

/* First all kernels that will run are listed, so that they are compiled together. */
static void test_all(void **state)
{
    (void)state;
    int ran = 0;
    if (!attention_gpu_open(&gpu)) {
        SKIP("there is no GPU of compute capability 9.0");
    }
    for (int turn = 0; turn < 2; turn++) {
        gpu.announcing = turn == 0;
        for (int i = 0; i < COUNT_OF(tests); i++) {
            if (!wanted(i)) continue;
            gpu.test = tests[i].name;
            tests[i].run();
            if (turn) attention_report(&gpu);
            ran += turn;
        }
    }
    attention_gpu_close(&gpu);
    printf("%d tests, %d failures\n", ran, gpu.failures);
    assert_true(ran > 0);
    assert_int_equal(gpu.failures, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest all[] = {cmocka_unit_test(test_all)};
    setvbuf(stdout, NULL, _IOLBF, 0);
    small = argc > 1 && !strcmp(argv[1], "--small");
    name = argv + 1 + small, names = argc - 1 - small;
    return cmocka_run_group_tests(all, NULL, NULL);
}

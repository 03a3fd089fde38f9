/* Flash attention against plain loops in double that store the matrix of scores.
 * test: slow release; test_ops runs the same kernels with sanitizers */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

#include "../support/attention.h"
#include "backend/cpu/vector/tables.h"
#include "base/rng.h"

#include <cmocka.h>

enum { FORWARD, GRAD, CACHED };

struct isa {
    const char *name;
    const struct kernel *rows[3];
};

#define ISA_ROWS(isa)                                                                            \
    {                                                                                            \
#isa,                                                                                    \
        {                                                                                        \
            attention_rows_f32_##isa, attention_grad_rows_f32_##isa, attention_cached_rows_##isa \
        }                                                                                        \
    }
static const struct isa isas[] = {
#if defined(__x86_64__)
    ISA_ROWS(avx512),
    ISA_ROWS(avx2),
    ISA_ROWS(sse2),
#elif defined(__aarch64__)
    ISA_ROWS(neon),
#endif
    ISA_ROWS(plain),
};

static bool available(const struct isa *isa)
{
#if defined(__x86_64__)
    if (!strcmp(isa->name, "avx512")) return __builtin_cpu_supports("avx512vl");
    if (!strcmp(isa->name, "avx2")) return __builtin_cpu_supports("avx2");
#endif
    return isa->name[0] != '\0';
}

/* The expected results, and the buffers that a kernel writes. */
struct problem {
    struct attention p;
    float *y, *lse, *dqkv;
};

static float *poisoned(struct arena *a, int64_t n)
{
    float *x = ARENA_NEW(a, float, n);
    memset(x, 0xff, (size_t)n * sizeof(float));
    return x;
}

/* Fills all but the shapes. */
static void problem_init(struct problem *t)
{
    struct attention *p = &t->p;
    int64_t n = attention_elements(p);
    attention_draw(p);
    attention_solve(p);
    t->y = poisoned(&p->arena, n);
    t->dqkv = poisoned(&p->arena, attention_packed(p));
    t->lse = poisoned(&p->arena, p->B * p->H * p->T);
}

static struct kernel_call call_of(struct problem *t, int what)
{
    struct attention *p = &t->p;
    int64_t C = p->H * p->D;
    struct type y = type_3d(DT_F32, p->B, p->T, C),
                qkv = type_3d(DT_F32, p->B, p->T, attention_row(p));
    struct type lse = type_3d(DT_F32, p->B, p->H, p->T), step = type_scalar(DT_I32);
    if (what == FORWARD)
        return (struct kernel_call){
            .attr = &p->attr,
            .n_in = 2,
            .n_out = 2,
            .in_type = {qkv, step},
            .out_type = {y, lse},
            .in = {p->qkv, &p->step},
            .out = {t->y, t->lse},
        };
    return (struct kernel_call){
        .attr = &p->attr,
        .n_in = 5,
        .n_out = 1,
        .in_type = {y, qkv, y, lse, step},
        .out_type = {qkv},
        .in = {p->dy, p->qkv, t->y, t->lse, &p->step},
        .out = {t->dqkv},
    };
}

static void run_row(const struct kernel *k, struct kernel_call *call, struct arena *a)
{
    assert_true(kernel_fits(k, call));
    if (k->scratch_bytes) call->scratch = poisoned(a, k->scratch_bytes(k, call) / 4);
    if (k->prepare) assert_int_equal(k->prepare(k, call), ST_OK);
    assert_int_equal(k->run(call), ST_OK);
    if (k->release) k->release(call);
}

static void expect(const struct attention *p, const struct isa *isa, const char *what,
                   const float *got, const double *want, int64_t n)
{
    double error = attention_distance(got, want, n);
    if (error > 2e-6)
        fail_msg("%s %s: B %d H %d KV %d T %d D %d causal %d threshold %d: error %.2e", isa->name,
                 what, (int)p->B, (int)p->H, (int)p->KV, (int)p->T, (int)p->D,
                 p->attr.attention.causal, p->attr.attention.drop.threshold, error);
}

static void try_heads(int64_t H, int64_t KV, int64_t T, int64_t D, bool causal, double drop)
{
    struct problem t = {.p = {.B = 2, .H = H, .KV = KV, .T = T, .D = D, .step = 5}};
    struct attention *p = &t.p;
    p->attr.attention.causal = causal;
    p->attr.attention.drop = (struct dropout){DROPOUT_ATTENTION, dropout_threshold(drop), 11, 3};
    problem_init(&t);
    int64_t n = attention_elements(p);
    for (int i = 0; i < COUNT_OF(isas); i++) {
        if (!available(&isas[i])) continue;
        struct kernel_call forward = call_of(&t, FORWARD), grad = call_of(&t, GRAD);
        run_row(isas[i].rows[FORWARD], &forward, &p->arena);
        expect(p, &isas[i], "y", t.y, p->y, n);
        expect(p, &isas[i], "lse", t.lse, p->lse, p->B * p->H * T);
        run_row(isas[i].rows[GRAD], &grad, &p->arena);
        expect(p, &isas[i], "dqkv", t.dqkv, p->dqkv, attention_packed(p));
        memset(t.y, 0xff, (size_t)n * sizeof(float));
        memset(t.dqkv, 0xff, (size_t)attention_packed(p) * sizeof(float));
    }
    arena_release(&p->arena);
}

static void try_one(int64_t T, int64_t D, bool causal, double drop)
{
    try_heads(2, 0, T, D, causal, drop);
}

static void test_against_loops(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 7, 63, 64, 65, 130}, sizes[] = {16, 24, 32, 64, 80, 128};
    for (int t = 0; t < COUNT_OF(lengths); t++)
        for (int d = 0; d < COUNT_OF(sizes); d++)
            for (int causal = 0; causal < 2; causal++) {
                try_one(lengths[t], sizes[d], causal, 0);
                try_one(lengths[t], sizes[d], causal, 0.2);
            }
    try_one(20, 1, true, 0.5);
    try_one(20, 5, true, 0);
    try_one(260, 10, true, 0.1);
}

/* Two, three and all query heads share keys and values. */
static void test_groups(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 63, 65, 130}, sizes[] = {16, 24, 128};
    for (int t = 0; t < COUNT_OF(lengths); t++)
        for (int d = 0; d < COUNT_OF(sizes); d++)
            for (int causal = 0; causal < 2; causal++) {
                try_heads(4, 2, lengths[t], sizes[d], causal, causal ? 0.2 : 0);
                try_heads(6, 2, lengths[t], sizes[d], causal, causal ? 0 : 0.2);
                try_heads(3, 1, lengths[t], sizes[d], causal, 0.2);
            }
}

/* With few heads and many threads the gradient is divided differently: the bits must be the
 * same. */
static void any_number_of_threads(int64_t H, int64_t KV)
{
    int before = omp_get_max_threads();
    for (int i = 0; i < COUNT_OF(isas); i++) {
        if (!available(&isas[i])) continue;
        for (int causal = 0; causal < 2; causal++) {
            struct problem t = {.p = {.B = 1, .H = H, .KV = KV, .T = 200, .D = 40, .step = 9}};
            struct attention *p = &t.p;
            p->attr.attention.causal = causal;
            p->attr.attention.drop = (struct dropout){DROPOUT_ATTENTION, 51, 1, 2};
            problem_init(&t);
            int64_t n = attention_elements(p);
            float *first_y = NULL, *first_dqkv = NULL;
            for (int threads = 1; threads <= 4; threads++) {
                omp_set_num_threads(threads);
                t.y = poisoned(&p->arena, n);
                t.dqkv = poisoned(&p->arena, attention_packed(p));
                struct kernel_call forward = call_of(&t, FORWARD), grad = call_of(&t, GRAD);
                run_row(isas[i].rows[FORWARD], &forward, &p->arena);
                run_row(isas[i].rows[GRAD], &grad, &p->arena);
                if (threads == 1) {
                    first_y = t.y;
                    first_dqkv = t.dqkv;
                }
                assert_memory_equal(t.y, first_y, (size_t)n * sizeof(float));
                assert_memory_equal(t.dqkv, first_dqkv,
                                    (size_t)attention_packed(p) * sizeof(float));
            }
            arena_release(&p->arena);
        }
    }
    omp_set_num_threads(before);
}

static void test_any_number_of_threads(void **state)
{
    (void)state;
    any_number_of_threads(1, 1);
    any_number_of_threads(3, 1);
    any_number_of_threads(4, 2);
}

/* Attention over the cache, one position after another, must give the rows of full attention and
 * write nothing else. */
static void cached_rows(const struct isa *isa, int64_t H, int64_t KV, int64_t T, int64_t D)
{
    enum { UNUSED = 3 }; /* positions that are never written */
    struct problem t = {.p = {.B = 2, .H = H, .KV = KV, .T = T, .D = D}};
    struct attention *p = &t.p;
    p->attr.attention.causal = true;
    problem_init(&t);
    int64_t C = H * D, row = attention_row(p), wide = (row - C) / 2, most = T + UNUSED;
    float *cache = poisoned(&p->arena, 2 * p->B * most * wide);
    float *y = ARENA_NEW(&p->arena, float, p->B *C);
    float *qkv = ARENA_NEW(&p->arena, float, p->B *row);
    for (int32_t now = 0; now < T; now++) {
        for (int64_t b = 0; b < p->B; b++)
            memcpy(qkv + b * row, p->qkv + (b * T + now) * row, (size_t)row * sizeof(float));
        memset(y, 0xff, (size_t)(p->B * C) * sizeof(float));
        struct type cache_type = type_4d(DT_F32, 2, p->B, most, wide);
        struct kernel_call call = {
            .attr = &p->attr,
            .n_in = 3,
            .n_out = 2,
            .in_type = {cache_type, type_3d(DT_F32, p->B, 1, row), type_scalar(DT_I32)},
            .out_type = {cache_type, type_3d(DT_F32, p->B, 1, C)},
            .in = {cache, qkv, &now},
            .out = {cache, y},
        };
        run_row(isa->rows[CACHED], &call, &p->arena);
        for (int64_t b = 0; b < p->B; b++)
            expect(p, isa, "cached y", y + b * C, p->y + (b * T + now) * C, C);
    }
    for (int64_t part = 0; part < 2 * p->B; part++) {
        const float *rest = cache + (part * most + T) * wide;
        for (int64_t i = 0; i < UNUSED * wide; i++) assert_true(isnan(rest[i]));
    }
    arena_release(&p->arena);
}

static void test_cached_equals_whole(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT_OF(isas); i++) {
        if (!available(&isas[i])) continue;
        cached_rows(&isas[i], 2, 2, 130, 24);
        cached_rows(&isas[i], 2, 2, 20, 64);
        cached_rows(&isas[i], 6, 2, 70, 24);
        cached_rows(&isas[i], 3, 1, 20, 64);
    }
}

/* Large scores must not overflow, and NaN must propagate. */
static void test_extremes(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT_OF(isas); i++) {
        if (!available(&isas[i])) continue;
        struct problem t = {.p = {.B = 1, .H = 1, .T = 70, .D = 16}};
        struct attention *p = &t.p;
        p->attr.attention.causal = true;
        problem_init(&t);
        int64_t n = attention_elements(p);
        for (int64_t j = 0; j < 3 * n; j++) p->qkv[j] *= 100.0f;
        struct kernel_call forward = call_of(&t, FORWARD), grad = call_of(&t, GRAD);
        run_row(isas[i].rows[FORWARD], &forward, &p->arena);
        run_row(isas[i].rows[GRAD], &grad, &p->arena);
        for (int64_t j = 0; j < n; j++) assert_true(isfinite(t.y[j]));
        for (int64_t j = 0; j < 3 * n; j++) assert_true(isfinite(t.dqkv[j]));
        p->qkv[40 * 48 + 3] = NAN; /* a query: only its row becomes NaN */
        run_row(isas[i].rows[FORWARD], &forward, &p->arena);
        for (int64_t j = 0; j < n; j++) assert_true(!isfinite(t.y[j]) == (j / 16 == 40));
        arena_release(&p->arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_loops),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_any_number_of_threads),
        cmocka_unit_test(test_cached_equals_whole),
        cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Flash attention of bf16 activations against loops in double over the same numbers.
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
#include "backend/backend.h"
#include "backend/kernel.h"
#include "base/rng.h"

#include <cmocka.h>

static uint16_t *to_bf16(struct arena *a, const float *x, int64_t n)
{
    uint16_t *to = ARENA_NEW(a, uint16_t, n);
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        to[i] = (uint16_t)(bits >> 16);
        if (bits & 0xffff) fail_msg("%d of %d: %a", (int)i, (int)n, (double)x[i]);
    }
    return to;
}

static float to_float(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Operands and results of one kernel row. */
struct trial {
    struct attention p;
    uint16_t *qkv, *dy, *exact_y; /* the gradient uses y and lse of the loops */
    float *exact_lse;
    uint16_t *y, *dqkv;
    float *lse;
    const char *row;
};

static void *poisoned(struct arena *a, int64_t bytes)
{
    void *x = arena_alloc(a, bytes);
    memset(x, 0xff, (size_t)bytes);
    return x;
}

static void trial_draw(struct trial *t, int64_t B, int64_t H, int64_t KV, int64_t T, int64_t D,
                       bool causal, double drop)
{
    *t = (struct trial){.p = {.B = B, .H = H, .KV = KV, .T = T, .D = D, .step = 5}};
    t->p.narrow = true;
    t->p.attr.attention.causal = causal;
    t->p.attr.attention.drop = (struct dropout){DROPOUT_ATTENTION, dropout_threshold(drop), 11, 3};
    attention_draw(&t->p);
}

static void trial_solve(struct trial *t)
{
    struct attention *p = &t->p;
    int64_t n = attention_elements(p), rows = p->B * p->H * p->T;
    attention_solve(p);
    t->qkv = to_bf16(&p->arena, p->qkv, attention_packed(p));
    t->dy = to_bf16(&p->arena, p->dy, n);
    float *y = ARENA_NEW(&p->arena, float, n);
    for (int64_t i = 0; i < n; i++) y[i] = (float)attention_rounded(p->y[i]);
    t->exact_y = to_bf16(&p->arena, y, n);
    t->exact_lse = ARENA_NEW(&p->arena, float, rows);
    for (int64_t i = 0; i < rows; i++) t->exact_lse[i] = (float)p->lse[i];
}

static void trial_init(struct trial *t, int64_t B, int64_t H, int64_t KV, int64_t T, int64_t D,
                       bool causal, double drop)
{
    trial_draw(t, B, H, KV, T, D, causal, drop);
    trial_solve(t);
}

static void poison(struct trial *t)
{
    int64_t n = attention_elements(&t->p);
    t->y = poisoned(&t->p.arena, 2 * n);
    t->dqkv = poisoned(&t->p.arena, 2 * attention_packed(&t->p));
    t->lse = poisoned(&t->p.arena, 4 * t->p.B * t->p.H * t->p.T);
}

static struct kernel_call call_of(struct trial *t, enum op op)
{
    const struct attention *p = &t->p;
    int64_t C = p->H * p->D;
    struct type y = type_3d(DT_BF16, p->B, p->T, C),
                qkv = type_3d(DT_BF16, p->B, p->T, attention_row(p));
    struct type lse = type_3d(DT_F32, p->B, p->H, p->T), step = type_scalar(DT_I32);
    if (op == OP_ATTENTION)
        return (struct kernel_call){
            .attr = &p->attr,
            .n_in = 2,
            .n_out = 2,
            .in_type = {qkv, step},
            .out_type = {y, lse},
            .in = {t->qkv, &t->p.step},
            .out = {t->y, t->lse},
        };
    return (struct kernel_call){
        .attr = &p->attr,
        .n_in = 5,
        .n_out = 1,
        .in_type = {y, qkv, y, lse, step},
        .out_type = {qkv},
        .in = {t->dy, t->qkv, t->exact_y, t->exact_lse, &t->p.step},
        .out = {t->dqkv},
    };
}

/* Runs row i of this CPU, forward and backward. False: there is no such row. */
static bool run_row(struct trial *t, int i)
{
    static const enum op ops[] = {OP_ATTENTION, OP_ATTENTION_GRAD};
    poison(t);
    for (int k = 0; k < COUNT_OF(ops); k++) {
        struct kernel_call call = call_of(t, ops[k]);
        const struct kernel *row = backend_find("cpu")->kernels.find((int)ops[k], &call, i);
        if (!row) return false;
        t->row = row->variant;
        if (row->scratch_bytes)
            call.scratch = poisoned(&t->p.arena, row->scratch_bytes(row, &call));
        if (row->prepare) assert_int_equal(row->prepare(row, &call), ST_OK);
        assert_int_equal(row->run(&call), ST_OK);
        if (row->release) row->release(&call);
    }
    return true;
}

static double size(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

/* The norm of the error of rounding these numbers to bf16. */
static double rounding_error(const double *x, int64_t n)
{
    double far = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = attention_rounded(x[i]) - x[i];
        far += d * d;
    }
    return sqrt(far);
}

/* PyTorch rounds results to bf16 from sums in fp32. Its attention has 1.8 to 2.6 times the error
 * of that rounding, because probabilities are rounded, too (reference/bf16_error/TABLE.md).
 * Allowed here is twice the rounding error of each result, plus fp32's error relative to all
 * results together, because some results should be 0. */
static void expect(const struct trial *t, const char *what, const float *got, const double *want,
                   int64_t n, double all)
{
    const struct attention *p = &t->p;
    double far = attention_distance(got, want, n) * size(want, n),
           may = 2 * rounding_error(want, n);
    if (!(far <= may + 4e-6 * all))
        fail_msg("%s %s: B %d H %d KV %d T %d D %d causal %d threshold %d: error %.2e of %.2e, "
                 "allowed %.2e",
                 t->row, what, (int)p->B, (int)p->H, (int)p->KV, (int)p->T, (int)p->D,
                 p->attr.attention.causal, p->attr.attention.drop.threshold, far, size(want, n),
                 may);
}

/* Checks y, each of dq, dk, dv, and the log-sum-exp, which is fp32. */
static void expect_all(struct trial *t)
{
    static const char *const part[] = {"dq", "dk", "dv"};
    const struct attention *p = &t->p;
    int64_t n = attention_elements(p), C = p->H * p->D, row = attention_row(p);
    float *got = ARENA_NEW(&t->p.arena, float, n);
    double *want = ARENA_NEW(&t->p.arena, double, n);
    for (int64_t i = 0; i < n; i++) got[i] = to_float(t->y[i]);
    expect(t, "y", got, p->y, n, size(p->y, n));
    for (int k = 0; k < COUNT_OF(part); k++) {
        int64_t columns = k ? (row - C) / 2 : C, first = k < 2 ? k * C : row - columns;
        for (int64_t i = 0; i < p->B * p->T * columns; i++) {
            int64_t at = i / columns * row + first + i % columns;
            got[i] = to_float(t->dqkv[at]);
            want[i] = p->dqkv[at];
        }
        expect(t, part[k], got, want, p->B * p->T * columns, size(p->dqkv, attention_packed(p)));
    }
    /* What matters is the error of the exponential of the log-sum-exp, so its absolute error. */
    int64_t rows = p->B * p->H * p->T;
    double far = attention_distance(t->lse, p->lse, rows) * size(p->lse, rows);
    if (!(far < 2e-6 * (size(p->lse, rows) + sqrt((double)rows))))
        fail_msg("%s lse: T %d D %d: error %.2e", t->row, (int)p->T, (int)p->D, far);
}

static void try_heads(int64_t H, int64_t KV, int64_t T, int64_t D, bool causal, double drop)
{
    struct trial t;
    trial_init(&t, T < 100 ? 2 : 1, H, KV, T, D, causal, drop);
    int64_t n = attention_elements(&t.p);
    int i = 0;
    for (; run_row(&t, i); i++) {
        uint16_t *y = t.y, *dqkv = t.dqkv;
        expect_all(&t);
        run_row(&t, i);
        assert_memory_equal(y, t.y, (size_t)n * 2);
        assert_memory_equal(dqkv, t.dqkv, (size_t)attention_packed(&t.p) * 2);
    }
    assert_true(i > 0);
    arena_release(&t.p.arena);
}

static void try_one(int64_t H, int64_t T, int64_t D, bool causal, double drop)
{
    try_heads(H, 0, T, D, causal, drop);
}

static void test_against_loops(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 7, 65, 100, 257}, sizes[] = {8, 24, 40, 64, 80, 128};
    for (int t = 0; t < COUNT_OF(lengths); t++)
        for (int d = 0; d < COUNT_OF(sizes); d++)
            for (int causal = 0; causal < 2; causal++) {
                bool once = lengths[t] >= 100; /* long sequences take time: only one of the two */
                if (!once || d % 2 != causal)
                    try_one(t % 2 ? 3 : 1, lengths[t], sizes[d], causal, 0);
                if (!once || d % 2 == causal)
                    try_one(t % 2 ? 1 : 3, lengths[t], sizes[d], causal, 0.2);
            }
    try_one(2, 64, 32, true, 0);
    try_one(2, 32, 16, false, 0);
    try_one(1, 20, 1, true, 0.5);
    try_one(3, 33, 5, true, 0);
    try_one(1, 150, 200, true, 0.1);
    try_one(1, 600, 16, true, 0.1);
}

/* Two, three and all query heads share keys and values. */
static void test_groups(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 65, 257}, sizes[] = {24, 64};
    for (int t = 0; t < COUNT_OF(lengths); t++)
        for (int d = 0; d < COUNT_OF(sizes); d++)
            for (int causal = 0; causal < 2; causal++) {
                try_heads(4, 2, lengths[t], sizes[d], causal, causal ? 0.2 : 0);
                try_heads(3, 1, lengths[t], sizes[d], causal, causal ? 0 : 0.2);
            }
    try_heads(6, 2, 150, 128, true, 0.1);
}

/* Scores grow along the keys: earlier sums must be rescaled. */
static void test_growing_scores(void **state)
{
    (void)state;
    enum { T = 300, D = 24, LARGER = 150 };
    for (int causal = 0; causal < 2; causal++) {
        struct trial t;
        trial_draw(&t, 1, 1, 1, T, D, causal, 0);
        for (int64_t k = LARGER; k < T; k++)
            for (int64_t d = 0; d < D; d++) t.p.qkv[(k * 3 + 1) * D + d] *= 4;
        trial_solve(&t);
        for (int i = 0; run_row(&t, i); i++) expect_all(&t);
        arena_release(&t.p.arena);
    }
}

/* With few heads and many threads the work is divided differently: the bits must be the same. */
static void any_number_of_threads(int64_t H, int64_t KV)
{
    int before = omp_get_max_threads();
    for (int causal = 0; causal < 2; causal++) {
        struct trial t;
        trial_init(&t, 1, H, KV, 400, 40, causal, 0.2);
        int64_t n = attention_elements(&t.p);
        omp_set_num_threads(1);
        for (int i = 0; run_row(&t, i); i++) {
            uint16_t *y = t.y, *dqkv = t.dqkv;
            for (int threads = 2; threads <= 9; threads += 3) {
                omp_set_num_threads(threads);
                run_row(&t, i);
                assert_memory_equal(y, t.y, (size_t)n * 2);
                assert_memory_equal(dqkv, t.dqkv, (size_t)attention_packed(&t.p) * 2);
            }
            omp_set_num_threads(1);
        }
        arena_release(&t.p.arena);
    }
    omp_set_num_threads(before);
}

static void test_any_number_of_threads(void **state)
{
    (void)state;
    any_number_of_threads(1, 1);
    any_number_of_threads(4, 2);
}

/* Large scores must not overflow, and NaN must propagate. */
static void test_extremes(void **state)
{
    (void)state;
    enum { T = 300, D = 16, ROW = 40 };
    struct trial t;
    trial_init(&t, 1, 1, 1, T, D, true, 0);
    for (int64_t i = 0; i < 3 * T * D; i++) t.p.qkv[i] *= 64;
    t.qkv = to_bf16(&t.p.arena, t.p.qkv, 3 * T * D);
    /* Only the magnitude of exact_y matters here, but exact_lse must be that of these scores. */
    uint16_t number = t.qkv[ROW * 3 * D + 3];
    for (int i = 0; run_row(&t, i); i++) {
        memcpy(t.exact_lse, t.lse, T * sizeof(float));
        run_row(&t, i);
        for (int64_t k = 0; k < T * D; k++) assert_true(isfinite(to_float(t.y[k])));
        for (int64_t k = 0; k < 3 * T * D; k++) assert_true(isfinite(to_float(t.dqkv[k])));
        t.qkv[ROW * 3 * D + 3] = 0x7fc0; /* a query: only its row becomes NaN */
        run_row(&t, i);
        for (int64_t k = 0; k < T * D; k++)
            assert_true(!isfinite(to_float(t.y[k])) == (k / D == ROW));
        t.qkv[ROW * 3 * D + 3] = number;
    }
    arena_release(&t.p.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_loops),  cmocka_unit_test(test_groups),
        cmocka_unit_test(test_growing_scores), cmocka_unit_test(test_any_number_of_threads),
        cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

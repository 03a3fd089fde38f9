/* Attention in double precision on a few rows: matches the reference, detects wrong kernels. */
#include "check/attention_exact.h"

#include "backend/backend.h"
#include "backend/kernel.h"
#include "base/arena.h"
#include "base/rng.h"
#include "check/check.h"
#include "check/reference.h"
#include "graph/build.h"
#include "plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static struct arena arena;

static int release(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static double *draw(int64_t n, uint32_t sequence)
{
    double *x = ARENA_NEW(&arena, double, n);
    for (int64_t i = 0; i < n; i++) x[i] = rng_normal(7, RNG_TEST, sequence, (uint64_t)i);
    return x;
}

/* Sets dy to zero except the chosen rows of the chosen heads. */
static double *only_chosen(const struct attention_exact *e, const double *dy)
{
    const struct attention_shape *s = &e->shape;
    double *to = ARENA_NEW(&arena, double, s->B * s->T * s->H * s->D);
    for (int i = 0; i < e->heads; i++)
        for (int r = 0; r < e->rows; r++)
            for (int64_t d = 0; d < s->D; d++) {
                int64_t row = e->head[i].b * s->T + e->row[r];
                int64_t at = (row * s->H + e->head[i].h) * s->D + d;
                to[at] = dy[at];
            }
    return to;
}

static void run_reference(const struct attention_shape *s, double *qkv, double *dy, double *y,
                          double *dqkv)
{
    union attr attr = {.attention = {.heads = (int)s->H,
                                     .kv_heads = s->KV == s->H ? 0 : (int)s->KV,
                                     .causal = s->causal}};
    struct type packed = type_3d(DT_F64, s->B, s->T, (s->H + 2 * s->KV) * s->D);
    struct type out = type_3d(DT_F64, s->B, s->T, s->H * s->D);
    struct type lse = type_3d(DT_F64, s->B, s->H, s->T), step = type_scalar(DT_I32);
    int32_t zero = 0;
    double *sums = ARENA_NEW(&arena, double, s->B * s->H * s->T);
    struct kernel_call forward = {.attr = &attr,
                                  .n_in = 2,
                                  .n_out = 2,
                                  .in_type = {packed, step},
                                  .out_type = {out, lse},
                                  .in = {qkv, &zero},
                                  .out = {y, sums}};
    struct kernel_call backward = {.attr = &attr,
                                   .n_in = 5,
                                   .n_out = 1,
                                   .in_type = {out, packed, out, lse, step},
                                   .out_type = {packed},
                                   .in = {dy, qkv, y, sums, &zero},
                                   .out = {dqkv}};
    assert_int_equal(reference_run(OP_ATTENTION, &forward, &arena), ST_OK);
    assert_int_equal(reference_run(OP_ATTENTION_GRAD, &backward, &arena), ST_OK);
}

static void same(double a, double b)
{
    if (!(a - b < 1e-12 && b - a < 1e-12)) fail_msg("%.17g and %.17g", a, b);
}

static void check_head(const struct attention_exact *e, const struct exact_head *h, const double *y,
                       const double *dqkv)
{
    const struct attention_shape *s = &e->shape;
    int64_t kv = h->h / (s->H / s->KV), columns = (s->H + 2 * s->KV) * s->D;
    const int64_t begin[] = {h->h * s->D, (s->H + kv) * s->D, (s->H + s->KV + kv) * s->D};
    for (int64_t d = 0; d < s->D; d++) {
        for (int r = 0; r < e->rows; r++)
            same(h->y[r * s->D + d], y[((h->b * s->T + e->row[r]) * s->H + h->h) * s->D + d]);
        for (int part = 0; part < 3; part++)
            for (int64_t t = 0; t < s->T; t++)
                same(h->dqkv[(part * s->T + t) * s->D + d],
                     dqkv[(h->b * s->T + t) * columns + begin[part] + d]);
    }
}

static void test_it_matches_the_reference(void **state)
{
    (void)state;
    static const struct {
        struct attention_shape shape;
        int heads, rows;
    } cases[] = {
        {{DT_F64, 2, 24, 4, 4, 8, true}, 2, 24},  {{DT_F64, 2, 24, 4, 2, 8, false}, 2, 24},
        {{DT_F64, 1, 100, 2, 1, 5, true}, 1, 64}, {{DT_F64, 1, 100, 3, 3, 4, false}, 2, 64},
        {{DT_F64, 1, 1, 1, 1, 3, true}, 1, 1},
    };
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        const struct attention_shape *s = &cases[i].shape;
        int64_t packed = s->B * s->T * (s->H + 2 * s->KV) * s->D, out = s->B * s->T * s->H * s->D;
        double *qkv = draw(packed, 0), *dy = draw(out, 1);
        double *y = ARENA_NEW(&arena, double, out), *dqkv = ARENA_NEW(&arena, double, packed);
        struct attention_exact e;
        assert_int_equal(attention_exact_make(&e, s, qkv, dy, &arena), ST_OK);
        assert_int_equal(e.heads, cases[i].heads);
        assert_int_equal(e.rows, cases[i].rows);
        assert_true(e.row[0] >= 0 && e.row[e.rows - 1] == s->T - 1);
        for (int r = 1; r < e.rows; r++) assert_true(e.row[r] > e.row[r - 1]);
        run_reference(s, qkv, only_chosen(&e, dy), y, dqkv);
        for (int h = 0; h < e.heads; h++) check_head(&e, &e.head[h], y, dqkv);
    }
}

/* A long sequence uses a limited number of rows, spread over the sequence. */
static void test_rows_of_long_sequences(void **state)
{
    (void)state;
    struct attention_shape s = {DT_F32, 1, 16384, 1, 1, 64, true};
    float *x = ARENA_NEW(&arena, float, s.T * 3 * s.D), *dy = ARENA_NEW(&arena, float, s.T *s.D);
    struct attention_exact e;
    assert_int_equal(attention_exact_make(&e, &s, x, dy, &arena), ST_OK);
    assert_int_equal(e.rows, 32);
    assert_true(e.row[31] == 16383);
    assert_true(e.row[0] > 128); /* else its y would dominate the norm */
    for (int i = 0; i < 31; i++) assert_true(e.row[i] % 128 != e.row[i + 1] % 128);
    s.D = 1024;
    s.T = 8192;
    x = ARENA_NEW(&arena, float, s.T * 3 * s.D), dy = ARENA_NEW(&arena, float, s.T *s.D);
    assert_int_equal(attention_exact_make(&e, &s, x, dy, &arena), ST_OK);
    assert_int_equal(e.rows, 8);
}

/* Errors are small if the plan's mask equals that of the shape, and large if not. */
static void find_errors(bool mask, bool shape_mask, double *ret_y, double *ret_dqkv)
{
    struct attention_shape s = {DT_F32, 2, 40, 2, 2, 8, shape_mask};
    const struct backend *b = backend_find("cpu");
    int64_t packed = s.B * s.T * 3 * s.H * s.D, out = s.B * s.T * s.H * s.D;
    float *qkv = ARENA_NEW(&arena, float, packed), *dy = ARENA_NEW(&arena, float, out);
    for (int64_t i = 0; i < packed; i++) qkv[i] = rng_normal(7, RNG_TEST, 0, (uint64_t)i);
    for (int64_t i = 0; i < out; i++) dy[i] = rng_normal(7, RNG_TEST, 1, (uint64_t)i);
    struct graph g;
    graph_init(&g, &arena);
    value x = g_input(&g, "qkv", type_3d(DT_F32, s.B, s.T, 3 * s.H * s.D));
    value step = g_input(&g, "step", type_scalar(DT_I32)), dx = {0};
    value y = g_attention(&g, x, step, (int)s.H, 0, mask, (struct dropout){0});
    graph_output(&g, "y", y);
    value d = g_input(&g, "dy", *graph_type(&g, y));
    assert_int_equal(graph_differentiate(&g, y, d, 1, &x, &dx), ST_OK);
    graph_output(&g, "dqkv", dx);
    void *context;
    struct plan p;
    assert_int_equal(b->open(0, &context), ST_OK);
    const struct target target = {.backend = b};
    assert_int_equal(plan_build(&p, &g, &target, NULL, &arena), ST_OK);
    struct storage_blocks blocks = {.backend = b, .context = context};
    storage_reserve(&blocks, &p);
    assert_int_equal(storage_alloc(&blocks), ST_OK);
    assert_int_equal(plan_bind(&p, &blocks), ST_OK);
    memcpy(plan_input(&p, "qkv"), qkv, (size_t)packed * sizeof *qkv);
    memset(plan_input(&p, "step"), 0, sizeof(int32_t));
    struct attention_exact e;
    assert_int_equal(attention_exact_make(&e, &s, qkv, dy, &arena), ST_OK);
    assert_int_equal(attention_exact_error(&e, &p, ret_y, ret_dqkv), ST_OK);
    plan_release(&p);
    storage_free(&blocks);
    b->close(context);
}

static void test_errors_of_a_plan(void **state)
{
    (void)state;
    double y, dqkv;
    for (int mask = 0; mask < 2; mask++) {
        find_errors(mask, mask, &y, &dqkv);
        assert_true(y > 1e-9 && y < 1e-6 && dqkv > 1e-9 && dqkv < 1e-6);
        find_errors(mask, !mask, &y, &dqkv);
        assert_true(y > 0.1 && dqkv > 0.1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_it_matches_the_reference, release),
        cmocka_unit_test_teardown(test_rows_of_long_sequences, release),
        cmocka_unit_test_teardown(test_errors_of_a_plan, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

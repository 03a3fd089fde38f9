/* Tests of what tests/graph/test_ops.c does not cover: results do not depend on the number of
 * threads, NaN propagates, exp, ELU, SiLU and GELU are right for extreme arguments, and dropout
 * masks equal those of base/rng.h far from the first element. */
#include "../support/calls.h"

#include "base/rng.h"

#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 301, C = 97 };

static struct type matrix(void)
{
    return type_2d(DT_F32, ROWS, C);
}
static struct type columns(void)
{
    return type_1d(DT_F32, C);
}
static struct type per_row(void)
{
    return type_2d(DT_F32, ROWS, 1);
}

/* Runs each row of the call with one thread and with three: same bits. */
static void same_with_threads(struct hand_call *h, enum op op)
{
    const struct kernel *row;
    struct arena a = {0};
    for (int n = 0; (row = call_row(h, op, n)); n++) {
        void *alone[MAX_OUT];
        omp_set_num_threads(1);
        call_run(h, row);
        for (int i = 0; i < h->call.n_out; i++) {
            alone[i] = arena_alloc(&a, call_out_bytes(h, i));
            memcpy(alone[i], call_out(h, i), (size_t)call_out_bytes(h, i));
        }
        omp_set_num_threads(3);
        call_run(h, row);
        for (int i = 0; i < h->call.n_out; i++)
            assert_memory_equal(alone[i], call_out(h, i), (size_t)call_out_bytes(h, i));
    }
    assert_non_null(call_row(h, op, 0));
    arena_release(&a);
    call_release(h);
}

static void test_any_number_of_threads(void **state)
{
    (void)state;
    struct hand_call h = {0};
    call_input(&h, matrix());
    call_output(&h, columns());
    same_with_threads(&h, OP_SUM_LEADING);

    call_input(&h, matrix());
    call_output(&h, type_scalar(DT_F32));
    same_with_threads(&h, OP_SUM_SQUARES);

    call_input(&h, matrix());
    call_input(&h, matrix());
    call_input(&h, columns());
    call_input(&h, per_row());
    call_input(&h, per_row());
    call_output(&h, matrix());
    call_output(&h, columns());
    call_output(&h, columns());
    h.attr.norm.bias = true;
    same_with_threads(&h, OP_LAYERNORM_GRAD);

    call_input(&h, type_1d(DT_I32, ROWS));
    call_input(&h, matrix());
    call_output(&h, type_2d(DT_F32, 11, C));
    same_with_threads(&h, OP_EMBED_GRAD);

    call_input(&h, matrix());
    call_input(&h, type_1d(DT_I32, ROWS));
    call_input(&h, type_scalar(DT_F32));
    call_output(&h, matrix());
    call_output(&h, type_scalar(DT_F32));
    h.attr.loss.vocab = C - 2;
    same_with_threads(&h, OP_CROSS_ENTROPY_BOTH);

    call_input(&h, matrix());
    call_input(&h, matrix());
    call_input(&h, type_scalar(DT_I32));
    call_input(&h, columns());
    call_output(&h, matrix());
    call_output(&h, matrix());
    call_output(&h, per_row());
    call_output(&h, per_row());
    h.attr.norm.eps = 1e-5;
    h.attr.norm.drop = (struct dropout){DROPOUT_POINTWISE, 51, 1, 2};
    same_with_threads(&h, OP_ADD_LAYERNORM);

    call_input(&h, matrix());
    call_input(&h, matrix());
    call_input(&h, columns());
    call_input(&h, per_row());
    call_output(&h, matrix());
    call_output(&h, columns());
    same_with_threads(&h, OP_RMSNORM_GRAD);

    call_input(&h, matrix());
    call_input(&h, type_2d(DT_F32, ROWS, 2 * C));
    call_output(&h, type_2d(DT_F32, ROWS, 2 * C));
    same_with_threads(&h, OP_SWIGLU_GRAD);

    call_input(&h, type_3d(DT_F32, 3, ROWS, C));
    call_input(&h, type_2d(DT_F32, ROWS, 10));
    call_output(&h, type_3d(DT_F32, 3, ROWS, C));
    h.attr.rope.heads = 9;
    same_with_threads(&h, OP_ROPE);
}

/* One input element is NaN: then all outputs that depend on it must be NaN, both in whole vectors
 * and in the last, partial vector. */
static void nan_propagates(enum op op, union attr attr, int inputs, bool whole_row)
{
    static const int64_t spots[] = {0, 5, C - 1};
    const struct kernel *row;
    for (int spot = 0; spot < COUNT_OF(spots); spot++)
        for (int n = 0;; n++) {
            struct hand_call h = {.attr = attr};
            call_input(&h, type_2d(DT_F32, 3, C));
            for (int i = 1; i < inputs; i++) call_input(&h, type_2d(DT_F32, 3, C));
            bool one = op == OP_MAX_ROW || op == OP_SUM_ROW;
            call_output(&h, type_2d(DT_F32, 3, one ? 1 : C));
            int64_t at = C + spots[spot];
            call_in(&h, 0)[at] = NAN;
            if ((row = call_row(&h, op, n))) {
                call_run(&h, row);
                int64_t here = one ? 1 : at, first = one ? 1 : C, last = one ? 2 : 2 * C;
                for (int64_t i = whole_row ? first : here; i < (whole_row ? last : here + 1); i++)
                    if (!isnan(call_out(&h, 0)[i]))
                        fail_msg("%s %s loses the NaN of column %d", op_def(op)->name, row->variant,
                                 (int)spots[spot]);
                for (int64_t i = 0; i < first; i++) assert_false(isnan(call_out(&h, 0)[i]));
            }
            call_release(&h);
            if (!row) break;
        }
}

static void test_nan_propagates(void **state)
{
    (void)state;
    static const enum op pointwise[] = {OP_SCALE, OP_OFFSET, OP_AT_MOST, OP_EXP,  OP_TANH,
                                        OP_ERF,   OP_RELU,   OP_ELU,     OP_SILU, OP_SIGMOID};
    const union attr none = {0};
    const union attr tanh = {.gelu = {.tanh = true}};
    for (int i = 0; i < COUNT_OF(pointwise); i++) nan_propagates(pointwise[i], none, 1, false);
    nan_propagates(OP_ADD, none, 2, false);
    nan_propagates(OP_GELU, none, 1, false);
    nan_propagates(OP_GELU, tanh, 1, false);
    nan_propagates(OP_GELU_GRAD, none, 2, false);
    nan_propagates(OP_GELU_GRAD, tanh, 2, false);
    nan_propagates(OP_ELU_GRAD, none, 2, false);
    nan_propagates(OP_SILU_GRAD, none, 2, false);
    nan_propagates(OP_SWIGLU, none, 2, false);
    nan_propagates(OP_SOFTMAX, none, 1, true);
    nan_propagates(OP_SOFTMAX_GRAD, none, 2, true);
    nan_propagates(OP_MAX_ROW, none, 1, true);
    nan_propagates(OP_SUM_ROW, none, 1, true);
}

static void test_exp_range(void **state)
{
    (void)state;
    static const float x[] = {-INFINITY, -1e30f, -110,  -103.5f, -100,  -88,   -87.4f, -87,     -1,
                              -1e-8f,    0,      1e-8f, 1,       88.6f, 88.8f, 1e30f,  INFINITY};
    struct hand_call h = {0};
    call_input(&h, type_1d(DT_F32, COUNT_OF(x)));
    call_output(&h, type_1d(DT_F32, COUNT_OF(x)));
    memcpy(call_in(&h, 0), x, sizeof x);
    const struct kernel *row;
    for (int n = 0; (row = call_row(&h, OP_EXP, n)); n++) {
        call_run(&h, row);
        for (int i = 0; i < COUNT_OF(x); i++) {
            float got = call_out(&h, 0)[i], want = (float)exp((double)x[i]);
            /* subnormal numbers have few digits: an error of one unit is allowed */
            if (!(got == want || fabsf(got - want) <= 1.5e-7f * want + 1.5e-45f))
                fail_msg("%s: exp(%g) is %g instead of %g", row->variant, (double)x[i], (double)got,
                         (double)want);
        }
    }
    call_release(&h);
}

/* Near 0, ELU must have all digits of x; for large |x| it is -1 or x. */
static void test_elu_range(void **state)
{
    (void)state;
    static const float x[] = {-INFINITY, -1e30f, -104,   -20,     -17, -3,    -1.1f, -0.7f,
                              -0.3f,     -1e-3f, -1e-8f, -1e-30f, 0,   1e-8f, 2,     3e38f};
    struct hand_call h = {0};
    call_input(&h, type_1d(DT_F32, COUNT_OF(x)));
    call_output(&h, type_1d(DT_F32, COUNT_OF(x)));
    memcpy(call_in(&h, 0), x, sizeof x);
    const struct kernel *row;
    for (int n = 0; (row = call_row(&h, OP_ELU, n)); n++) {
        call_run(&h, row);
        for (int i = 0; i < COUNT_OF(x); i++) {
            float got = call_out(&h, 0)[i], want = x[i] > 0 ? x[i] : (float)expm1((double)x[i]);
            if (!(got == want || fabsf(got - want) <= 2e-7f * fabsf(want)))
                fail_msg("%s: elu(%g) is %g instead of %g", row->variant, (double)x[i], (double)got,
                         (double)want);
        }
    }
    call_release(&h);
}

/* For very negative x, SiLU may differ from 0 by its value at -87; for large x it is x. */
static void test_silu_range(void **state)
{
    (void)state;
    static const float x[] = {-INFINITY, -3e38f, -200, -88,   -87, -20, -3, -1.278f,
                              -1e-3f,    -1e-8f, 0,    1e-8f, 2,   20,  90, 3e38f};
    struct hand_call h = {0};
    call_input(&h, type_1d(DT_F32, COUNT_OF(x)));
    call_output(&h, type_1d(DT_F32, COUNT_OF(x)));
    memcpy(call_in(&h, 0), x, sizeof x);
    const struct kernel *row;
    for (int n = 0; (row = call_row(&h, OP_SILU, n)); n++) {
        call_run(&h, row);
        for (int i = 0; i < COUNT_OF(x); i++) {
            double got = (double)call_out(&h, 0)[i], at = fmax(-1e4, (double)x[i]);
            double want = at / (1 + exp(-at));
            if (!(fabs(got - want) <= 3e-7 * fabs(want) + 2e-36))
                fail_msg("%s: silu(%g) is %g instead of %g", row->variant, (double)x[i], got, want);
        }
    }
    call_release(&h);
}

static void test_dropout_equals_rng(void **state)
{
    (void)state;
    enum { B = 2, H = 3, T = 37, N = 5003 };
    const struct dropout d = {DROPOUT_POINTWISE, 77, 1234567, 89};
    const uint32_t step = 4000000000u;
    struct hand_call h = {.attr.drop = d};
    const struct kernel *row;
    call_input(&h, type_scalar(DT_I32));
    call_output(&h, type_1d(DT_F32, N));
    memcpy(h.call.in[0], &step, sizeof step);
    for (int n = 0; (row = call_row(&h, OP_DROPOUT_MASK, n)); n++) {
        call_run(&h, row);
        for (uint32_t i = 0; i < N; i++) {
            struct rng_words r = dropout_pointwise(d.seed, d.site, step, i / 16);
            int byte = r.w[i % 16 / 4] >> 8 * (i % 4) & 255;
            float want = byte >= d.threshold ? dropout_scale(d.threshold) : 0;
            if (call_out(&h, 0)[i] != want) fail_msg("%s: element %u differs", row->variant, i);
        }
    }
    call_release(&h);

    h.attr.drop = d;
    h.attr.drop.pattern = DROPOUT_ATTENTION;
    call_input(&h, type_scalar(DT_I32));
    call_output(&h, type_4d(DT_F32, B, H, T, T));
    memcpy(h.call.in[0], &step, sizeof step);
    for (int n = 0; (row = call_row(&h, OP_DROPOUT_MASK, n)); n++) {
        call_run(&h, row);
        for (uint32_t i = 0; i < B * H * T * T; i++) {
            int byte = dropout_attention_byte(d.seed, d.site, step, i / (T * T), i / T % T, i % T);
            float want = byte >= d.threshold ? dropout_scale(d.threshold) : 0;
            if (call_out(&h, 0)[i] != want) fail_msg("%s: element %u differs", row->variant, i);
        }
    }
    call_release(&h);
}

/* For large |x| GELU is 0 or x and its slope 0 or 1. */
static void test_gelu_of_large_numbers(void **state)
{
    (void)state;
    static const float large[] = {-12, -100, -1e10f, -1e30f, -3e38f, 12, 1e10f, 3e38f};
    for (int tanh = 0; tanh < 2; tanh++) {
        struct hand_call h = {0};
        h.attr.gelu.tanh = tanh;
        call_input(&h, type_1d(DT_F32, COUNT_OF(large)));
        call_output(&h, type_1d(DT_F32, COUNT_OF(large)));
        call_output(&h, type_1d(DT_F32, COUNT_OF(large)));
        memcpy(call_in(&h, 0), large, sizeof large);
        const struct kernel *row;
        for (int n = 0; (row = call_row(&h, OP_GELU_BOTH, n)); n++) {
            call_run(&h, row);
            for (int i = 0; i < COUNT_OF(large); i++) {
                float x = large[i], y = call_out(&h, 0)[i], slope = call_out(&h, 1)[i];
                if (fabsf(y - fmaxf(x, 0)) > 1e-30f || fabsf(slope - (x > 0)) > 1e-30f)
                    fail_msg("%s, tanh %d: gelu and slope are %g and %g at %g", row->variant, tanh,
                             (double)y, (double)slope, (double)x);
            }
        }
        call_release(&h);
    }
}

static void truncate_to_bf16(struct hand_call *h, int i)
{
    int64_t n = type_elements(&h->call.in_type[i]);
    const float *from = call_in(h, i);
    uint16_t *to = arena_alloc(&h->arena, n * (int64_t)sizeof *to);
    for (int64_t k = 0; k < n; k++) {
        uint32_t bits;
        memcpy(&bits, &from[k], sizeof bits);
        to[k] = (uint16_t)(bits >> 16);
    }
    h->call.in[i] = to;
    h->call.in_type[i].dtype = DT_BF16;
}

static struct type matrix_of(enum dtype dtype)
{
    struct type t = matrix();
    t.dtype = dtype;
    return t;
}

static void gelu_variants_agree(enum dtype dtype, bool tanh)
{
    struct hand_call one = {0}, both = {0};
    const struct kernel *row, *other;
    one.attr.gelu.tanh = both.attr.gelu.tanh = tanh;
    call_input(&one, matrix());
    call_input(&both, matrix());
    for (int64_t k = 0; k < ROWS * C; k++) call_in(&one, 0)[k] *= 6, call_in(&both, 0)[k] *= 6;
    if (dtype == DT_BF16) truncate_to_bf16(&one, 0), truncate_to_bf16(&both, 0);
    call_output(&one, matrix_of(dtype));
    for (int i = 0; i < 2; i++) call_output(&both, matrix_of(dtype));
    for (int n = 0; (row = call_row(&one, OP_GELU, n)); n++) {
        other = call_row(&both, OP_GELU_BOTH, n);
        assert_true(other && !strcmp(row->variant, other->variant));
        call_run(&one, row);
        call_run(&both, other);
        if (memcmp(one.call.out[0], both.call.out[0], (size_t)call_out_bytes(&one, 0)))
            fail_msg("gelu and gelu with slope differ: %s, %s", row->variant, dtype_name(dtype));
    }
    call_release(&one);
    call_release(&both);
}

static void norm_variants_agree(enum dtype dtype)
{
    struct hand_call sum = {0}, norm = {0};
    const struct kernel *row, *other;
    sum.attr.norm.eps = norm.attr.norm.eps = 1e-5;
    sum.attr.norm.drop = (struct dropout){DROPOUT_POINTWISE, 50, 1, 2};
    for (int i = 0; i < 2; i++) call_input(&sum, matrix());
    if (dtype == DT_BF16) truncate_to_bf16(&sum, 0), truncate_to_bf16(&sum, 1);
    call_input(&sum, type_scalar(DT_I32));
    call_input(&sum, columns());
    call_input(&norm, matrix());
    call_input(&norm, columns());
    memcpy(norm.call.in[1], sum.call.in[3], C * sizeof(float));
    for (int i = 0; i < 2; i++) call_output(&sum, matrix_of(dtype));
    call_output(&norm, matrix_of(dtype));
    for (int i = 0; i < 2; i++) call_output(&sum, per_row()), call_output(&norm, per_row());
    norm.call.in_type[0].dtype = dtype;
    for (int n = 0; (row = call_row(&sum, OP_ADD_LAYERNORM, n)); n++) {
        other = call_row(&norm, OP_LAYERNORM, n);
        assert_true(other && !strcmp(row->variant, other->variant));
        call_run(&sum, row);
        norm.call.in[0] = sum.call.out[0];
        call_run(&norm, other);
        for (int i = 0; i < 3; i++)
            if (memcmp(norm.call.out[i], sum.call.out[i + 1], (size_t)call_out_bytes(&norm, i)))
                fail_msg("norm and norm of a sum differ: %s, %s, output %d", row->variant,
                         dtype_name(dtype), i);
    }
    call_release(&sum);
    call_release(&norm);
}

/* Recomputation may replace GELU_BOTH by GELU and ADD_LAYERNORM by LAYERNORM, or the reverse: the
 * bits must be the same. */
static void test_recomputed_variants_agree(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) gelu_variants_agree(i & 1 ? DT_BF16 : DT_F32, i & 2);
    for (int i = 0; i < 2; i++) norm_variants_agree(i ? DT_BF16 : DT_F32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_number_of_threads),
        cmocka_unit_test(test_nan_propagates),
        cmocka_unit_test(test_exp_range),
        cmocka_unit_test(test_elu_range),
        cmocka_unit_test(test_silu_range),
        cmocka_unit_test(test_dropout_equals_rng),
        cmocka_unit_test(test_gelu_of_large_numbers),
        cmocka_unit_test(test_recomputed_variants_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

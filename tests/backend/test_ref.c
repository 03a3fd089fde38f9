/* The reference kernels against numbers computed by hand, and against each other if two operators
 * compute the same. The checks of gradients and expansions in tests/graph/test_ops.c cannot find an
 * error that both compared sides have. */
#include "backend/kernel.h"
#include "base/arena.h"
#include "base/rng.h"
#include "check/check.h"
#include "check/reference.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define M_LN3 1.0986122886681098

enum { MAX_ELEMENTS = 16 };

/* Float numbers or ids, and their shape. */
struct tensor {
    int rank;
    int64_t dim[MAX_RANK];
    bool ids;
    double x[MAX_ELEMENTS];
};

struct example {
    enum op op;
    union attr attr;
    struct tensor in[4], out[2]; /* the list ends at rank 0 */
};

/* clang-format off */
static const struct example examples[] = {
    {OP_FILL, {.constant = {2.5}}, {{0}}, {{1, {2}, .x = {2.5, 2.5}}}},
    {OP_ADD, {}, {{2, {2,2}, .x = {1,2,3,4}}, {1, {2}, .x = {10,20}}}, {{2, {2,2}, .x = {11,22,13,24}}}},
    {OP_SUB, {}, {{2, {2,2}, .x = {1,2,3,4}}, {2, {2,1}, .x = {10,20}}}, {{2, {2,2}, .x = {-9,-8,-17,-16}}}},
    {OP_MUL, {}, {{2, {2,2}, .x = {1,2,3,4}}, {1, {1}, .x = {-2}}}, {{2, {2,2}, .x = {-2,-4,-6,-8}}}},
    {OP_DIV, {}, {{1, {3}, .x = {1,3,-8}}, {1, {3}, .x = {2,4,8}}}, {{1, {3}, .x = {0.5,0.75,-1}}}},
    {OP_SCALE, {.constant = {3}}, {{1, {2}, .x = {1,-2}}}, {{1, {2}, .x = {3,-6}}}},
    {OP_OFFSET, {.constant = {3}}, {{1, {2}, .x = {1,-2}}}, {{1, {2}, .x = {4,1}}}},
    {OP_AT_MOST, {.constant = {1}}, {{1, {3}, .x = {0.5,1,2}}}, {{1, {3}, .x = {0.5,1,1}}}},
    {OP_EXP, {}, {{1, {2}, .x = {0,1}}}, {{1, {2}, .x = {1,M_E}}}},
    {OP_LOG, {}, {{1, {2}, .x = {1,M_E}}}, {{1, {2}, .x = {0,1}}}},
    {OP_SQRT, {}, {{1, {2}, .x = {4,2}}}, {{1, {2}, .x = {2,M_SQRT2}}}},
    {OP_RSQRT, {}, {{1, {2}, .x = {4,2}}}, {{1, {2}, .x = {0.5,M_SQRT1_2}}}},
    {OP_TANH, {}, {{1, {2}, .x = {0,0.5493061443340548}}}, {{1, {2}, .x = {0,0.5}}}},
    {OP_SIGMOID, {}, {{1, {4}, .x = {0,-1.0986122886681098,-800,800}}}, {{1, {4}, .x = {0.5,0.25,0,1}}}},
    {OP_ERF, {}, {{1, {2}, .x = {0,0.4769362762044699}}}, {{1, {2}, .x = {0,0.5}}}},
    {OP_RELU, {}, {{1, {3}, .x = {-2,0,3}}}, {{1, {3}, .x = {0,0,3}}}},
    {OP_WHERE_POSITIVE, {}, {{1, {5}, .x = {5,6,7,INFINITY,NAN}}, {1, {5}, .x = {0,1e-9,3,-1,NAN}}}, {{1, {5}, .x = {0,6,7,0,0}}}},
    {OP_WHERE_NOT_POSITIVE, {}, {{1, {5}, .x = {5,6,NAN,INFINITY,7}}, {1, {5}, .x = {0,-1e-9,3,1,NAN}}}, {{1, {5}, .x = {5,6,0,0,7}}}},
    {OP_ELU, {}, {{1, {4}, .x = {-M_LN2,0,3,-800}}}, {{1, {4}, .x = {-0.5,0,3,-1}}}},
    {OP_ELU_GRAD, {}, {{1, {3}, .x = {5,6,7}}, {1, {3}, .x = {-0.5,0,3}}}, {{1, {3}, .x = {2.5,6,7}}}},
    /* e^-ln 3 is 1/3: sigmoid 3/4 */
    {OP_SILU, {}, {{1, {4}, .x = {0,M_LN3,-M_LN3,-800}}}, {{1, {4}, .x = {0,M_LN3*0.75,-M_LN3*0.25,0}}}},
    {OP_SILU_GRAD, {}, {{1, {3}, .x = {4,16,5}}, {1, {3}, .x = {0,M_LN3,-800}}}, {{1, {3}, .x = {2,12+3*M_LN3,0}}}},
    {OP_SWIGLU, {}, {{2, {2,4}, .x = {0,M_LN3,7,8,-M_LN3,0,4,5}}}, {{2, {2,2}, .x = {0,6*M_LN3,-M_LN3,0}}}},
    {OP_SWIGLU, {}, {{1, {2}, .x = {0,M_LN3}}, {1, {2}, .x = {7,8}}}, {{1, {2}, .x = {0,6*M_LN3}}}},
    {OP_SWIGLU_GRAD, {}, {{2, {1,2}, .x = {4,16}}, {2, {1,4}, .x = {0,M_LN3,7,2}}}, {{2, {1,4}, .x = {14,24+6*M_LN3,0,12*M_LN3}}}},
    {OP_SWIGLU_GRAD, {}, {{1, {1}, .x = {16}}, {1, {1}, .x = {M_LN3}}, {1, {1}, .x = {2}}}, {{1, {1}, .x = {24+6*M_LN3}}, {1, {1}, .x = {12*M_LN3}}}},
    {OP_CAUSAL_MASK, {.constant = {-INFINITY}}, {{2, {2,2}, .x = {1,2,3,4}}}, {{2, {2,2}, .x = {1,-INFINITY,3,4}}}},
    {OP_COLUMN_MASK, {.column_mask = {7, 2}}, {{2, {2,3}, .x = {1,2,3,4,5,6}}}, {{2, {2,3}, .x = {1,2,7,4,5,7}}}},
    {OP_SUM_ROW, {}, {{2, {2,3}, .x = {1,2,3,4,5,6}}}, {{2, {2,1}, .x = {6,15}}}},
    {OP_MAX_ROW, {}, {{2, {2,3}, .x = {1,3,2,-4,-5,-6}}}, {{2, {2,1}, .x = {3,-4}}}},
    {OP_SUM_LEADING, {}, {{2, {2,3}, .x = {1,2,3,4,5,6}}}, {{1, {3}, .x = {5,7,9}}}},
    {OP_MATMUL, {}, {{2, {2,3}, .x = {1,2,3,4,5,6}}, {2, {3,1}, .x = {1,10,100}}}, {{2, {2,1}, .x = {321,654}}}},
    {OP_MATMUL, {.matmul = {.ta = true}}, {{2, {3,2}, .x = {1,4,2,5,3,6}}, {2, {3,1}, .x = {1,10,100}}}, {{2, {2,1}, .x = {321,654}}}},
    {OP_MATMUL, {.matmul = {.tb = true}}, {{2, {1,2}, .x = {1,10}}, {2, {2,2}, .x = {1,2,3,4}}}, {{2, {1,2}, .x = {21,43}}}},
    {OP_MATMUL, {}, {{3, {2,1,1}, .x = {2,3}}, {3, {2,1,1}, .x = {5,7}}}, {{3, {2,1,1}, .x = {10,21}}}},
    {OP_MATMUL, {}, {{3, {2,1,1}, .x = {2,3}}, {2, {1,2}, .x = {5,7}}}, {{3, {2,1,2}, .x = {10,14,15,21}}}},
    {OP_LINEAR, {.linear = {true}}, {{2, {1,2}, .x = {1,10}}, {2, {2,2}, .x = {1,2,3,4}}, {1, {2}, .x = {100,200}}}, {{2, {1,2}, .x = {121,243}}}},
    /* (B,T,P*H*D) = (1,2,4), two parts of two heads of one element */
    {OP_SPLIT_HEADS, {.heads = {2, 2}}, {{3, {1,2,4}, .x = {1,2,3,4,5,6,7,8}}}, {{4, {1,2,2,1}, .x = {1,5,2,6}}, {4, {1,2,2,1}, .x = {3,7,4,8}}}},
    {OP_MERGE_HEADS, {.heads = {2, 2}}, {{4, {1,2,2,1}, .x = {1,5,2,6}}, {4, {1,2,2,1}, .x = {3,7,4,8}}}, {{3, {1,2,4}, .x = {1,2,3,4,5,6,7,8}}}},
    {OP_SPLIT, {.split = {{1, 2}}}, {{2, {2,3}, .x = {1,2,3,4,5,6}}}, {{2, {2,1}, .x = {1,4}}, {2, {2,2}, .x = {2,3,5,6}}}},
    {OP_CONCAT, {}, {{2, {2,1}, .x = {1,4}}, {2, {2,2}, .x = {2,3,5,6}}}, {{2, {2,3}, .x = {1,2,3,4,5,6}}}},
    /* theta 10000 and heads of 4: pairs are rotated by the position and by a hundredth of it */
    {OP_ROPE_TABLE, {.rope = {.theta = 10000}}, {{1, {2}, true, {0,3}}}, {{2, {2,4}, .x = {1,0,1,0,-0.98999249660044542,0.14112000805986722,0.99955003374898754,0.029995500202495661}}}},
    /* two positions of one head and a further pair of columns: rotated by 0 and by a quarter
     * turn */
    {OP_ROPE, {.rope = {.heads = 1}}, {{3, {1,2,4}, .x = {1,2,3,4,5,6,7,8}}, {2, {2,2}, .x = {1,0,0,1}}}, {{3, {1,2,4}, .x = {1,2,3,4,-6,5,7,8}}}},
    {OP_ROPE, {.rope = {.heads = 1, .back = true}}, {{3, {1,2,4}, .x = {1,2,3,4,5,6,7,8}}, {2, {2,2}, .x = {1,0,0,1}}}, {{3, {1,2,4}, .x = {1,2,3,4,6,-5,7,8}}}},
    {OP_EMBED, {}, {{2, {3,2}, .x = {1,2,3,4,5,6}}, {1, {2}, true, {2,0}}}, {{2, {2,2}, .x = {5,6,1,2}}}},
    {OP_EMBED_GRAD, {}, {{1, {3}, true, {2,0,2}}, {2, {3,2}, .x = {1,2,3,4,5,6}}}, {{2, {3,2}, .x = {3,4,0,0,6,8}}}},
    {OP_EMBED_GRAD_SUM, {.table = {3}}, {{1, {2}, true, {1,0}}, {3, {2,2,2}, .x = {1,2,3,4,5,6,7,8}}}, {{2, {3,2}, .x = {10,12,6,8,0,0}}}},
    {OP_PICK, {}, {{2, {2,3}, .x = {1,2,3,4,5,6}}, {1, {2}, true, {2,0}}}, {{2, {2,1}, .x = {3,4}}}},
    {OP_PICK_GRAD, {}, {{1, {2}, true, {2,0}}, {2, {2,1}, .x = {7,8}}}, {{2, {2,3}, .x = {0,0,7,8,0,0}}}},
    {OP_SOFTMAX, {}, {{2, {1,3}, .x = {0,M_LN2,-INFINITY}}}, {{2, {1,3}, .x = {1/3.,2/3.,0}}}},
    {OP_LAYERNORM, {.norm = {.eps = 0}}, {{2, {1,2}, .x = {1,5}}, {1, {2}, .x = {3,4}}, {1, {2}, .x = {10,20}}}, {{2, {1,2}, .x = {7,24}}}},
    {OP_RMSNORM, {.norm = {.eps = 7.5}}, {{2, {2,2}, .x = {1,4,-7,8}}, {1, {2}, .x = {8,4}}}, {{2, {2,2}, .x = {2,4,-7,4}}, {2, {2,1}, .x = {0.25,0.125}}}},
    {OP_CROSS_ENTROPY, {.loss = {2}}, {{2, {2,3}, .x = {0,0,9,1,1,9}}, {1, {2}, true, {0,1}}}, {{1, {1}, .x = {M_LN2}}, {1, {2}, .x = {M_LN2,1+M_LN2}}}},
    {OP_SUM_SQUARES, {}, {{1, {3}, .x = {1,2,-3}}}, {{1, {1}, .x = {14}}}},
};
/* clang-format on */

static void *make_tensor(struct arena *a, const struct tensor *t, struct type *ret_type)
{
    *ret_type = type_of(t->ids ? DT_I32 : DT_F64, t->rank, t->dim);
    double *x = arena_alloc(a, MAX_ELEMENTS * (int64_t)sizeof(double));
    for (int i = 0; i < MAX_ELEMENTS; i++) {
        if (t->ids)
            ((int32_t *)x)[i] = (int32_t)t->x[i];
        else
            x[i] = t->x[i];
    }
    return x;
}

static void test_examples_by_hand(void **state)
{
    (void)state;
    for (int e = 0; e < COUNT_OF(examples); e++) {
        const struct example *x = &examples[e];
        struct arena a = {0};
        struct kernel_call call = {.attr = &x->attr};
        for (; call.n_in < 4 && x->in[call.n_in].rank; call.n_in++)
            call.in[call.n_in] = make_tensor(&a, &x->in[call.n_in], &call.in_type[call.n_in]);
        for (; call.n_out < 2 && x->out[call.n_out].rank; call.n_out++)
            call.out[call.n_out] = make_tensor(&a, &x->out[call.n_out], &call.out_type[call.n_out]);
        double rest[2]; /* mean and rstd of the norm are checked in other tests */
        for (int i = call.n_out; x->op == OP_LAYERNORM && i < 3; i++) {
            call.out_type[call.n_out++] = type_2d(DT_F64, 1, 1);
            call.out[i] = &rest[i - 1];
        }
        for (int i = 0; i < 2 && x->out[i].rank; i++)
            memset(call.out[i], 0xff, (size_t)type_bytes(&call.out_type[i]));
        assert_int_equal(reference_run(x->op, &call, &a), ST_OK);
        for (int i = 0; i < 2 && x->out[i].rank; i++)
            if (check_distance(call.out[i], x->out[i].x, type_elements(&call.out_type[i])) > 1e-15)
                fail_msg("example %d, %s: output %d is wrong", e, op_def(x->op)->name, i);
        arena_release(&a);
    }
}

/* A NaN in any column is the maximum of its row. */
static void test_max_row_propagates_nan(void **state)
{
    (void)state;
    double x[9] = {NAN, 1, 2, 1, NAN, 2, 1, 2, NAN}, max[3] = {0};
    struct kernel_call call = {
        .n_in = 1,
        .n_out = 1,
        .in_type = {type_2d(DT_F64, 3, 3)},
        .out_type = {type_2d(DT_F64, 3, 1)},
        .in = {x},
        .out = {max},
    };
    assert_int_equal(reference_run(OP_MAX_ROW, &call, NULL), ST_OK);
    for (int i = 0; i < 3; i++) assert_true(isnan(max[i]));
}

static void test_state_is_written_in_place(void **state)
{
    (void)state;
    double leaf[2] = {1, 2}, x[2] = {10, 20};
    struct kernel_call call = {
        .n_in = 2,
        .n_out = 1,
        .in_type = {type_1d(DT_F64, 2), type_1d(DT_F64, 2)},
        .out_type = {type_1d(DT_F64, 2)},
        .in = {leaf, x},
        .out = {leaf},
    };
    assert_int_equal(reference_run(OP_ACCUMULATE, &call, NULL), ST_OK);
    assert_true(leaf[0] == 11 && leaf[1] == 22);
    assert_int_equal(reference_run(OP_STORE, &call, NULL), ST_OK);
    assert_true(leaf[0] == 10 && leaf[1] == 20);
}

/* The first step of AdamW: m / bias1 is the gradient g and v / bias2 its square, so the step is
 * lr g / |g|, after the weight decay of the first element. */
static void test_first_step_of_adamw(void **state)
{
    (void)state;
    const union attr attr = {.adamw = {0.9, 0.99, 0, 0.5, 1}};
    double w[2] = {1, 1}, m[2] = {0}, v[2] = {0}, g[2] = {8, -2};
    double lr = 0.25, bias1 = 1 - 0.9, bias2 = 1 - 0.99, clip = 0.5;
    struct kernel_call call = {
        .attr = &attr,
        .n_in = 8,
        .n_out = 3,
        .in = {w, m, v, g, &lr, &bias1, &bias2, &clip},
        .out = {w, m, v},
    };
    for (int i = 0; i < 8; i++) call.in_type[i] = type_1d(DT_F64, i < 4 ? 2 : 1);
    for (int i = 0; i < 3; i++) call.out_type[i] = type_1d(DT_F64, 2);
    assert_int_equal(reference_run(OP_ADAMW, &call, NULL), ST_OK);
    assert_true(check_distance(w, (double[]){1 - 0.125 - 0.25, 1 + 0.25}, 2) < 1e-14);
    assert_true(check_distance(m, (double[]){0.4, -0.1}, 2) < 1e-14);
    assert_true(check_distance(v, (double[]){0.16, 0.01}, 2) < 1e-14);
}

enum { B = 2, T = 18, H = 3, D = 2, C = H * D };

static void random_normal(double *x, int n, uint32_t sequence)
{
    for (int i = 0; i < n; i++) x[i] = (double)rng_normal(5, RNG_TEST, sequence, (uint64_t)i);
}

/* Attention over the cache, one position after another, equals attention over all positions. */
static void test_cached_attention_is_attention(void **state)
{
    (void)state;
    struct arena a = {0};
    const union attr attr = {.attention = {.heads = H, .causal = true}};
    double qkv[B * T * 3 * C], y[B * T * C], lse[B * H * T], cache[2 * B * T * C] = {0};
    double qkv_now[B * 3 * C], y_now[B * C];
    int32_t t = 0;
    random_normal(qkv, COUNT_OF(qkv), 1);
    struct kernel_call whole = {
        .attr = &attr,
        .n_in = 2,
        .n_out = 2,
        .in_type = {type_3d(DT_F64, B, T, 3 * C), type_1d(DT_I32, 1)},
        .out_type = {type_3d(DT_F64, B, T, C), type_3d(DT_F64, B, H, T)},
        .in = {qkv, &t},
        .out = {y, lse},
    };
    struct kernel_call cached = {
        .attr = &attr,
        .n_in = 3,
        .n_out = 2,
        .in_type = {type_4d(DT_F64, 2, B, T, C), type_3d(DT_F64, B, 1, 3 * C), type_1d(DT_I32, 1)},
        .out_type = {type_4d(DT_F64, 2, B, T, C), type_3d(DT_F64, B, 1, C)},
        .in = {cache, qkv_now, &t},
        .out = {cache, y_now},
    };
    assert_int_equal(reference_run(OP_ATTENTION, &whole, &a), ST_OK);
    for (; t < T; t++) {
        for (int b = 0; b < B; b++)
            memcpy(qkv_now + b * 3 * C, qkv + (b * T + t) * 3 * C, 3 * C * sizeof(double));
        assert_int_equal(reference_run(OP_ATTENTION_CACHED, &cached, &a), ST_OK);
        for (int b = 0; b < B; b++)
            assert_true(check_distance(y_now + b * C, y + (b * T + t) * C, C) < 1e-14);
    }
    assert_int_equal(reference_run(OP_ATTENTION_CACHED, &cached, &a), ST_FORMAT); /* t == Tmax */
    arena_release(&a);
}

/* Each element uses the byte that base/rng.h assigns to it, and about 256 - threshold of 256 are
 * kept. */
static void test_dropout_uses_the_bytes_of_rng(void **state)
{
    (void)state;
    enum { ROWS = 48, N = B * H * ROWS * ROWS, THRESHOLD = 64, STEP = 9 };
    static double mask[N];
    int32_t step = STEP;
    for (int pattern = DROPOUT_POINTWISE; pattern <= DROPOUT_ATTENTION; pattern++) {
        const union attr attr = {.drop = {(enum dropout_pattern)pattern, THRESHOLD, 11, 4}};
        struct kernel_call call = {
            .attr = &attr,
            .n_in = 1,
            .n_out = 1,
            .in_type = {type_1d(DT_I32, 1)},
            .out_type = {type_4d(DT_F64, B, H, ROWS, ROWS)},
            .in = {&step},
            .out = {mask},
        };
        assert_int_equal(reference_run(OP_DROPOUT_MASK, &call, NULL), ST_OK);
        int kept = 0;
        for (int i = 0; i < N; i++) {
            struct rng_words r = dropout_pointwise(11, 4, STEP, (uint64_t)i / 16);
            int byte = (int)(r.w[i % 16 / 4] >> (8 * (i % 4))) & 0xff;
            if (pattern == DROPOUT_ATTENTION)
                byte = dropout_attention_byte(11, 4, STEP, (uint32_t)(i / ROWS / ROWS),
                                              (uint32_t)(i / ROWS % ROWS), (uint32_t)(i % ROWS));
            assert_true(fabs(mask[i] - (byte >= THRESHOLD ? 4.0 / 3.0 : 0.0)) < 1e-7);
            kept += mask[i] > 0;
        }
        assert_true(abs(kept - N * 3 / 4) <
                    4 * (int)sqrt(N * 3 / 16.0)); /* four standard deviations */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples_by_hand),
        cmocka_unit_test(test_max_row_propagates_nan),
        cmocka_unit_test(test_state_is_written_in_place),
        cmocka_unit_test(test_first_step_of_adamw),
        cmocka_unit_test(test_cached_attention_is_attention),
        cmocka_unit_test(test_dropout_uses_the_bytes_of_rng),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Every row of MATMUL and LINEAR against plain loops, with sizes for which tiles and vectors are
 * full, partly filled and empty.
 * test: slow release; test_ops runs the same kernels with sanitizers */
#include "../support/calls.h"

#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct sizes {
    int64_t batch, M, N, K;
};

static const struct sizes sizes[] = {
    {1, 1, 1, 1},      {1, 1, 65, 7}, {1, 13, 33, 5},  {1, 97, 129, 193},
    {1, 96, 128, 192}, {3, 5, 17, 3}, {4, 64, 32, 64}, {1, 200, 300, 400},
};

/* Element (r, c) of matrix i of a batch of (rows, columns), optionally stored transposed. */
static double at(const float *x, int64_t i, int64_t rows, int64_t columns, bool transposed,
                 int64_t r, int64_t c)
{
    return (double)x[i * rows * columns + (transposed ? c * rows + r : r * columns + c)];
}

static struct type matrix(struct sizes s, int64_t rows, int64_t columns, bool transposed)
{
    int64_t a = transposed ? columns : rows, b = transposed ? rows : columns;
    return s.batch > 1 ? type_3d(DT_F32, s.batch, a, b) : type_2d(DT_F32, a, b);
}

/* The largest error, divided by sqrt(K), the typical size of a result. */
static double error_of(const struct hand_call *h, struct sizes s, bool ta, bool tb, bool shared)
{
    double worst = 0;
    const float *bias = h->call.n_in > 2 ? call_in(h, 2) : NULL;
    for (int64_t i = 0; i < s.batch; i++)
        for (int64_t m = 0; m < s.M; m++)
            for (int64_t n = 0; n < s.N; n++) {
                double sum = bias ? (double)bias[n] : 0;
                for (int64_t k = 0; k < s.K; k++)
                    sum += at(call_in(h, 0), i, s.M, s.K, ta, m, k) *
                           at(call_in(h, 1), shared ? 0 : i, s.K, s.N, tb, k, n);
                double got = (double)call_out(h, 0)[(i * s.M + m) * s.N + n];
                worst = isnan(got) ? INFINITY : fmax(worst, fabs(got - sum));
            }
    return worst / sqrt((double)s.K);
}

static void try_rows(enum op op, struct sizes s, bool ta, bool tb, bool shared)
{
    struct hand_call h = {0};
    struct sizes one = s;
    if (shared) one.batch = 1;
    call_input(&h, matrix(s, s.M, s.K, ta));
    call_input(&h, matrix(one, s.K, s.N, tb));
    if (op == OP_LINEAR) call_input(&h, type_1d(DT_F32, s.N));
    call_output(&h, matrix(s, s.M, s.N, false));
    if (op == OP_LINEAR)
        h.attr.linear.tb = tb;
    else
        h.attr.matmul.ta = ta, h.attr.matmul.tb = tb;
    const struct kernel *row;
    for (int n = 0; (row = call_row(&h, op, n)); n++) {
        call_run(&h, row);
        double error = error_of(&h, s, ta, tb, shared);
        if (error > 4e-6) /* rounding of hundreds of terms; a wrong element differs by 0.1 */
            fail_msg("%s, batch %d of %d x %d x %d, ta %d tb %d: error %.1e", row->variant,
                     (int)s.batch, (int)s.M, (int)s.N, (int)s.K, ta, tb, error);
    }
    assert_true(row || call_row(&h, op, 0)); /* at least one row was tested */
    call_release(&h);
}

static void test_matmul_rows(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT_OF(sizes); i++)
        for (int t = 0; t < 4; t++) try_rows(OP_MATMUL, sizes[i], t & 1, t & 2, false);
}

static void test_shared_b(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT_OF(sizes); i++)
        for (int t = 0; t < 2; t++) {
            if (sizes[i].batch == 1) continue;
            try_rows(OP_MATMUL, sizes[i], false, t, true);
            try_rows(OP_LINEAR, sizes[i], false, t, true);
        }
}

static void test_linear(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT_OF(sizes); i++)
        for (int t = 0; t < 2; t++)
            if (sizes[i].batch == 1) try_rows(OP_LINEAR, sizes[i], false, t, true);
}

static void test_any_number_of_threads(void **state)
{
    (void)state;
    struct hand_call h = {0};
    call_input(&h, type_2d(DT_F32, 333, 222));
    call_input(&h, type_2d(DT_F32, 222, 111));
    call_output(&h, type_2d(DT_F32, 333, 111));
    const struct kernel *row;
    int tried = 0;
    for (int n = 0; (row = call_row(&h, OP_MATMUL, n)); n++) {
        if (strncmp(row->variant, "blocked", 7) != 0) continue;
        omp_set_num_threads(1);
        call_run(&h, row);
        void *alone = arena_alloc(&h.arena, call_out_bytes(&h, 0));
        memcpy(alone, call_out(&h, 0), (size_t)call_out_bytes(&h, 0));
        omp_set_num_threads(3);
        call_run(&h, row);
        assert_memory_equal(alone, call_out(&h, 0), (size_t)call_out_bytes(&h, 0));
        tried++;
    }
    assert_true(tried > 0);
    call_release(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul_rows),
        cmocka_unit_test(test_shared_b),
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

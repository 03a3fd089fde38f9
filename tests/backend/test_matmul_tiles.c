/* The plain matmul of compute capability 9.0 with every tile that tuning may choose, and groups of
 * several sizes, against double precision. Runs on a GPU of that capability, or on an emulated one
 * (tests/e2e/test_gpu_hopper.sh). */
#include "backend/backend.h"
#include "base/heap.h"
#include "base/rng.h"
#include "check/reference.h"

#include "../support/cases.h"
#include "../support/hand.h"
#include "../support/row_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef HAVE_CUDA
#include "backend/cuda/cuda_kernels.h"
#include "backend/cuda/matmul/matmul.h"

struct shape {
    int64_t M, N, K;
    bool tb;
    enum dtype out;
};

static struct row_run r;
static struct target target;

/* Random bf16 numbers, and the same numbers as doubles. */
static void *random_bf16(int64_t n, int stream, double **ret_exact)
{
    float *x = HEAP_NEW(float, n);
    void *half = heap_alloc(2 * n);
    *ret_exact = HEAP_NEW(double, n);
    rng_normals(1, RNG_TEST, (uint32_t)stream, 0, n, x);
    hand_ok(reference_convert(half, DT_BF16, x, DT_F32, n));
    hand_ok(reference_convert(*ret_exact, DT_F64, half, DT_BF16, n));
    free(x);
    return half;
}

static double exact(const struct shape *s, const double *a, const double *b, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t k = 0; k < s->K; k++)
        sum += a[i * s->K + k] * (s->tb ? b[j * s->K + k] : b[k * s->N + j]);
    return sum;
}

static double error_of(const struct shape *s, const double *expected)
{
    int64_t n = s->M * s->N;
    void *raw = heap_alloc(n * dtype_size(s->out));
    double *y = HEAP_NEW(double, n), off = 0, norm = 0;
    row_download(&r, 0, 0, raw, n * dtype_size(s->out));
    hand_ok(reference_convert(y, DT_F64, raw, s->out, n));
    for (int64_t i = 0; i < n; i++) {
        off += (y[i] - expected[i]) * (y[i] - expected[i]);
        norm += expected[i] * expected[i];
    }
    free(raw);
    free(y);
    return sqrt(off / norm);
}

/* A table whose only entry says that this tile is the fastest. */
static void name_tile(struct tuning *t, const struct matmul *p, const struct tuning_tile *tile,
                      struct arena *a)
{
    struct tuning_entry e = {.n = 1, .candidate = {{.variant = "wgmma", .us = 1, .tile = *tile}}};
    matmul_text(p, e.key);
    tuning_init(t, &target, a);
    tuning_set(t, &e);
    r.call.tuning = t;
}

static void describe(const struct shape *s)
{
    void *context = r.call.context;
    r.call = (struct kernel_call){.context = context, .target = &target, .n_in = 2, .n_out = 1};
    r.attr = (union attr){.matmul = {.tb = s->tb}};
    r.call.attr = &r.attr;
    r.call.in_type[0] = (struct type){DT_BF16, 2, {s->M, s->K}};
    r.call.in_type[1] = (struct type){DT_BF16, 2, {s->tb ? s->N : s->K, s->tb ? s->K : s->N}};
    r.call.out_type[0] = (struct type){s->out, 2, {s->M, s->N}};
}

static void try_tiles(const struct shape *s)
{
    double *a, *b, *expected = HEAP_NEW(double, s->M * s->N);
    void *half_a = random_bf16(s->M * s->K, 0, &a), *half_b = random_bf16(s->K * s->N, 1, &b);
    static const struct tuning_tile tile[] = {{128, 192, 4}, {128, 192, 1},  {128, 128, 8},
                                              {128, 128, 3}, {128, 256, 16}, {128, 256, 2}};
    char launch[COUNT_OF(tile)][TUNING_LAUNCH];
    struct matmul p;
    for (int64_t i = 0; i < s->M; i++)
        for (int64_t j = 0; j < s->N; j++) expected[i * s->N + j] = exact(s, a, b, i, j);
    describe(s);
    assert_true(matmul_hopper_plain_of(&r.call, &p));
    for (int i = 0; i < COUNT_OF(tile); i++) {
        struct arena arena = {0};
        struct tuning t;
        describe(s);
        name_tile(&t, &p, &tile[i], &arena);
        assert_true(row_find(&r, OP_MATMUL, "wgmma", 0));
        matmul_launch_digest(r.kernel, &r.call, launch[i]);
        for (int k = 0; k < i; k++) /* groups are arguments, which are not in the digest */
            assert_int_equal(!strcmp(launch[k], launch[i]), tile[k].columns == tile[i].columns);
        row_open(&r);
        row_upload(&r, 0, 0, half_a, 2 * s->M * s->K);
        row_upload(&r, 1, 0, half_b, 2 * s->K * s->N);
        row_start(&r);
        double error = error_of(s, expected), most = s->out == DT_F32 ? 1e-6 : 2.4e-3;
        const char *where = row_stray_write(&r);
        if (!(error < most) || where)
            fail_msg("%d x %d by %d: error %g, at most %g; it wrote %s", tile[i].rows,
                     tile[i].columns, tile[i].group, error, most, where ? where : "nothing else");
        row_close(&r);
        arena_release(&arena);
    }
    print_message("%lld x %lld x %lld\n", (long long)s->M, (long long)s->N, (long long)s->K);
    free(half_a), free(half_b), free(a), free(b), free(expected);
}

static void test_tiles(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {8, 8, 8, false, DT_BF16},
        {264, 520, 136, false, DT_BF16},
        {387, 328, 200, true, DT_BF16},
        {131, 264, 72, false, DT_F32},
    };
    r.backend = backend_find("cuda");
    if (!r.backend || r.backend->devices.count() == 0) {
        SKIP("there is no GPU");
    }
    hand_ok(backend_target(r.backend, 0, &target));
    hand_ok(r.backend->open(0, &r.call.context));
    describe(&shapes[0]);
    if (!cuda_hopper(&r.call)) {
        r.backend->close(r.call.context);
        SKIP("there is no GPU of compute capability 9.0");
    }
    for (int i = 0; i < COUNT_OF(shapes); i++) try_tiles(&shapes[i]);
    r.backend->close(r.call.context);
}
#else
static void test_tiles(void **state)
{
    (void)state;
    SKIP("built without the CUDA toolkit's headers");
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

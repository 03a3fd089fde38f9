#include "bench/product_error.h"

#include "base/arena.h"
#include "base/rng.h"
#include "check/device_matmul.h"
#include "check/reference.h"

#include <math.h>

enum { M = PRODUCT_M, N = PRODUCT_N, K = PRODUCT_K };

static double error_of(const float *x, const float *y, const float *z)
{
    double wrong = 0, squares = 0;
#pragma omp parallel for reduction(+ : wrong, squares)
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double exact = 0;
            for (int k = 0; k < K; k++) exact += (double)x[i * K + k] * (double)y[k * N + j];
            wrong += pow((double)z[i * N + j] - exact, 2);
            squares += exact * exact;
        }
    return sqrt(wrong / squares);
}

static enum status run_matmul(struct device_matmul *m, enum dtype dtype, double *ret_error,
                              struct arena *a)
{
    float *x = ARENA_NEW(a, float, M *K), *y = ARENA_NEW(a, float, K *N);
    float *z = ARENA_NEW(a, float, M *N);
    void *of_x = ARENA_NEW(a, float, M *K), *of_y = ARENA_NEW(a, float, K *N);
    rng_normals(1, RNG_TEST, 1, 0, M * K, x);
    rng_normals(1, RNG_TEST, 2, 0, K * N, y);
    TRY(reference_convert(of_x, dtype, x, DT_F32, M * K));
    TRY(reference_convert(of_y, dtype, y, DT_F32, K * N));
    TRY(device_matmul_open(m, of_x, of_y, NULL));
    TRY(device_matmul_start(m));
    TRY(device_matmul_result(m, z));
    *ret_error = error_of(x, y, z);
    return ST_OK;
}

enum status product_error(const struct device *device, enum machine_precision precision,
                          double *ret_error)
{
    static const int64_t size[] = {M, N, K};
    struct arena a = {0};
    struct target target;
    void *context;
    struct device_matmul m;
    enum dtype dtype = precision == MACHINE_BF16 ? DT_BF16 : DT_F32;
    const struct device_matmul_types types = {dtype, dtype, dtype, precision == MACHINE_TF32,
                                              false};
    *ret_error = NAN;
    TRY(backend_target(device->backend, device->number, &target));
    TRY(device->backend->open(device->number, &context));
    device_matmul_find(&m, device->backend, context, &target, &types, size);
    enum status st = m.kernel ? run_matmul(&m, dtype, ret_error, &a) : ST_OK;
    device_matmul_close(&m);
    device->backend->close(context);
    arena_release(&a);
    return st;
}

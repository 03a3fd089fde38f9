#include "bench/product_error.h"

#include "backend/kernel.h"
#include "base/arena.h"
#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { M = PRODUCT_M, N = PRODUCT_N, K = PRODUCT_K };

struct product {
    const struct backend *backend;
    void *context;
    bool rounded; /* operands and result are bf16 */
    struct kernel_call call;
    const struct kernel *kernel;
};

/* To nearest, ties to even; x is finite. */
static uint16_t bf16_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float float_of(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

static enum status upload(struct product *p, int input, const float *x, struct arena *a)
{
    const struct type *type = &p->call.in_type[input];
    int64_t n = type_elements(type), bytes = type_bytes(type);
    uint16_t *half = ARENA_NEW(a, uint16_t, n);
    for (int64_t i = 0; p->rounded && i < n; i++) half[i] = bf16_of(x[i]);
    TRY(p->backend->memory.alloc(p->context, bytes, &p->call.in[input]));
    return p->backend->memory.upload(p->context, p->call.in[input],
                                     p->rounded ? (const void *)half : x, bytes);
}

static enum status download(struct product *p, float *ret, struct arena *a)
{
    const struct type *type = &p->call.out_type[0];
    uint16_t *half = ARENA_NEW(a, uint16_t, M * N);
    TRY(p->backend->stream.sync(p->context));
    TRY(p->backend->memory.download(p->context, p->rounded ? (void *)half : ret, p->call.out[0],
                                    type_bytes(type)));
    TRY(p->backend->stream.sync(p->context));
    for (int64_t i = 0; p->rounded && i < M * N; i++) ret[i] = float_of(half[i]);
    return ST_OK;
}

static enum status run(struct product *p, const float *x, const float *y, float *ret,
                       struct arena *a)
{
    const struct kernel *k = p->kernel;
    TRY(upload(p, 0, x, a));
    TRY(upload(p, 1, y, a));
    TRY(p->backend->memory.alloc(p->context, type_bytes(&p->call.out_type[0]), &p->call.out[0]));
    int64_t scratch = k->scratch_bytes ? k->scratch_bytes(k, &p->call) : 0;
    if (scratch) TRY(p->backend->memory.alloc(p->context, scratch, &p->call.scratch));
    if (k->prepare) TRY(k->prepare(k, &p->call));
    enum status st = k->run(&p->call);
    if (st == ST_OK) st = download(p, ret, a);
    if (k->release) k->release(&p->call);
    return st;
}

static void release(struct product *p)
{
    void *all[] = {p->call.in[0], p->call.in[1], p->call.out[0], p->call.scratch};
    for (int i = 0; i < COUNT_OF(all); i++)
        if (all[i]) p->backend->memory.free(p->context, all[i]);
}

static double error_of(const float *x, const float *y, const float *z)
{
    double wrong = 0, whole = 0;
#pragma omp parallel for reduction(+ : wrong, whole)
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double exact = 0;
            for (int k = 0; k < K; k++) exact += (double)x[i * K + k] * (double)y[k * N + j];
            wrong += pow((double)z[i * N + j] - exact, 2);
            whole += exact * exact;
        }
    return sqrt(wrong / whole);
}

enum status product_error(const struct device *device, enum machine_precision precision,
                          double *ret_error)
{
    static const union attr attr;
    struct arena a = {0};
    struct target target;
    enum dtype dtype = precision == MACHINE_BF16 ? DT_BF16 : DT_F32;
    struct product p = {.backend = device->backend, .rounded = dtype == DT_BF16};
    float *x = ARENA_NEW(&a, float, M *K), *y = ARENA_NEW(&a, float, K *N);
    float *z = ARENA_NEW(&a, float, M *N);
    rng_normals(1, RNG_TEST, 1, 0, M * K, x);
    rng_normals(1, RNG_TEST, 2, 0, K * N, y);
    *ret_error = NAN;
    enum status st = backend_target(p.backend, device->number, &target);
    if (st == ST_OK) st = p.backend->open(device->number, &p.context);
    if (st != ST_OK) {
        arena_release(&a);
        return st;
    }
    p.call = (struct kernel_call){.attr = &attr, .n_in = 2, .n_out = 1, .context = p.context};
    p.call.target = &target;
    p.call.in_type[0] = type_2d(dtype, M, K);
    p.call.in_type[1] = type_2d(dtype, K, N);
    p.call.out_type[0] = type_2d(dtype, M, N);
    p.call.numerics.tf32 = precision == MACHINE_TF32;
    p.kernel = p.backend->kernels.find(OP_MATMUL, &p.call, 0);
    if (p.kernel) {
        st = run(&p, x, y, z, &a);
        if (st == ST_OK) *ret_error = error_of(x, y, z);
    }
    release(&p);
    p.backend->close(p.context);
    arena_release(&a);
    return st;
}

/* GELU and its gradient as matmul epilogues compute them (pointwise/gelu.cuh): the error at single
 * points, which a check of whole matmuls by norm cannot see. Runs on a GPU of compute capability
 * 9.0, or on an emulated one (tests/e2e/test_gpu_hopper.sh). */
#include "backend/backend.h"
#include "base/str.h"

#include "../support/cases.h"
#include "../support/hand.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#ifdef HAVE_CUDA
#include "backend/cuda/runtime/launch.h"

enum { POINTS = 1 << 12 };

static const char text[] = "#include \"gelu.cuh\"\n"
                           "KERNEL(256) points(float *y, float *grad, const float *x)\n"
                           "{\n"
                           "    int i = blockIdx.x * 256 + threadIdx.x;\n"
                           "    y[i] = fast_gelu<TANH>(x[i]);\n"
                           "    grad[i] = fast_grad<TANH>(2.0f, x[i]);\n"
                           "}\n";

static bool approximate;

static void write_text(const struct kernel_call *c, struct str *s)
{
    (void)c;
    str_append(s, text);
}

static void launches(const struct kernel_call *c, struct cuda_launches *l)
{
    (void)c;
    struct cuda_launch *k = launch_add(l, "points.cu", "points", POINTS / 256, 256);
    k->write = write_text;
    launch_define(k, "TANH", approximate);
    args_out(k, 0, "y grad");
    arg_in(k, "x", 0);
}
static const struct cuda_row row = CUDA_ROW(LEAF, "points", NULL, NULL, NULL, launches);

static double gelu(double x)
{
    double inner = sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    return approximate ? 0.5 * x * (1 + tanh(inner)) : 0.5 * x * erfc(-x * M_SQRT1_2);
}
static double slope(double x)
{
    if (!approximate) return 0.5 * erfc(-x * M_SQRT1_2) + x * exp(-0.5 * x * x) / sqrt(2 * M_PI);
    double t = tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

/* From -12 to 12, and numbers so large that their squares are infinite. */
static float point(int i)
{
    static const float large[] = {-3e38f, -1e20f, 1e20f, 3e38f};
    return i < COUNT_OF(large) ? large[i] : 24.0f * (float)i / POINTS - 12.0f;
}

/* The hardware's tanh of compute capability 9.0 was measured to be off by 8e-6. */
static void compare(const float *y, const float *grad)
{
    const double most = approximate ? 3e-5 : 1.2e-4;
    for (int i = 0; i < POINTS; i++) {
        double x = point(i), scale = fmax(1, fabs(x));
        if (!(fabs(y[i] - gelu(x)) <= most * scale) || !(fabs(grad[i] / 2 - slope(x)) <= most))
            fail_msg("at %g: %g and %g, not %g and %g", x, (double)y[i], (double)grad[i] / 2,
                     gelu(x), slope(x));
    }
}

static void run_kernel(const struct backend *b, struct kernel_call *call)
{
    static float x[POINTS], y[POINTS], grad[POINTS];
    for (int i = 0; i < POINTS; i++) x[i] = point(i);
    hand_ok(b->memory.upload(call->context, call->in[0], x, sizeof x));
    hand_ok(cuda_prepare(&row.kernel, call));
    hand_ok(cuda_run(call));
    hand_ok(b->memory.download(call->context, y, call->out[0], sizeof y));
    hand_ok(b->memory.download(call->context, grad, call->out[1], sizeof grad));
    cuda_release(call);
    compare(y, grad);
}

static void test_points(void **state)
{
    (void)state;
    const struct backend *b = backend_find("cuda");
    struct kernel_call call = {.context = NULL};
    if (!b || b->devices.count() == 0) {
        SKIP("there is no GPU");
    }
    struct target target;
    hand_ok(backend_target(b, 0, &target));
    call.target = &target;
    call.n_in = 1;
    call.n_out = 2;
    hand_ok(b->open(0, &call.context));
    if (!cuda_hopper(&call)) {
        b->close(call.context);
        SKIP("there is no GPU of compute capability 9.0");
    }
    void **memory[] = {&call.in[0], &call.out[0], &call.out[1]};
    for (int i = 0; i < COUNT_OF(memory); i++)
        hand_ok(b->memory.alloc(call.context, POINTS * sizeof(float), memory[i]));
    for (int i = 0; i < 2; i++) {
        approximate = i;
        run_kernel(b, &call);
        print_message("%s\n", approximate ? "tanh" : "erf");
    }
    for (int i = 0; i < COUNT_OF(memory); i++) b->memory.free(call.context, *memory[i]);
    b->close(call.context);
}
#else
static void test_points(void **state)
{
    (void)state;
    SKIP("built without the CUDA toolkit's headers");
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_points)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

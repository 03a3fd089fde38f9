/* The functions of common/hopper.cuh and their launch arguments (launch.h): a matmul that uses all
 * of them (hopper.cu) against plain loops, on small integers, whose sums are exact. Runs on a GPU
 * of compute capability 9.0, or on an emulated one (tests/e2e/test_gpu_hopper.sh). With a number as
 * argument, for that script, the matmul omits a necessary part. */
#include "backend/backend.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/str.h"

#include "../support/cases.h"
#include "../support/hand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef HAVE_CUDA
#include "backend/cuda/runtime/launch.h"

enum {
    BATCH = 2,
    ROWS = 100, /* of the kernel's 128 */
    ROWS_PITCH = 104,
    SUM = 150, /* of the kernel's 192 */
    SUM_PITCH = 152,
    COLUMNS_MOST = 192,
    NO_NUMBER = 0x7fff,
    UNTOUCHED = 0xffff
};

/* One matmul: its columns, the swizzle of both operands in bytes, whether k is the row of each
 * operand, and whether a goes through registers. */
static const struct shape {
    int columns, span;
    bool a_by_sum, b_by_sum, a_registers;
} shapes[] = {
    {64, 128, false, false, false}, {128, 128, true, true, false}, {192, 128, false, true, true},
    {96, 64, false, true, false},   {32, 64, true, false, false},  {64, 64, false, false, true},
    {16, 32, false, true, false},   {96, 32, true, true, false},   {128, 32, false, false, true},
};

static const struct shape *now;
static int fault;
static struct arena texts;
static char *text;

struct world {
    const struct backend *backend;
    struct target target;
    struct kernel_call call;
    uint16_t *a, *b;
    float *bias;
    void *device[6];
};

static int number_at(int i, int salt)
{
    return (int)((uint32_t)(i * 2654435761u + (uint32_t)salt * 40503u) >> 13) % 3 - 1;
}
static int a_at(int batch, int row, int k)
{
    return number_at((batch * ROWS + row) * SUM + k, 1);
}
static int b_at(int batch, int k, int column)
{
    return number_at((batch * SUM + k) * COLUMNS_MOST + column, 2);
}

static uint16_t bf16_of(float a)
{
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static int64_t elements_a(void)
{
    return BATCH * (now->a_by_sum ? SUM * ROWS_PITCH : ROWS * SUM_PITCH);
}
static int64_t elements_b(void)
{
    return BATCH * (int64_t)now->columns * (now->b_by_sum ? SUM : SUM_PITCH);
}

/* The padding of rows must not be read: it holds NO_NUMBER. */
static void generate(struct world *w)
{
    w->a = malloc(2 * (size_t)elements_a());
    w->b = malloc(2 * (size_t)elements_b());
    w->bias = malloc(sizeof *w->bias * (size_t)now->columns);
    for (int64_t i = 0; i < elements_a(); i++) w->a[i] = NO_NUMBER;
    for (int64_t i = 0; i < elements_b(); i++) w->b[i] = NO_NUMBER;
    for (int t = 0; t < BATCH; t++)
        for (int k = 0; k < SUM; k++) {
            for (int r = 0; r < ROWS; r++)
                w->a[now->a_by_sum ? (t * SUM + k) * ROWS_PITCH + r
                                   : (t * ROWS + r) * SUM_PITCH + k] =
                    bf16_of((float)a_at(t, r, k));
            for (int c = 0; c < now->columns; c++)
                w->b[now->b_by_sum ? (t * SUM + k) * now->columns + c
                                   : (t * now->columns + c) * SUM_PITCH + k] =
                    bf16_of((float)b_at(t, k, c));
        }
    for (int c = 0; c < now->columns; c++) w->bias[c] = (float)number_at(c, 3);
}

/* A batch of matrices whose rows are `pitch` elements apart. */
static struct cuda_tensor matrix(int64_t rows, int64_t columns, int64_t pitch, int box_rows,
                                 int box_columns)
{
    return (struct cuda_tensor){.dtype = DT_BF16,
                                .dim = {columns, 1, 1, rows, BATCH},
                                .step = {0, 16, 16, 2 * pitch, 2 * pitch * rows},
                                .box = {box_columns, 1, 1, box_rows, 1},
                                .swizzle = 2 * box_columns};
}

static void write_text(const struct kernel_call *c, struct str *s)
{
    (void)c;
    str_append(s, text);
}

static void add_launch(struct cuda_launches *l)
{
    int n = now->columns, wide = now->span / 2, out = n % 64 == 0 ? 64 : n % 32 == 0 ? 32 : 16;
    struct cuda_launch *k = launch_add(l, "hopper.cu", "matmul", BATCH, 384);
    k->write = write_text;
    k->arch = 90;
    launch_define(k, "COLUMNS", n);
    launch_define(k, "SPAN", now->span);
    launch_define(k, "A_BY_SUM", now->a_by_sum);
    launch_define(k, "B_BY_SUM", now->b_by_sum);
    launch_define(k, "A_REGISTERS", now->a_registers);
    launch_define(k, "FAULT", fault);
    struct cuda_tensor a = now->a_by_sum ? matrix(SUM, ROWS, ROWS_PITCH, 64, wide)
                                         : matrix(ROWS, SUM, SUM_PITCH, 128, wide);
    struct cuda_tensor b =
        now->b_by_sum ? matrix(SUM, n, n, 64, wide) : matrix(n, SUM, SUM_PITCH, n, wide);
    struct cuda_tensor c = matrix(ROWS, n, n, 64, out);
    struct cuda_tensor transposed = matrix(n, ROWS, ROWS_PITCH, n, 64);
    arg_tensor_map(k, "a", ARG_IN, 0, &a);
    arg_tensor_map(k, "b", ARG_IN, 1, &b);
    arg_tensor_map(k, "c", ARG_OUT, 0, &c);
    arg_tensor_map(k, "ct", ARG_OUT, 1, &transposed);
    arg_in(k, "bias", 2);
    arg_out(k, "sums", 2);
    arg_i32(k, "k", SUM);
    k->shared_bytes = (unsigned)(1024 + 2 * 2 * 64 * (128 + n) + 2 * 64 * n * 4 + n * 4 + 40);
    k->dependent = true;
}

/* Two launches, so that the second may begin before the first has ended. */
static void launches(const struct kernel_call *c, struct cuda_launches *l)
{
    (void)c;
    launch_zero_out(l, 2, (int64_t)BATCH * 128 * now->columns * 4);
    add_launch(l);
    add_launch(l);
}
static const struct cuda_row row = CUDA_ROW(LEAF, "hopper", NULL, NULL, NULL, launches);

/* Compares all outputs; nothing may be written after the last row. */
static void compare(struct world *w)
{
    int n = now->columns;
    int64_t bytes[3] = {(int64_t)BATCH * ROWS * n * 2, (int64_t)BATCH * n * ROWS_PITCH * 2,
                        (int64_t)BATCH * 128 * n * 4};
    void *host[3];
    for (int i = 0; i < 3; i++) {
        host[i] = malloc((size_t)bytes[i]);
        hand_ok(w->backend->memory.download(w->call.context, host[i], w->call.out[i], bytes[i]));
    }
    const uint16_t *c = host[0], *transposed = host[1];
    const float *sums = host[2];
    for (int t = 0; t < BATCH; t++)
        for (int column = 0; column < n; column++)
            for (int r = 0; r < 128; r++) {
                float wanted = w->bias[column];
                for (int k = 0; k < SUM && r < ROWS; k++)
                    wanted += (float)(a_at(t, r, k) * b_at(t, k, column));
                int thread = r % 64 / 16 * 32 + r % 8 * 4 + column % 8 / 2,
                    i = column / 8 * 4 + r / 8 % 2 * 2 + column % 2;
                float sum = sums[((2 * t + r / 64) * (n / 2) + i) * 128 + thread];
                if (sum != 2 * wanted)
                    fail_msg("sum %d, %d, %d: %g, not %g", t, r, column, (double)sum,
                             (double)(2 * wanted));
                if (r < ROWS) {
                    assert_int_equal(c[(t * ROWS + r) * n + column], bf16_of(wanted));
                    assert_int_equal(transposed[(t * n + column) * ROWS_PITCH + r],
                                     bf16_of(wanted));
                } else if (r < ROWS_PITCH) {
                    assert_int_equal(transposed[(t * n + column) * ROWS_PITCH + r], UNTOUCHED);
                }
            }
    for (int i = 0; i < 3; i++) free(host[i]);
}

/* Allocates the outputs and fills them with a value that no kernel writes. */
static void alloc_outputs(struct world *w)
{
    const int64_t bytes[3] = {(int64_t)BATCH * ROWS * now->columns * 2,
                              (int64_t)BATCH * now->columns * ROWS_PITCH * 2,
                              (int64_t)BATCH * 128 * now->columns * 4};
    for (int i = 0; i < 3; i++) {
        hand_ok(w->backend->memory.alloc(w->call.context, bytes[i], &w->call.out[i]));
        hand_ok(w->backend->memory.fill(w->call.context, w->call.out[i], 0xff, bytes[i]));
    }
}
static void free_outputs(struct world *w, void *const *out)
{
    for (int i = 0; i < 3; i++) w->backend->memory.free(w->call.context, out[i]);
}

static void alloc_inputs(struct world *w)
{
    const int64_t bytes[3] = {2 * elements_a(), 2 * elements_b(), 4ll * now->columns};
    const void *from[3] = {w->a, w->b, w->bias};
    w->call.n_in = w->call.n_out = 3;
    for (int i = 0; i < 3; i++) {
        hand_ok(w->backend->memory.alloc(w->call.context, bytes[i], &w->call.in[i]));
        hand_ok(w->backend->memory.upload(w->call.context, w->call.in[i], from[i], bytes[i]));
    }
}

/* Runs, runs at other addresses, captures and replays. */
static void run_shape(struct world *w)
{
    void *recording, *first[3];
    generate(w);
    alloc_inputs(w);
    alloc_outputs(w);
    hand_ok(cuda_prepare(&row.kernel, &w->call));
    hand_ok(cuda_run(&w->call));
    compare(w);
    memcpy(first, w->call.out, sizeof first);
    alloc_outputs(w);
    hand_ok(cuda_run(&w->call));
    compare(w);
    hand_ok(w->backend->recording->begin(w->call.context));
    hand_ok(cuda_run(&w->call));
    hand_ok(w->backend->recording->end(w->call.context, &recording));
    hand_ok(w->backend->memory.fill(w->call.context, w->call.out[2], 0xff, 4));
    hand_ok(w->backend->recording->replay(w->call.context, recording));
    compare(w);
    w->backend->recording->free(w->call.context, recording);
    cuda_release(&w->call);
    free_outputs(w, w->call.out);
    free_outputs(w, first);
    free_outputs(w, w->call.in);
    free(w->a), free(w->b), free(w->bias);
}

static bool open(struct world *w)
{
    *w = (struct world){.backend = backend_find("cuda")};
    if (!w->backend || w->backend->devices.count() == 0) return false;
    hand_ok(backend_target(w->backend, 0, &w->target));
    w->call.target = &w->target;
    hand_ok(w->backend->open(0, &w->call.context));
    if (cuda_hopper(&w->call)) return true;
    w->backend->close(w->call.context);
    return false;
}

static void test_matmuls(void **state)
{
    (void)state;
    struct world w;
    int64_t bytes;
    if (!open(&w)) {
        SKIP("there is no GPU of compute capability 9.0");
    }
    hand_ok(file_read("tests/backend/hopper.cu", &texts, &text, &bytes));
    for (int i = 0; i < COUNT_OF(shapes); i++) {
        now = &shapes[i];
        if (fault && i) break;
        print_message("%d columns, swizzle of %d bytes\n", now->columns, now->span);
        run_shape(&w);
    }
    w.backend->close(w.call.context);
    arena_release(&texts);
}
#else
static void test_matmuls(void **state)
{
    (void)state;
    SKIP("built without the CUDA toolkit's headers");
}
#endif

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_matmuls)};
#ifdef HAVE_CUDA
    if (argc > 1) fault = atoi(argv[1]);
#else
    (void)argc, (void)argv;
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}

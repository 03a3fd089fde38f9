/* Each distinct call of a step with every row that accepts it; timing does not change the step. */
#include "bench/bench_kernels.h"

#include "../support/cases.h"
#include "../support/hand.h"
#include "../support/tiny.h"
#include "backend/backend.h"
#include "backend/kernel.h"
#include "engine/tune.h"
#include "measure/random_step.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

static const unsigned TRAINING = 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE;

static struct machine machine(void)
{
    return (struct machine){.threads = 1,
                            .peak = {{.precision = MACHINE_F32, .flops = 1e12}},
                            .peaks = 1,
                            .copy = {{1 << 14, 1e12, 1e12}, {1 << 30, 1e11, 1e11}},
                            .copies = 2};
}

static const struct bench_call *find(const struct bench_kernels *k, enum op op)
{
    for (int i = 0; i < k->calls; i++)
        if (k->call[i].op == op) return &k->call[i];
    fail_msg("no %s", op_def(op)->name);
    return NULL;
}

static int64_t calls_of(const struct bench_kernels *k, enum op op)
{
    int64_t n = 0;
    for (int i = 0; i < k->calls; i++)
        if (op == OP_COUNT || k->call[i].op == op) n += k->call[i].per_step;
    return n;
}

static void test_every_call_is_found(void **state)
{
    (void)state;
    struct tiny t;
    struct bench_kernels k;
    struct config c = tiny_config();
    c.model.dropout = 0.25;
    c.model.bias = true;
    c.train.gradient_accumulation_steps = 3;
    tiny_open(&t, &c, TRAINING | 1u << GRAPH_MICRO_MORE);
    bench_calls_find(&t.engine.program, OP_COUNT, &k, &t.arena);
    const struct plan *p = t.engine.program.plan;
    assert_int_equal(calls_of(&k, OP_COUNT), plan_kernels(&p[GRAPH_MICRO]) +
                                                 2 * plan_kernels(&p[GRAPH_MICRO_MORE]) +
                                                 plan_kernels(&p[GRAPH_UPDATE]));
    double flops = 0, all = plan_cost(&p[GRAPH_MICRO]).flops + plan_cost(&p[GRAPH_UPDATE]).flops +
                            2 * plan_cost(&p[GRAPH_MICRO_MORE]).flops;
    int rows = 0;
    for (int i = 0; i < k.calls; i++) {
        const struct bench_call *call = &k.call[i];
        int taken = 0;
        for (int r = 0; r < call->rows; r++) taken += call->row[r].taken;
        assert_int_equal(taken, 1);
        assert_string_equal(call->row[call->rows - 1].kernel->variant,
                            call->op == OP_CAST ? call->row[call->rows - 1].kernel->variant
                                                : "ref");
        rows += call->rows;
        flops += (double)call->per_step * call->cost.flops;
    }
    assert_int_equal(rows, k.rows);
    assert_true(flops > 0.999999 * all && flops < 1.000001 * all);

    /* Layers differ only in the site of their dropouts. */
    const struct bench_call *attention = find(&k, OP_ATTENTION);
    assert_int_equal(attention->per_step, 2 * 3);
    assert_string_equal(attention->shape, "f32 (3,16,96)");
    assert_string_equal(attention->where, "h.0.attn");
    assert_int_equal(calls_of(&k, OP_ATTENTION), 2 * 3);
    assert_string_equal(find(&k, OP_LINEAR)->shape, "48 x 96 x 32");

    struct bench_kernels one;
    bench_calls_find(&t.engine.program, OP_ATTENTION, &one, &t.arena);
    assert_int_equal(one.calls, 1);
    tiny_close(&t);
}

/* Matmuls of square matrices that differ only in a transpose are distinct calls. */
static void test_attributes_distinguish_calls(void **state)
{
    (void)state;
    struct tiny t;
    struct bench_kernels k;
    struct config c = tiny_config();
    c.model.n_embd = 48; /* as many columns as B x T */
    tiny_open(&t, &c, TRAINING);
    bench_calls_find(&t.engine.program, OP_MATMUL, &k, &t.arena);
    int square = 0;
    for (int i = 0; i < k.calls; i++) square += !strncmp(k.call[i].shape, "48 x 48 x 48", 12);
    assert_int_equal(square, 3); /* forward, by x (tb), by w (ta) */
    for (int i = 0; i < k.calls; i++)
        for (int j = 0; j < i; j++)
            if (!strcmp(k.call[i].shape, k.call[j].shape) &&
                type_same(&t.engine.program.plan[GRAPH_MICRO].step[k.call[i].step].call.in_type[0],
                          &t.engine.program.plan[GRAPH_MICRO].step[k.call[j].step].call.in_type[0]))
                fail_msg("%s twice", k.call[i].shape);
    tiny_close(&t);
}

/* A GPU's library fuses GELU, its gradient and column sums into matmuls: the number of matmuls and
 * their precision stay the same. */
static void test_fused_matmuls_are_matmuls(void **state)
{
    (void)state;
    struct arena arena = {0};
    int64_t products[2] = {0}, fused = 0;
    if (!backend_find("cuda")) SKIP("built without the CUDA toolkit's headers");
    for (int full = 0; full < 2; full++) {
        struct program p;
        struct bench_kernels k;
        struct config c = tiny_config();
        c.model.bias = true;
        c.model.gelu = GELU_TANH;
        c.plan.device = DEVICE_CUDA_0;
        c.plan.dtype = PRECISION_TFLOAT32;
        c.plan.fusion = full ? FUSION_FULL : FUSION_OP;
        hand_ok(program_for(&p, &c, TINY_VOCAB, TRAINING, "cuda", &arena));
        bench_calls_find(&p, OP_COUNT, &k, &arena);
        for (int i = 0; i < k.calls; i++) {
            const struct bench_call *call = &k.call[i];
            if (!matmuls_include(call->op)) continue;
            products[full] += call->per_step;
            fused += call->op != OP_MATMUL && call->op != OP_LINEAR;
            assert_true(call->precision == MACHINE_TF32);
            if (call->op == OP_LINEAR_GELU) assert_string_equal(call->shape, "48 x 128 x 32");
        }
    }
    assert_true(fused > 0);
    assert_int_equal(products[0], products[1]);
    arena_release(&arena);
}

static void count_rows(void *user, int done, int rows, const struct bench_call *c)
{
    int *last = user;
    if (done < last[0] || done > rows || !c) last[1] = 1;
    last[0] = done;
}

static void test_times_and_shares(void **state)
{
    (void)state;
    struct tiny t, straight;
    struct bench_kernels k;
    struct machine m = machine();
    struct config c = tiny_config();
    int seen[2] = {0};
    struct bench_kernels_options o = {.op = OP_COUNT,
                                      .samples = 3,
                                      .limit_ms = 100,
                                      .machine = &m,
                                      .each = count_rows,
                                      .user = seen};
    tiny_open(&t, &c, TRAINING);
    if (bench_kernels_run(&t.engine, &o, &k, &t.arena) != ST_OK) fail_msg("%s", fail_message());
    assert_true(seen[0] == k.rows && !seen[1]);
    for (int i = 0; i < k.calls; i++) {
        const struct bench_call *call = &k.call[i];
        assert_true(i == 0 || call->ms_per_step <= k.call[i - 1].ms_per_step);
        for (int r = 0; r < call->rows; r++) {
            const struct bench_row *row = &call->row[r];
            assert_true(!row->left_out && row->ms.n >= 1 && row->ms.median > 0);
            assert_true(row->share > 0 && row->share < 1);
            double seconds = row->ms.median * 1e-3;
            double by_flops = call->cost.flops / seconds / 1e12;
            struct ceilings top = machine_ceilings(&m);
            double by_bytes = call->cost.bytes / seconds / floor_copy_rate(&top, call->cost.bytes);
            double larger = by_flops > by_bytes ? by_flops : by_bytes;
            assert_true(row->share > 0.999 * larger && row->share < 1.001 * larger);
            assert_true(row->by_bytes == (by_bytes > by_flops));
        }
    }
    assert_int_equal(k.matmuls.kernels, calls_of(&k, OP_MATMUL));
    assert_true(k.matmuls.kernels > 20 && k.matmuls.flops > 0 && k.matmuls_ms.n == 3);

    /* The measured step has the same result as any other, bit for bit. */
    struct random_step random_step;
    tiny_open(&straight, &c, TRAINING);
    assert_int_equal(random_step_init(&random_step, &straight.engine, &straight.arena), ST_OK);
    static const enum graph_kind kinds[] = {GRAPH_MICRO, GRAPH_UPDATE};
    for (int i = 0; i < COUNT_OF(kinds); i++) {
        struct sequence plan;
        sequence_init_plan(&plan, &straight.engine, kinds[i], NULL, &straight.arena);
        assert_int_equal(random_step_feed(&random_step, &plan, 0, 0), ST_OK);
        assert_int_equal(sequence_start(&plan, NULL), ST_OK);
    }
    size_t bytes = (size_t)t.engine.program.model.elements * sizeof(float);
    assert_memory_equal(tiny_range(&t, STORAGE_WEIGHTS), tiny_range(&straight, STORAGE_WEIGHTS),
                        bytes);
    assert_memory_equal(tiny_range(&t, STORAGE_MOMENT2), tiny_range(&straight, STORAGE_MOMENT2),
                        bytes);
    tiny_close(&straight);
    tiny_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_call_is_found),
        cmocka_unit_test(test_attributes_distinguish_calls),
        cmocka_unit_test(test_fused_matmuls_are_matmuls),
        cmocka_unit_test(test_times_and_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

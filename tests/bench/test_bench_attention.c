/* Attention alone: the graphs that run, the contents of a cell, and reasons not to run. */
#include "bench/bench_attention.h"

#include "backend/backend.h"
#include "base/arena.h"
#include "base/interrupt.h"
#include "base/threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <string.h>

enum { USUAL = 1u << SLOW_PRIMITIVE | 1u << SLOW_OP | 1u << SLOW_FULL | 1u << FLASH };

static struct arena arena;
static struct attention_cell *cell;
static int cells;

static int release(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static struct attention_options small(void)
{
    threads_set(1);
    return (struct attention_options){.device = {backend_find("cpu"), 0},
                                      .heads = 2,
                                      .head_size = {8},
                                      .head_sizes = 1,
                                      .causal = {true},
                                      .masks = 1,
                                      .ways = USUAL,
                                      .tokens = 256,
                                      .length = {32, 64, 128},
                                      .lengths = 3,
                                      .precision = {MACHINE_F32},
                                      .precisions = 1,
                                      .samples = 4,
                                      .limit_ms = 60000,
                                      .memory_limit = -1};
}

static void run_bench(const struct attention_options *o)
{
    if (bench_attention_run(o, &cell, &cells, &arena) != ST_OK) fail_msg("%s", fail_message());
    assert_int_equal(cells,
                     o->head_sizes * o->masks * o->lengths * o->precisions * ATTENTION_VARIANTS);
}

static bool asked_for(const struct attention_options *o, int way)
{
    return o->ways >> way & 1;
}

static void count(void *user, double done, double all, const struct attention_cell *c)
{
    double *last = user;
    if (done < last[0] || done > all || c->precision != MACHINE_F32 || c->T < 32 || c->D != 8)
        last[1] = 1;
    last[0] = done;
}

static void test_every_variant_at_every_length(void **state)
{
    (void)state;
    struct attention_options o = small();
    double seen[2] = {0};
    o.each = count;
    o.user = seen;
    run_bench(&o);
    assert_true(seen[0] == 32 + 64 + 128 + 3 * 128.0 / 8 && seen[1] == 0);
    for (int i = 0; i < cells; i++) {
        const struct attention_cell *c = &cell[i], *next = c + ATTENTION_VARIANTS;
        assert_int_equal(c->way, i % ATTENTION_VARIANTS);
        assert_true(c->T == o.length[i / ATTENTION_VARIANTS] && c->B * c->T == o.tokens);
        assert_true(c->H == 2 && c->KV == 2 && c->D == 8 && c->causal);
        assert_true(c->error_y == -1 && c->error_dqkv == -1);
        if (!asked_for(&o, c->way)) continue;
        if (c->reason) fail_msg("%s", c->reason);
        assert_int_equal(c->both.n, 4);
        assert_true(c->forward.median > 0 && c->backward.median > 0);
        double T = (double)c->T, forward = 4.0 * 16 * (double)c->B * T * T / 2;
        assert_true(c->forward_flops == forward && c->backward_flops == 2.5 * forward);
        if (i + ATTENTION_VARIANTS >= cells) continue;
        double grows = (double)next->bytes / (double)c->bytes;
        if (c->way == FLASH) /* except one number per row */
            assert_true(grows < 1.05);
        else /* approaches twice as much: T x T matrices, same number of tokens */
            assert_true(grows > 1.3 && grows < 2.05);
    }
    /* higher rungs have fewer kernels; flash has one forward and one backward */
    assert_true(cell[SLOW_PRIMITIVE].kernels > cell[SLOW_OP].kernels);
    assert_true(cell[SLOW_OP].kernels > cell[SLOW_FULL].kernels);
    assert_int_equal(cell[FLASH].kernels, 2);
    assert_true(cell[FLASH].kernel[0] && cell[FLASH].kernel[1] && !cell[SLOW_FULL].kernel[0]);
}

/* Cells are ordered by head size, mask, length, type, variant; check their FLOPs and errors. */
static void test_sizes_masks_and_types(void **state)
{
    (void)state;
    struct attention_options o = small();
    o.head_sizes = 2;
    o.head_size[1] = 16;
    o.masks = 2; /* causal, full */
    o.lengths = 2;
    o.precisions = 2;
    o.precision[1] = MACHINE_BF16;
    o.heads = 0;
    o.columns = 32;
    o.check = true;
    run_bench(&o);
    for (int i = 0; i < cells; i++) {
        const struct attention_cell *c = &cell[i];
        int at = i / ATTENTION_VARIANTS;
        assert_true(c->precision == o.precision[at % 2] && c->T == o.length[at / 2 % 2]);
        assert_true(c->causal == !(at / 4 % 2) && c->D == o.head_size[at / 8]);
        assert_true(c->H == 32 / c->D && c->KV == c->H);
        if (!asked_for(&o, c->way)) continue;
        if (c->reason) fail_msg("%s", c->reason);
        double T = (double)c->T, all = 4.0 * 32 * (double)c->B * T * T;
        assert_true(c->forward_flops == (c->causal ? all / 2 : all));
        bool bf16 = c->precision == MACHINE_BF16;
        double least = bf16 ? 1e-4 : 1e-9, most = bf16 ? 1e-2 : 1e-6;
        assert_true(c->error_y > least && c->error_y < most);
        assert_true(c->error_dqkv > least && c->error_dqkv < most);
    }
}

/* Variants that differ only on a GPU run here, too, with one kernel forward and one backward. */
static void test_other_variants_of_flash(void **state)
{
    (void)state;
    struct attention_options o = small();
    o.ways = 1u << FLASH | 1u << FLASH_PORTABLE | 1u << FLASH_PORTABLE_DETERMINISTIC;
    run_bench(&o);
    for (int i = 0; i < cells; i++) {
        if (!asked_for(&o, cell[i].way)) {
            assert_string_equal(cell[i].reason, "not requested");
            continue;
        }
        assert_true(!cell[i].reason && cell[i].both.n == 4 && cell[i].kernels == 2);
        assert_true(attention_variant_is_flash(cell[i].way) && cell[i].kernel[1]);
    }
}

static void test_tiles_and_bounds(void **state)
{
    (void)state;
    struct attention_cell c = {
        .precision = MACHINE_BF16, .B = 3, .T = 300, .H = 4, .KV = 2, .D = 64};
    assert_true(attention_tiles(&c) == 3 * 4 * 9);
    c.causal = true;
    assert_true(attention_tiles(&c) == 3 * 4 * 6);
    c.T = 128;
    assert_true(attention_tiles(&c) == 3 * 4);
    c.forward_flops = 1e9;
    c.backward_flops = 2.5e9;
    struct machine m = {
        .gpu = true,
        .threads = 1,
        .peak = {{.precision = MACHINE_BF16, .flops = 1e12}},
        .peaks = 1,
        .copy = {{.bytes = 1 << 20, .moved = 1e14}, {.bytes = 1 << 30, .moved = 1e12}},
        .copies = 2};
    assert_true(attention_bound_ms(&c, &m, 0) == 1 && attention_bound_ms(&c, &m, 1) == 2.5);
    m.copy[1].moved = 1e8; /* 384 rows of 12 heads of 64 in bf16, twice the bytes backward */
    double bytes = 384.0 * 12 * 64 * 2, ms = bytes / 1e8 * 1e3;
    assert_true(attention_bound_ms(&c, &m, 0) > 0.999 * ms &&
                attention_bound_ms(&c, &m, 0) < 1.001 * ms);
    assert_true(attention_bound_ms(&c, &m, 1) > 1.999 * ms &&
                attention_bound_ms(&c, &m, 1) < 2.001 * ms);
    m.gpu = false; /* on a host the bandwidth of a copy of that size, in a cache, counts */
    assert_true(attention_bound_ms(&c, &m, 0) == 1);
    c.precision = MACHINE_F32; /* no peak of that type */
    assert_true(attention_bound_ms(&c, &m, 0) == 0);
}

/* Heads that share keys: the same FLOPs, fewer bytes if keys are not repeated. */
static void test_shared_keys(void **state)
{
    (void)state;
    struct attention_options o = small();
    run_bench(&o);
    const struct attention_cell *own = cell;
    o.kv_heads = 1;
    run_bench(&o);
    for (int i = 0; i < cells; i++) {
        if (!asked_for(&o, cell[i].way)) continue;
        if (cell[i].reason) fail_msg("%s", cell[i].reason);
        assert_true(cell[i].forward_flops == own[i].forward_flops && cell[i].forward.median > 0);
        if (cell[i].way == FLASH) assert_true(cell[i].bytes < own[i].bytes);
        assert_int_equal(cell[i].kernels, own[i].kernels);
    }
}

static void test_out_of_memory(void **state)
{
    (void)state;
    struct attention_options o = small();
    run_bench(&o);
    /* the slow variants need more; inputs are in memory twice, as the device is the host */
    int64_t flash = cell[2 * ATTENTION_VARIANTS + FLASH].bytes;
    o.memory_limit = flash + 2LL * 256 * (3 * 16 + 16) * (int64_t)sizeof(float);
    o.memory_limit--;
    run_bench(&o);
    assert_non_null(cell[2 * ATTENTION_VARIANTS + FLASH].reason);
    o.memory_limit++;
    run_bench(&o);
    for (int w = 0; w < ATTENTION_VARIANTS; w++) {
        const struct attention_cell *c = &cell[2 * ATTENTION_VARIANTS + w];
        if (!asked_for(&o, w)) continue;
        if (w == FLASH) {
            assert_null(c->reason);
            continue;
        }
        assert_memory_equal(c->reason, "needs ", 6);
        assert_non_null(strstr(c->reason, "are free"));
        assert_true(c->both.n == 0 && c->bytes > flash); /* the plan is known anyway */
    }
}

/* A refusal names what fits: that does, and one more does not. */
static void test_refusal_names_what_fits(void **state)
{
    (void)state;
    struct attention_options o = small();
    enum { T = 64, FITS = 2, BATCH = 5 };
    const int64_t columns = 3 * 16 + 16;
    o.ways = 1u << SLOW_OP;
    o.limited = true;
    o.lengths = 1;
    o.length[0] = T;
    o.tokens = FITS * T;
    run_bench(&o);
    o.memory_limit = cell[SLOW_OP].bytes + o.tokens * columns * (int64_t)sizeof(float);
    for (int64_t n = FITS; n <= BATCH; n++) {
        o.tokens = n * T;
        run_bench(&o);
        const char *reason = cell[SLOW_OP].reason;
        if (n == FITS)
            assert_null(reason);
        else
            assert_non_null(strstr(reason, "; a batch of 2 is the largest that fits"));
    }
    o.tokens = o.length[0] = T / 2;
    o.memory_limit = -1;
    run_bench(&o);
    o.memory_limit = cell[SLOW_OP].bytes + T / 2 * columns * (int64_t)sizeof(float);
    o.tokens = o.length[0] = T;
    run_bench(&o);
    assert_non_null(strstr(cell[SLOW_OP].reason, "; not even one sequence fits; T 32 would"));
    o.memory_limit = 1;
    run_bench(&o);
    assert_non_null(strstr(cell[SLOW_OP].reason, "; not even one sequence of one token fits"));
}

static void test_flash_only(void **state)
{
    (void)state;
    struct attention_options o = small();
    o.ways = 1u << FLASH;
    run_bench(&o);
    for (int i = 0; i < cells; i++) {
        if (cell[i].way == FLASH)
            assert_true(!cell[i].reason && cell[i].both.n == 4);
        else
            assert_string_equal(cell[i].reason, "not requested");
    }
}

static void test_out_of_time(void **state)
{
    (void)state;
    struct attention_options o = small();
    o.limit_ms = 0;
    run_bench(&o);
    for (int i = 0; i < cells; i++) {
        if (!asked_for(&o, cell[i].way)) continue;
        assert_true(cell[i].bytes > 0 && cell[i].kernels > 0);
        if (i < ATTENTION_VARIANTS) { /* nothing predicts the first length: one sample each */
            assert_int_equal(cell[i].both.n, 1);
            continue;
        }
        assert_non_null(strstr(cell[i].reason, "too long for the total of "));
        /* a skipped cell predicts the next length, too */
        double grows = cell[i].expected_ms / cell[i - ATTENTION_VARIANTS].expected_ms;
        assert_true(grows > 1.99 && grows < 2.01);
    }
}

/* A length that runs alone is predicted from a shorter one, too. */
static void test_prediction_from_a_shorter_length(void **state)
{
    (void)state;
    struct attention_options o = small();
    o.lengths = 1;
    run_bench(&o);
    const struct attention_cell *before = cell;
    o.length[0] = 128;
    o.limit_ms = 0;
    o.before = before;
    run_bench(&o);
    for (int w = 0; w < ATTENTION_VARIANTS; w++) {
        if (!(USUAL >> w & 1)) continue;
        double times = cell[w].expected_ms / before[w].expected_ms;
        assert_non_null(cell[w].reason);
        assert_non_null(strstr(cell[w].reason, "too long for the total of 0 s"));
        assert_true(times > 3.99 &&
                    times < 4.01); /* same number of tokens, four times the length */
    }
    o.all_ms = 1e9; /* a small part of the total */
    run_bench(&o);
    for (int w = 0; w < ATTENTION_VARIANTS; w++)
        assert_true(!(USUAL >> w & 1) || (!cell[w].reason && cell[w].both.n == 1));
}

static void stop_at_64(void *user, double done, double all, const struct attention_cell *c)
{
    (void)user, (void)done, (void)all;
    if (c->T == 64 && !interrupt_noted()) raise(SIGINT);
}

/* Cells measured before Ctrl-C are complete; the others have a shape and a reason. */
static void test_ctrl_c(void **state)
{
    (void)state;
    struct attention_options o = small();
    o.each = stop_at_64;
    o.ways &= ~(1u << SLOW_FULL);
    interrupt_catch();
    enum status st = bench_attention_run(&o, &cell, &cells, &arena);
    interrupt_release();
    assert_int_equal(st, ST_INTERRUPTED);
    assert_int_equal(cells, 3 * ATTENTION_VARIANTS);
    for (int i = 0; i < cells; i++) {
        const struct attention_cell *c = &cell[i];
        assert_true(c->way == (enum attention_variant)(i % ATTENTION_VARIANTS));
        assert_true(c->T == 32 << i / ATTENTION_VARIANTS && c->B * c->T == 256 && c->D == 8);
        if (!asked_for(&o, (int)c->way))
            assert_string_equal(c->reason, "not requested");
        else if (c->T == 32)
            assert_true(!c->reason && c->both.n == 4);
        else
            assert_string_equal(c->reason, "not reached: the run was stopped");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_every_variant_at_every_length, release),
        cmocka_unit_test_teardown(test_sizes_masks_and_types, release),
        cmocka_unit_test_teardown(test_other_variants_of_flash, release),
        cmocka_unit_test_teardown(test_tiles_and_bounds, release),
        cmocka_unit_test_teardown(test_shared_keys, release),
        cmocka_unit_test_teardown(test_out_of_memory, release),
        cmocka_unit_test_teardown(test_refusal_names_what_fits, release),
        cmocka_unit_test_teardown(test_flash_only, release),
        cmocka_unit_test_teardown(test_out_of_time, release),
        cmocka_unit_test_teardown(test_prediction_from_a_shorter_length, release),
        cmocka_unit_test_teardown(test_ctrl_c, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

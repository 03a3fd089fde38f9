/* Attention alone: which graphs are run, what a cell says, and why one is not run. */
#include "measure/bench_attention.h"

#include "backend/backend.h"
#include "base/arena.h"
#include "base/threads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

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
                                      .head_size = 8,
                                      .tokens = 256,
                                      .length = {32, 64, 128},
                                      .lengths = 3,
                                      .precision = {MACHINE_F32},
                                      .precisions = 1,
                                      .samples = 4,
                                      .limit_ms = 60000,
                                      .room = -1};
}

static void run(const struct attention_options *o)
{
    if (bench_attention_run(o, &cell, &cells, &arena) != ST_OK) fail_msg("%s", fail_message());
    assert_int_equal(cells, o->lengths * o->precisions * ATTENTION_WAYS);
}

static void count(void *user, double done, double all, enum machine_precision p, int64_t T)
{
    double *last = user;
    if (done < last[0] || done > all || p != MACHINE_F32 || T < 32) last[1] = 1;
    last[0] = done;
}

static void test_every_way_at_every_length(void **state)
{
    (void)state;
    struct attention_options o = small();
    double seen[2] = {0};
    o.each = count;
    o.user = seen;
    run(&o);
    assert_true(seen[0] == 32 + 64 + 128 + 3 * 128.0 / 8 && seen[1] == 0);
    for (int i = 0; i < cells; i++) {
        const struct attention_cell *c = &cell[i], *next = c + ATTENTION_WAYS;
        assert_int_equal(c->way, i % ATTENTION_WAYS);
        assert_true(c->T == o.length[i / ATTENTION_WAYS] && c->B * c->T == o.tokens);
        if (c->reason) fail_msg("%s", c->reason);
        assert_int_equal(c->both.n, 4);
        assert_true(c->forward.median > 0 && c->backward.median > 0);
        double T = (double)c->T, forward = 4.0 * 16 * (double)c->B * T * T / 2;
        assert_true(c->forward_flops == forward && c->backward_flops == 2.5 * forward);
        if (i + ATTENTION_WAYS >= cells) continue;
        double grows = (double)next->bytes / (double)c->bytes;
        if (c->way == FLASH) /* but for one number a row */
            assert_true(grows < 1.05);
        else /* towards twice as much: T x T matrices of as many tokens */
            assert_true(grows > 1.3 && grows < 2.05);
    }
    /* the higher the rung, the fewer kernels; flash is one forward and one backward */
    assert_true(cell[SLOW_PRIMITIVE].kernels > cell[SLOW_OP].kernels);
    assert_true(cell[SLOW_OP].kernels > cell[SLOW_FULL].kernels);
    assert_int_equal(cell[FLASH].kernels, 2);
}

/* Heads that share keys: as many FLOPs; fewer bytes where they are not repeated. */
static void test_shared_keys(void **state)
{
    (void)state;
    struct attention_options o = small();
    run(&o);
    const struct attention_cell *own = cell;
    o.kv_heads = 1;
    run(&o);
    for (int i = 0; i < cells; i++) {
        if (cell[i].reason) fail_msg("%s", cell[i].reason);
        assert_true(cell[i].forward_flops == own[i].forward_flops && cell[i].forward.median > 0);
        if (cell[i].way == FLASH) assert_true(cell[i].bytes < own[i].bytes);
        assert_int_equal(cell[i].kernels, own[i].kernels);
    }
}

static void test_no_room(void **state)
{
    (void)state;
    struct attention_options o = small();
    run(&o);
    /* slow ones need more there; what is fed lies on the device and, as that is the host, once more */
    int64_t flash = cell[2 * ATTENTION_WAYS + FLASH].bytes;
    o.room = flash + 2LL * 256 * (3 * 16 + 16) * (int64_t)sizeof(float);
    o.room--;
    run(&o);
    assert_non_null(cell[2 * ATTENTION_WAYS + FLASH].reason);
    o.room++;
    run(&o);
    for (int w = 0; w < ATTENTION_WAYS; w++) {
        const struct attention_cell *c = &cell[2 * ATTENTION_WAYS + w];
        if (w == FLASH) {
            assert_null(c->reason);
            continue;
        }
        assert_memory_equal(c->reason, "needs ", 6);
        assert_non_null(strstr(c->reason, "are free"));
        assert_true(c->both.n == 0 && c->bytes > flash); /* the plan is known all the same */
    }
}

static void test_flash_only(void **state)
{
    (void)state;
    struct attention_options o = small();
    o.ways = 1u << FLASH;
    run(&o);
    for (int i = 0; i < cells; i++) {
        if (cell[i].way == FLASH)
            assert_true(!cell[i].reason && cell[i].both.n == 4);
        else
            assert_string_equal(cell[i].reason, "not asked for");
    }
}

static void test_no_time(void **state)
{
    (void)state;
    struct attention_options o = small();
    o.limit_ms = 0;
    run(&o);
    for (int i = 0; i < cells; i++) {
        assert_true(cell[i].bytes > 0 && cell[i].kernels > 0);
        if (i < ATTENTION_WAYS) { /* nothing is known about the first: one sample of each */
            assert_int_equal(cell[i].both.n, 1);
            continue;
        }
        assert_non_null(strstr(cell[i].reason, "too long for the "));
        /* what was not run says what the next length would take, too */
        double grows = cell[i].expected_ms / cell[i - ATTENTION_WAYS].expected_ms;
        assert_true(grows > 1.99 && grows < 2.01);
    }
}

/* A length that runs alone is judged by a shorter one, too. */
static void test_a_length_before(void **state)
{
    (void)state;
    struct attention_options o = small();
    o.lengths = 1;
    run(&o);
    const struct attention_cell *before = cell;
    o.length[0] = 128;
    o.limit_ms = 0;
    o.before = before;
    run(&o);
    for (int w = 0; w < ATTENTION_WAYS; w++) {
        double times = cell[w].expected_ms / before[w].expected_ms;
        assert_non_null(cell[w].reason);
        assert_non_null(strstr(cell[w].reason, "too long for the 0 s of all"));
        assert_true(times > 3.99 && times < 4.01); /* as many tokens, four times as long */
    }
    o.all_ms = 1e9; /* next to nothing of all */
    run(&o);
    for (int w = 0; w < ATTENTION_WAYS; w++) assert_true(!cell[w].reason && cell[w].both.n == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_every_way_at_every_length, release),
        cmocka_unit_test_teardown(test_shared_keys, release),
        cmocka_unit_test_teardown(test_no_room, release),
        cmocka_unit_test_teardown(test_flash_only, release),
        cmocka_unit_test_teardown(test_no_time, release),
        cmocka_unit_test_teardown(test_a_length_before, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

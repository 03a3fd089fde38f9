/* The rungs: one change each, consistent numbers, and reasons if one is not run.
 * test: alone; it compares times */
#include "bench/ladder.h"

#include "../support/cases.h"
#include "../support/hand.h"
#include "../support/tiny.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/load.h"
#include "base/threads.h"
#include "measure/random_step.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PRIMITIVE, FP32, TF32, BF16, FULL, FLASH, PADDED, RUNGS }; /* on a CPU */

static struct arena arena;
static struct ladder ladder;

static int release(void **state)
{
    (void)state;
    arena_release(&arena);
    return 0;
}

static double low_peak; /* of both types, 0: realistic ones */

static struct machine machine(void)
{
    return (struct machine){
        .threads = 1,
        .peak = {{.precision = MACHINE_F32, .flops = low_peak > 0 ? low_peak : 2e12},
                 {.precision = MACHINE_BF16, .flops = low_peak > 0 ? low_peak : 8e12}},
        .peaks = 2};
}

static struct config config(void)
{
    struct config c, tiny = tiny_config();
    config_init(&c); /* sets every text */
    config_choose(&c, &(struct config_facts){0});
    c.model = tiny.model;
    c.data.batch_size = tiny.data.batch_size;
    c.plan = tiny.plan;
    return c;
}

static void run_steps(const struct config *c, int64_t vocab, int64_t room, int steps)
{
    struct machine m = machine();
    threads_set(1); /* more threads would mostly wait for each other */
    struct ladder_options o = {.config = c,
                               .vocab = vocab,
                               .room = room,
                               .steps = steps,
                               .limit_ms = 60000,
                               .machine = &m};
    if (ladder_run(&o, &ladder, &arena) != ST_OK) fail_msg("%s", fail_message());
}

static void run_ladder(const struct config *c, int64_t vocab, int64_t room)
{
    run_steps(c, vocab, room, 4);
}

static void note(void *user, const char *key, const char *in_a, const char *in_b)
{
    (void)in_a;
    char **words = user;
    *words = arena_printf(&arena, "%s%s--%s=%s", *words, **words ? " " : "", key, in_b);
}

static void test_each_differs_by_its_keys(void **state)
{
    (void)state;
    struct config c = config();
    run_ladder(&c, TINY_VOCAB, -1);
    assert_int_equal(ladder.rungs, RUNGS);
    for (int i = 0; i < RUNGS; i++) {
        const struct ladder_rung *r = &ladder.rung[i];
        if (i == TF32) { /* the rungs above it leave its change out */
            assert_non_null(strstr(r->reason, "dtype=tfloat32 needs a CUDA device"));
            continue;
        }
        if (r->reason) fail_msg("%s: %s", r->name, r->reason);
        char *words = "";
        int before = i == BF16 ? FP32 : i - 1;
        if (i) config_diff(&ladder.rung[before].config, &r->config, note, &words);
        if (i) assert_string_equal(words, r->differs);
        assert_true(r->precision == (i < BF16 ? MACHINE_F32 : MACHINE_BF16));
    }
    /* the first names every key, changed or not */
    static const char *const differs[RUNGS] = {
        "--dtype=float32 --fusion=primitive --flash=false --pad_vocab=0",
        "--fusion=op",
        "--dtype=tfloat32",
        "--dtype=bfloat16",
        "--fusion=full",
        "--flash=true",
        "--pad_vocab=64"};
    for (int i = 0; i < RUNGS; i++) assert_string_equal(ladder.rung[i].differs, differs[i]);
    assert_true(ladder_sets(&c, "flash", 5) && ladder_sets(&c, "pad_vocab", 9));
    assert_true(ladder_sets(&c, "replay", 6) && !ladder_sets(&c, "overlap", 7));
    assert_false(ladder_sets(&c, "flashy", 6) || ladder_sets(&c, "fla", 3));
    assert_false(ladder_sets(&c, "n_layer", 7) || ladder_sets(&c, "ranks", 5));
}

/* One rank, then the ways to sum gradients as they are taught; all start with the same loss. */
static void test_the_ladder_of_ranks(void **state)
{
    (void)state;
    static const struct {
        const char *name, *differs;
        int64_t ranks;
        enum overlap overlap;
    } wanted[] = {{"one rank", "--ranks=1 --overlap=none", 1, OVERLAP_NONE},
                  {"none", "--ranks=2 --overlap=none", 2, OVERLAP_NONE},
                  {"flat", "--overlap=flat", 2, OVERLAP_FLAT},
                  {"parameter", "--overlap=parameter", 2, OVERLAP_PARAMETER},
                  {"bucket", "--overlap=bucket", 2, OVERLAP_BUCKET}};
    struct config c = config();
    c.train.gradient_accumulation_steps = 4;
    c.ranks.count = 2;
    run_ladder(&c, TINY_VOCAB, -1);
    assert_int_equal(ladder.rungs, COUNT_OF(wanted));
    for (int i = 0; i < ladder.rungs; i++) {
        const struct ladder_rung *r = &ladder.rung[i], *first = &ladder.rung[0];
        if (r->reason) fail_msg("%s: %s", r->name, r->reason);
        assert_string_equal(r->name, wanted[i].name);
        assert_string_equal(r->differs, wanted[i].differs);
        assert_true(r->config.ranks.count == wanted[i].ranks);
        assert_true(r->config.ranks.overlap == wanted[i].overlap);
        assert_true(r->ms.n > 0 && r->facts.tokens == first->facts.tokens);
        assert_true(fabs(r->loss - first->loss) < 1e-6);
        /* the FLOPs of all ranks, but for the update, which each makes */
        assert_true(r->plan_share * r->ms.median >= first->plan_share * first->ms.median * 0.999);
    }
    assert_true(ladder_sets(&c, "overlap", 7) && !ladder_sets(&c, "flash", 5));
    assert_false(ladder_sets(&c, "ranks", 5) || ladder_sets(&c, "bucket_mb", 9));
}

/* A peak that was measured too low: shares are above 100 %, and the ladder says so. */
static void test_a_peak_that_is_too_low(void **state)
{
    (void)state;
    struct config c = config();
    low_peak = 1e6;
    run_steps(&c, TINY_VOCAB, -1, 2);
    low_peak = 0;
    assert_true(ladder.peak_exceeded);
    for (int i = 0; i < ladder.rungs; i++) {
        const struct ladder_rung *r = &ladder.rung[i];
        if (r->reason) continue;
        assert_true(r->mfu > 1 && r->plan_share > 1);
        /* bf16 has 8 bits of mantissa, f32 24 */
        assert_true(r->precision == MACHINE_BF16 ? r->error > 1e-3 : r->error < 1e-5);
    }
    run_steps(&c, TINY_VOCAB, -1, 2);
    assert_false(ladder.peak_exceeded);
}

/* Every rung after the first has a verdict beside the one before: by rounds if they ran in turn,
 * else as two series. */
static void test_verdicts(void **state)
{
    (void)state;
    struct config c = config();
    run_steps(&c, TINY_VOCAB, -1, 20);
    assert_string_equal(judge_name(&ladder.rung[0].speed), "");
    for (int i = 1; i < RUNGS; i++) {
        const struct ladder_rung *r = &ladder.rung[i];
        if (i == TF32) continue;
        assert_int_equal(r->speed.how, JUDGED_IN_TURNS);
        assert_true(r->speed.verdict.kind != VERDICT_NONE && !r->speed.verdict.apart);
        assert_int_equal(r->speed.verdict.pairs, 20);
        assert_true(r->speed.verdict.low <= r->speed.verdict.speed &&
                    r->speed.verdict.speed <= r->speed.verdict.high);
        assert_string_equal(judge_name(&r->speed), verdict_name(r->speed.verdict.kind));
    }
    int64_t most = 0;
    for (int i = 0; i < RUNGS; i++)
        if (ladder.rung[i].facts.total > most) most = ladder.rung[i].facts.total;
    run_steps(&c, TINY_VOCAB, most + most / 4, 8);
    assert_int_equal(ladder.order, LADDER_NO_ROOM);
    for (int i = 1; i < RUNGS; i++) {
        if (i == TF32) continue;
        assert_true(ladder.rung[i].speed.verdict.apart);
        assert_int_equal(ladder.rung[i].speed.verdict.pairs, 8);
    }
    ladder.rung[1].speed.how = JUDGED_SAME_PLAN;
    assert_string_equal(judge_name(&ladder.rung[1].speed), "same plan");
}

/* Rungs that ran apart while other programs used every processor get no verdict. */
static void test_a_busy_machine(void **state)
{
    (void)state;
    if (SANITIZED) SKIP("times say nothing with sanitizers");
    struct config c = config();
    run_ladder(&c, TINY_VOCAB, -1);
    int64_t most = 0, n = sysconf(_SC_NPROCESSORS_ONLN), busy = 0;
    for (int i = 0; i < RUNGS; i++)
        if (ladder.rung[i].facts.total > most) most = ladder.rung[i].facts.total;
    pid_t *other = ARENA_NEW(&arena, pid_t, n);
    for (int64_t i = 0; i < n; i++) {
        if ((other[i] = fork()) == 0)
            for (alarm(60);;) continue;
        assert_true(other[i] > 0);
    }
    run_steps(&c, TINY_VOCAB, most + most / 4, 400);
    for (int64_t i = 0; i < n; i++) {
        kill(other[i], SIGKILL);
        waitpid(other[i], NULL, 0);
    }
    assert_int_equal(ladder.order, LADDER_NO_ROOM);
    assert_true(ladder.others > LOAD_BUSY);
    for (int i = 1; i < RUNGS; i++) {
        assert_true(ladder.rung[i].speed.how <= JUDGED_BUSY);
        busy += ladder.rung[i].speed.how == JUDGED_BUSY;
    }
    assert_true(busy > 0);
}

static void test_numbers_are_consistent(void **state)
{
    (void)state;
    struct config c = config();
    c.train.gradient_accumulation_steps = 2;
    c.model.dropout = 0.1;
    run_ladder(&c, TINY_VOCAB, -1);
    assert_int_equal(ladder.order, LADDER_IN_TURN);
    double times = 1, tokens = 2.0 * 3 * 16;
    assert_true(ladder.flops_per_token == 6 * ladder.parameters + 12 * 2 * 32 * 16);
    for (int i = 0; i < RUNGS; i++) {
        const struct ladder_rung *r = &ladder.rung[i];
        if (i == TF32) continue;
        double peak = i < BF16 ? 2e12 : 8e12, seconds = r->ms.median * 1e-3;
        assert_true(r->ms.n == 4 && r->ms.median > 0 && r->first_ms > 0);
        times *= i ? r->times_before : 1;
        assert_true(fabs(times / r->times_first - 1) < 1e-9);
        assert_true(fabs(r->tokens_per_s * seconds / tokens - 1) < 1e-9);
        assert_true(fabs(r->mfu * peak * seconds / (ladder.flops_per_token * tokens) - 1) < 1e-9);
        assert_true(fabs(r->plan_share * peak * seconds / r->facts.flops - 1) < 1e-9);
        assert_true(r->facts.total > 0 && r->facts.kernels > 0);
        /* the same batch, weights and dropout masks; bf16 rounds */
        double apart = fabs(r->loss - ladder.rung[0].loss);
        assert_true(isfinite(r->loss) && apart < (i < BF16 ? 1e-4 : 3e-2));
    }
    assert_true(fabs(ladder.rung[0].loss - log(TINY_VOCAB)) < 0.2); /* untrained */
    assert_true(ladder.rung[FP32].facts.kernels < ladder.rung[PRIMITIVE].facts.kernels);
    assert_true(ladder.rung[FULL].facts.kernels < ladder.rung[BF16].facts.kernels);
    assert_true(ladder.rung[FLASH].facts.kernels < ladder.rung[FULL].facts.kernels);
    assert_true(ladder.rung[PADDED].facts.weights > ladder.rung[FLASH].facts.weights);
}

/* Clocks are sampled only while the rung itself runs, and only if requested. */
static void test_clocks_of_rungs(void **state)
{
    (void)state;
    struct config c = config();
    const struct ladder_rung *slow, *fast;
    int64_t from_ns = clock_ns();
    run_steps(&c, TINY_VOCAB, -1, SANITIZED ? 20 : 200);
    double whole = 1e-3 * clock_ms(from_ns, clock_ns()), all = 0;
    for (int i = 0; i < RUNGS; i++) {
        const struct ladder_rung *r = &ladder.rung[i];
        if (i == TF32) continue;
        assert_true(r->gauges.samples >= 4); /* one per step, without the first two */
        /* Only its own steps, not those of others in between. */
        assert_true(r->gauges.seconds >= 1e-3 * r->ms.min * r->ms.n);
        assert_true(r->gauges.value[GAUGE_UTILIZATION].mean > 0);
        all += r->gauges.seconds;
    }
    assert_true(all < whole);
    for (int i = 0; i < RUNGS; i++) ladder.rung[i].gauges.value[GAUGE_CLOCK].mean = 2000;
    ladder.rung[FP32].gauges.value[GAUGE_CLOCK].mean = 1500;
    ladder.rung[BF16].gauges.value[GAUGE_CLOCK].mean = -1;
    ladder.rung[FULL].gauges = (struct gauge_summary){0};
    assert_true(ladder_clock_range(&ladder, &slow, &fast) == 0.25);
    assert_true(slow == &ladder.rung[FP32] && fast == &ladder.rung[PRIMITIVE]);
    c.train.sample_interval = 0;
    run_ladder(&c, TINY_VOCAB, -1);
    for (int i = 0; i < RUNGS; i++) assert_int_equal(ladder.rung[i].gauges.samples, 0);
    assert_true(ladder_clock_range(&ladder, &slow, &fast) == 0);
}

static void test_padded_vocabulary_needs_no_rung(void **state)
{
    (void)state;
    struct config c = config();
    run_ladder(&c, 128, -1);
    const struct ladder_rung *last = &ladder.rung[RUNGS - 1];
    assert_string_equal(last->reason, "the vocabulary, 128, is a multiple of 64 already");
    assert_string_equal(last->differs, "--pad_vocab=64");
    assert_int_equal(last->ms.n, 0);
    assert_null(ladder.rung[RUNGS - 2].reason);
}

static void test_the_loss_is_that_of_the_first_step(void **state)
{
    (void)state;
    struct config c = config();
    struct engine e;
    struct random_step random_step;
    run_ladder(&c, TINY_VOCAB, -1);
    const struct ladder_rung *full = &ladder.rung[FULL];
    assert_int_equal(random_step_open(&e, &full->config, TINY_VOCAB, NULL, &arena), ST_OK);
    assert_int_equal(random_step_init(&random_step, &e, &arena), ST_OK);
    assert_int_equal(random_step_run(&random_step, 0, NULL, NULL), ST_OK);
    assert_true(random_step.loss == full->loss);
    assert_int_equal(random_step_run(&random_step, 1, NULL, NULL), ST_OK);
    assert_true(random_step.loss != full->loss);
    engine_close(&e);
}

/* A rung that needs too much memory has a reason; the rungs above it keep its change. */
static void test_out_of_memory(void **state)
{
    (void)state;
    struct config c = config();
    c.model.block_size = 512; /* slow attention's matrices are most of the memory */
    c.data.batch_size = 1;
    run_ladder(&c, TINY_VOCAB, -1);
    int64_t flash = ladder.rung[FLASH].facts.total, slow = ladder.rung[FULL].facts.total;
    assert_true(2 * flash < slow);
    run_ladder(&c, TINY_VOCAB, (flash + slow) / 2);
    for (int i = 0; i < FLASH; i++) {
        if (i != TF32) assert_memory_equal(ladder.rung[i].reason, "it needs ", 9);
        assert_true(ladder.rung[i].ms.n == 0);
    }
    assert_true(!ladder.rung[FLASH].reason && !ladder.rung[PADDED].reason);
    assert_true(ladder.rung[FLASH].config.plan.dtype == PRECISION_BFLOAT16);
    assert_true(ladder.rung[FLASH].times_first == 1 && ladder.rung[FLASH].times_before == 0);
    assert_true(ladder.rung[PADDED].times_first == ladder.rung[PADDED].times_before);

    /* one after the other if not all fit */
    run_ladder(&c, TINY_VOCAB, ladder.rung[PADDED].facts.total + flash / 2);
    assert_int_equal(ladder.order, LADDER_NO_ROOM);
    assert_true(ladder.rung[FLASH].ms.n == 4 && ladder.rung[PADDED].ms.n == 4);

    struct machine m = machine();
    struct ladder_options o = {
        .config = &c, .vocab = TINY_VOCAB, .room = 1000, .steps = 1, .limit_ms = 1, .machine = &m};
    assert_int_equal(ladder_run(&o, &ladder, &arena), ST_UNSUPPORTED);
    assert_memory_equal(fail_message(), "no rung can be run; the first: it needs ", 40);
}

static int refused(void)
{
    int n = 0;
    for (int i = 0; i < ladder.rungs; i++)
        n += ladder.rung[i].reason && !strncmp(ladder.rung[i].reason, "it needs ", 9);
    return n;
}

/* Rungs that would fill most of the memory together run alone; of rungs that need too much, the
 * batch that fits is found before anything runs. */
static void test_what_is_known_before(void **state)
{
    (void)state;
    struct config c = config();
    c.model.block_size = 128; /* the batch is most of the memory */
    c.data.batch_size = 8;
    run_steps(&c, TINY_VOCAB, -1, 1);
    int64_t all = ladder.bytes, most = 0;
    for (int i = 0; i < RUNGS; i++) most = max_i64(most, (int64_t)ladder.rung[i].facts.total);
    assert_true(all > most && ladder.batch_that_fits == 0);
    run_steps(&c, TINY_VOCAB, all + all / 2, 1);
    assert_int_equal(ladder.order, LADDER_NO_ROOM);
    run_steps(&c, TINY_VOCAB, 2 * all, 1);
    assert_int_equal(ladder.order, LADDER_IN_TURN);

    int64_t room = most * 9 / 10;
    run_steps(&c, TINY_VOCAB, room, 1);
    assert_true(refused() > 0);
    assert_in_range(ladder.batch_that_fits, 1, 7);
    c.data.batch_size = ladder.batch_that_fits;
    run_steps(&c, TINY_VOCAB, room, 1);
    assert_int_equal(refused(), 0);
    c.data.batch_size++;
    run_steps(&c, TINY_VOCAB, room, 1);
    assert_true(refused() > 0);
}

static void stop(void *user, double share, const char *what)
{
    const double *at = user;
    (void)what;
    if (share >= *at && !interrupt_noted()) raise(SIGINT);
}

static enum status run_until(const struct config *c, int64_t room, double share)
{
    struct machine m = machine();
    struct ladder_options o = {.config = c,
                               .vocab = TINY_VOCAB,
                               .room = room,
                               .steps = 4,
                               .limit_ms = 60000,
                               .machine = &m,
                               .each = stop,
                               .user = &share};
    interrupt_catch();
    enum status st = ladder_run(&o, &ladder, &arena);
    interrupt_release();
    return st;
}

/* Rungs that run one after the other: those after Ctrl-C have a reason. */
static void test_ctrl_c_keeps_measured_rungs(void **state)
{
    (void)state;
    struct config c = config();
    run_ladder(&c, TINY_VOCAB, -1);
    int64_t most = 0;
    for (int i = 0; i < RUNGS; i++)
        if (ladder.rung[i].facts.total > most) most = ladder.rung[i].facts.total;
    assert_int_equal(run_until(&c, 2 * most, 0), ST_INTERRUPTED); /* none was measured */
    hand_ok(run_until(&c, 2 * most, 2.0 / (RUNGS - 1)));
    assert_int_equal(ladder.order, LADDER_NO_ROOM);
    bool third = ladder.rung[BF16].ms.n > 0; /* it may have given a sample */
    int measured = third ? BF16 + 1 : TF32;
    for (int i = 0; i < RUNGS; i++) {
        const struct ladder_rung *r = &ladder.rung[i];
        if (i == TF32) continue;
        assert_true((r->ms.n > 0) == (i < measured) && (r->tokens_per_s > 0) == (i < measured));
        if (i >= measured) assert_memory_equal(r->reason, "not reached", 11);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_each_differs_by_its_keys, release),
        cmocka_unit_test_teardown(test_the_ladder_of_ranks, release),
        cmocka_unit_test_teardown(test_a_peak_that_is_too_low, release),
        cmocka_unit_test_teardown(test_verdicts, release),
        cmocka_unit_test_teardown(test_a_busy_machine, release),
        cmocka_unit_test_teardown(test_numbers_are_consistent, release),
        cmocka_unit_test_teardown(test_the_loss_is_that_of_the_first_step, release),
        cmocka_unit_test_teardown(test_clocks_of_rungs, release),
        cmocka_unit_test_teardown(test_padded_vocabulary_needs_no_rung, release),
        cmocka_unit_test_teardown(test_out_of_memory, release),
        cmocka_unit_test_teardown(test_what_is_known_before, release),
        cmocka_unit_test_teardown(test_ctrl_c_keeps_measured_rungs, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

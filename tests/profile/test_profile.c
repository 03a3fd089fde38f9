/* A profile of real steps on the CPU: it adds up, costs little, and knows the parts of a step.
 * test: alone; it times steps */
#include "profile/profile.h"

#include "../support/cases.h"
#include "../support/hand.h"
#include "base/interrupt.h"
#include "base/threads.h"
#include "measure/random_step.h"
#include "profile/file.h"
#include "profile/rung.h"
#include "profile/words.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { VOCABULARY = 65, STEPS = 9, TRIES = 6 };

static struct arena arena;
static struct config config;
static struct engine engine;
static struct machine machine;
static struct profile p;

/* With sanitizers steps are smaller: they have the same kernels. */
static void open_laptop(const char *const *words, int threads)
{
    config_init(&config);
    config_choose(&config, &(struct config_facts){0});
    hand_ok(config_read(&config, "configs/shakespeare_char_cpu.conf", &arena));
    hand_ok(config_set(&config, "device=cpu", &arena));
    if (SANITIZED) hand_ok(config_set(&config, "batch_size=2", &arena));
    if (SANITIZED) hand_ok(config_set(&config, "n_embd=64", &arena));
    for (; *words; words++) hand_ok(config_set(&config, *words, &arena));
    threads_set(threads);
    hand_ok(random_step_open(&engine, &config, VOCABULARY, NULL, &arena));
    machine = (struct machine){.threads = threads,
                               .name = "a machine",
                               .library = "none",
                               .isa = "none",
                               .date = "2026-01-31T08:00:00Z",
                               .peak = {{MACHINE_F32, 3e11, 2e11, 1024, 1024, 1024, "onednn"}},
                               .peaks = 1,
                               .copy = {{1 << 14, 1e11, 5e10}, {1 << 28, 2e10, 1e10}},
                               .copies = 2};
}

static void measure(int steps)
{
    struct profile_options o = {
        .warmup = 2, .steps = steps, .limit_ms = 20000, .machine = &machine};
    hand_ok(profile_run(&engine, &o, &p, &arena));
}

static int close_laptop(void **state)
{
    (void)state;
    engine_close(&engine);
    arena_release(&arena);
    return 0;
}

static void test_rows_are_the_step(void **state)
{
    (void)state;
    if (SANITIZED) SKIP("times say nothing with sanitizers");
    const char *const words[] = {NULL};
    double share = 0;
    open_laptop(words, 1);
    /* Other processes may run between two kernels, but not in every try. */
    for (int i = 0; i < TRIES && share < 0.98; i++) {
        double rows = 0, idle;
        measure(STEPS);
        for (int k = 0; k < p.rows; k++) rows += p.row[k].ms;
        idle = profile_family_ms(&p, PHASES_ALL, FAMILY_IDLE);
        assert_true(fabs(rows + idle - p.step_ms.mean) < 1e-9 * p.step_ms.mean);
        share = rows / p.step_ms.mean;
    }
    if (!(share >= 0.98)) fail_msg("rows are %.4f of the step", share);
    int kernels = plan_kernels(&engine.program.plan[GRAPH_MICRO]) +
                  plan_kernels(&engine.program.plan[GRAPH_UPDATE]);
    assert_int_equal(p.rows, kernels);
    assert_int_equal(p.moments, kernels);
    assert_int_equal(p.row[0].runs, STEPS);
}

static void test_overhead_is_small(void **state)
{
    (void)state;
    if (SANITIZED) SKIP("times say nothing with sanitizers");
    const char *const words[] = {NULL};
    double least = 1;
    open_laptop(words, 1);
    for (int i = 0; i < TRIES && !(least < 0.05); i++) {
        measure(STEPS);
        least = fmin(least, p.overhead);
    }
    if (!(least < 0.05)) fail_msg("profiled steps take %.3f times as long", 1 + least);
}

/* Sends Ctrl-C when `user` steps are done. */
static void press(void *user, int done, int total, double left_s, const char *what)
{
    const int *when = user;
    (void)total, (void)left_s, (void)what;
    if (done == *when && !interrupt_noted()) raise(SIGINT);
}

static enum status measure_until(int when, int steps, double limit_ms)
{
    struct profile_options o = {.warmup = 1, .steps = steps, .limit_ms = limit_ms};
    o.machine = &machine;
    o.each = press;
    o.user = &when;
    interrupt_catch();
    enum status st = profile_run(&engine, &o, &p, &arena);
    interrupt_release();
    return st;
}

static void test_ctrl_c_keeps_profiled_steps(void **state)
{
    (void)state;
    const char *const words[] = {"n_layer=1", NULL};
    open_laptop(words, 1);
    assert_int_equal(measure_until(0, 20, 60000), ST_INTERRUPTED);
    assert_non_null(strstr(fail_message(), "there is no profile yet"));
    /* One warm-up step, one pair and another profiled step. */
    assert_int_equal(measure_until(3, 20, 60000), ST_OK);
    assert_true(p.interrupted && p.wanted == 20);
    assert_int_equal(p.steps, 2);
    assert_int_equal(p.plain_ms.n, 1);
    assert_true(p.step_ms.median > 0);
}

static void test_limit_is_respected(void **state)
{
    (void)state;
    const char *const words[] = {NULL};
    open_laptop(words, 1);
    assert_int_equal(measure_until(-1, 20, 1), ST_OK);
    assert_true(p.steps == 3 && p.warmup == 1 && p.plain_ms.n == 1 && !p.interrupted);
    /* With a minimum duration, more short steps are run. */
    double least_ms = 5 * p.step_ms.median; /* of the steps above, however slow this machine is */
    struct profile_options o = {
        .warmup = 1, .steps = 1, .limit_ms = 60000, .least_ms = least_ms, .machine = &machine};
    hand_ok(profile_run(&engine, &o, &p, &arena));
    assert_true(p.steps > 1);
}

static double share(unsigned phases, enum family family)
{
    return profile_family_ms(&p, phases, family) / profile_ms(&p, phases);
}

static void test_optimizer_is_only_in_the_step(void **state)
{
    (void)state;
    const char *const words[] = {"flash=false", NULL};
    open_laptop(words, 1);
    measure(3);
    const unsigned forward = 1 << PHASE_FORWARD, learning = forward | 1 << PHASE_BACKWARD;
    assert_true(share(forward, FAMILY_OPTIMIZER) == 0);
    assert_true(share(learning, FAMILY_OPTIMIZER) == 0);
    assert_true(share(PHASES_ALL, FAMILY_OPTIMIZER) > 0);
    assert_true(share(forward, FAMILY_SOFTMAX) > 0);
    /* The matmuls are a smaller share of the longer time. */
    assert_true(share(PHASES_ALL, FAMILY_MATMUL) < share(learning, FAMILY_MATMUL));
}

static const char *text_of(const char *about)
{
    struct profile_words w = words_of(&p, &arena);
    for (int i = 0; i < w.words; i++)
        if (!strcmp(w.word[i].about, about)) return w.word[i].text;
    fail_msg("no sentence about %s", about);
    return "";
}

static void assert_contains(const char *about, const char *words)
{
    if (!strstr(text_of(about), words)) fail_msg("%s: %s", about, text_of(about));
}

/* Flash attention replaces all kernels between q, k, v and the projection, and nothing else. */
static void check_attention_is_replaced(void)
{
    struct rung r;
    double ms = 0;
    int n = 0;
    rung_find(&p, &r, &arena);
    for (int i = 0; i < p.rows; i++) {
        const struct range *range = &p.row[i].range;
        if (range->words < 4 || strcmp(range->word[2], "attention") != 0) continue;
        if (!strcmp(range->word[3], "q, k, v") || !strcmp(range->word[3], "projection")) continue;
        ms += p.row[i].ms;
        n++;
    }
    assert_int_equal(r.gone, n);
    assert_true(fabs(r.gone_ms - ms) < 1e-9);
    assert_int_equal(r.come, 2 * config.model.n_layer);
    assert_int_equal(r.stay + r.gone, p.rows);
}

static void test_next_rung_is_planned(void **state)
{
    (void)state;
    const char *const slow[] = {"flash=false", "dtype=bfloat16", "fusion=full", NULL};
    open_laptop(slow, 1);
    measure(1);
    assert_contains("next rung", "flash (--flash=true): ");
    assert_contains("next rung", "4 SCORE_SOFTMAX");
    assert_contains("next rung", " instead of "); /* the new kernels take time, too */
    assert_contains("next rung", "4 ATTENTION,");
    assert_contains("attention", "inside slow attention, forward: softmax");
    check_attention_is_replaced();
    engine_close(&engine);
    const char *const op[] = {"flash=true", "dtype=bfloat16", "fusion=op", NULL};
    open_laptop(op, 1);
    measure(1);
    assert_contains("next rung", "full fusion (--fusion=full): ");
    assert_contains("next rung", "ADAMW");
    assert_contains("attention", "flash attention: one operator per pass, 8 kernels per step, ");
    engine_close(&engine);
    const char *const last[] = {"flash=true", "dtype=bfloat16", "pad_vocab=64", NULL};
    open_laptop(last, 1);
    measure(1);
    assert_contains("next rung", "none: this configuration makes every change of the ladder");
    engine_close(&engine);
    /* A gain is reported only for matmuls whose peak rises. */
    const char *const floats[] = {"flash=true", "dtype=float32", "fusion=full", NULL};
    open_laptop(floats, 1);
    machine.peak[machine.peaks++] = (struct machine_peak){.precision = MACHINE_BF16, .flops = 9e11};
    struct rung r;
    measure(1);
    rung_find(&p, &r, &arena);
    assert_true(r.matmuls_ms > 0 && fabs(r.gain_ms - r.matmuls_ms * 2 / 3) < 1e-9);
    assert_contains("next rung", "save at most ");
    engine_close(&engine);
    /* Without matmuls and attention, the rungs for types and flash change nothing. */
    const char *const elu[] = {"model=elu", "fusion=full", "dtype=float32", "flash=false", NULL};
    open_laptop(elu, 1);
    measure(1);
    assert_contains("next rung", "none: bfloat16, flash would change no kernel");
}

static void test_threads_are_observed(void **state)
{
    (void)state;
    const char *const words[] = {NULL};
    bool library = false, alone = false;
    open_laptop(words, 2);
    measure(3);
    assert_int_equal(p.threads, 2);
    for (int i = 0; i < p.rows; i++) {
        const struct profile_row *r = &p.row[i];
        library |= r->unseen;
        assert_int_equal(r->unseen, strcmp(r->variant, "onednn") == 0);
        if (r->unseen) continue;
        /* A kernel on one of two threads keeps the mean thread busy for half of its time. */
        assert_true(r->busy_ms > 0 && 2 * r->busy_ms > (1 - 1e-9) * r->busiest_ms);
        assert_true(r->busiest_ms >= r->busy_ms && r->busiest_ms <= 1.0001 * r->ms);
        alone |= 2 * r->busy_ms < 1.01 * r->busiest_ms;
    }
    assert_true(alone);
    if (library) assert_contains("threads", "do not report their threads");
    /* Threads are no longer observed. */
    assert_int_equal(threads_begin(), 0);
}

static void test_file_is_complete(void **state)
{
    (void)state;
    const char *const words[] = {"gradient_accumulation_steps=3", NULL};
    open_laptop(words, 1);
    measure(2);
    json_t *j = profile_json(&p, "0");
    const json_t *rows = json_object_get(j, "rows"), *row;
    double ms = json_number_value(json_object_get(json_object_get(j, "idle"), "ms_per_step"));
    double flops = 0, mean = p.step_ms.mean;
    size_t i;
    json_array_foreach(rows, i, row) {
        ms += json_number_value(json_object_get(row, "ms_per_step"));
        flops += json_number_value(json_object_get(row, "per_step")) *
                 (double)json_integer_value(json_object_get(row, "flops"));
    }
    assert_true(fabs(ms - mean) < 1e-5 * mean);
    json_t *plan = json_object_get(j, "plan");
    assert_true(flops == json_number_value(json_object_get(plan, "flops_per_step")));
    const json_t *moments = json_object_get(json_object_get(j, "timeline"), "moments");
    assert_int_equal(json_array_size(moments),
                     json_integer_value(json_object_get(plan, "kernels_per_step")));
    assert_true(json_array_size(json_object_get(j, "words")) > 5);
    const json_t *memory = json_object_get(j, "memory"), *moment;
    double total = json_number_value(json_object_get(memory, "total_bytes")), sum;
    assert_true(total == (double)program_bytes(&engine.program));
    json_array_foreach(json_object_get(memory, "moments"), i, moment) {
        sum = 0;
        for (size_t k = 1; k < json_array_size(moment); k++)
            sum += json_number_value(json_array_get(moment, k));
        assert_true(sum == total);
        assert_true(json_integer_value(json_array_get(moment, 0)) >= 0);
    }
    assert_int_equal(i, json_array_size(rows));
    json_decref(j);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, close_laptop)
    const struct CMUnitTest tests[] = {
        TEST(test_rows_are_the_step),
        TEST(test_overhead_is_small),
        TEST(test_ctrl_c_keeps_profiled_steps),
        TEST(test_limit_is_respected),
        TEST(test_optimizer_is_only_in_the_step),
        TEST(test_next_rung_is_planned),
        TEST(test_threads_are_observed),
        TEST(test_file_is_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

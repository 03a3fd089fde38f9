/* Sentences about a step whose rows are made by hand: each is true of the step, or is left out. */
#include "profile/words.h"

#include "../support/hand.h"
#include "../support/tiny.h"
#include "backend/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 8 };

static struct tiny tiny;
static struct backend device; /* a CPU that claims to be a GPU */
static struct machine machine;
static struct profile_row row[MOST];
static struct profile p;
static struct profile_words words;
static double run_ms[] = {1};

static int setup(void **state)
{
    (void)state;
    struct config config, small = tiny_config();
    config_init(&config);
    config_choose(&config, &(struct config_facts){0});
    config.model.n_layer = small.model.n_layer;
    config.model.n_head = small.model.n_head;
    config.model.n_embd = small.model.n_embd;
    config.model.block_size = small.model.block_size;
    config.data.batch_size = small.data.batch_size;
    config.train.gradient_accumulation_steps = 1;
    config.plan = small.plan;
    tiny_open(&tiny, &config, 1u << GRAPH_MICRO | 1u << GRAPH_UPDATE);
    device = *tiny.engine.backend;
    device.host_memory = false;
    p = (struct profile){
        .engine = &tiny.engine, .machine = &machine, .steps = 1, .row = row, .by = PROFILE_TRACE};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tiny_close(&tiny);
    return 0;
}

static struct profile_row *add_row(enum phase phase, enum family family, double ms)
{
    struct profile_row *r = &row[p.rows];
    *r = (struct profile_row){.node = p.rows, .phase = phase, .op = OP_MATMUL, .family = family};
    r->op_name = op_def(OP_MATMUL)->name;
    r->per_step = 1;
    r->scope = r->shape = r->types = r->variant = "";
    r->range.layer = -1;
    r->each_ms = run_ms;
    r->runs = 1;
    r->ms = r->work_ms = ms;
    p.mean_ms[phase] += ms;
    p.step_ms.mean += ms;
    p.rows++;
    return r;
}

static struct profile_row *at(struct profile_row *r, const char *first, const char *second,
                              const char *third)
{
    r->range = (struct range){.word = {first, second, third}, .words = 3, .layer = 0};
    return r;
}

static const char *text_of(const char *about)
{
    words = words_of(&p, &tiny.arena);
    for (int i = 0; i < words.words; i++)
        if (!strcmp(words.word[i].about, about)) return words.word[i].text;
    return NULL;
}

static void assert_contains(const char *about, const char *what)
{
    const char *text = text_of(about);
    if (!text || !strstr(text, what)) fail_msg("%s: %s", about, text ? text : "nothing");
}

static void test_kernels_with_one_prefix_are_distinct(void **state)
{
    (void)state;
    struct profile_row *r[] = {add_row(PHASE_FORWARD, FAMILY_MATMUL, 2),
                               add_row(PHASE_FORWARD, FAMILY_MATMUL, 3),
                               add_row(PHASE_FORWARD, FAMILY_NORMS, 4)};
    r[0]->device_kernel = "sm80_xmma_gemm_nn", r[0]->device_short = "sm80..";
    r[1]->device_kernel = "sm80_xmma_gemm_tn", r[1]->device_short = "sm80..";
    r[2]->device_kernel = r[2]->device_short = "layernorm";
    assert_contains("top kernel", "layernorm takes the most time in forward (1 run, 44.4 %)");
    r[2]->ms = 1;
    assert_contains("top kernel", "sm80.. takes the most time in forward (1 run, ");
}

static void test_missing_work_is_not_mentioned(void **state)
{
    (void)state;
    add_row(PHASE_FORWARD, FAMILY_POINTWISE, 1);
    assert_null(text_of("matmuls"));
    assert_null(text_of("attention"));
    assert_string_equal(text_of("phases"), "mean step: forward 1 ms");
    add_row(PHASE_FORWARD, FAMILY_MATMUL, 1);
    assert_string_equal(text_of("matmuls"), "matmuls take 50 % of forward");
    add_row(PHASE_BACKWARD, FAMILY_NORMS, 2);
    assert_string_equal(text_of("matmuls"),
                        "matmuls take 50 % of forward, 25 % of forward + backward");
    add_row(PHASE_UPDATE, FAMILY_OPTIMIZER, 1);
    assert_contains("matmuls", ", 20 % of the whole step; the optimizer takes 20 % of the step");
}

static void test_recomputed_work_is_not_backward_work(void **state)
{
    (void)state;
    at(add_row(PHASE_FORWARD, FAMILY_SOFTMAX, 1), "block 0", "attention", "softmax");
    at(add_row(PHASE_FORWARD, FAMILY_MATMUL, 2), "block 0", "attention", "scores");
    at(add_row(PHASE_BACKWARD, FAMILY_SOFTMAX, 3), "block 0", "attention", "softmax");
    at(add_row(PHASE_BACKWARD, FAMILY_MATMUL, 4), "block 0", "attention", "scores");
    at(add_row(PHASE_BACKWARD, FAMILY_SOFTMAX, 1), "recomputed", "attention", "softmax");
    at(add_row(PHASE_BACKWARD, FAMILY_MATMUL, 2), "recomputed", "attention", "scores");
    assert_contains("attention", "backward: softmax takes 3 ms against 4 ms for the 4 matmuls");
}

static void test_flash_kernels_are_counted(void **state)
{
    (void)state;
    add_row(PHASE_FORWARD, FAMILY_ATTENTION, 1);
    add_row(PHASE_BACKWARD, FAMILY_ATTENTION, 1);
    add_row(PHASE_BACKWARD, FAMILY_ATTENTION, 1);
    add_row(PHASE_BACKWARD, FAMILY_MATMUL, 1);
    assert_contains("attention",
                    "one operator per pass, 3 kernels per step, 75 % of forward + backward");
}

static void test_other_processes_slow_a_host(void **state)
{
    (void)state;
    p.others = 2;
    assert_contains("others", "measurement: times are longer");
    tiny.engine.backend = &device;
    assert_contains("others", "measurement: host times are longer");
}

static void test_amounts_have_their_units(void **state)
{
    (void)state;
    struct profile_row *r = add_row(PHASE_FORWARD, FAMILY_MATMUL, 30);
    r->flops = 13.27e12, r->bytes = 43.68e9;
    r->floor_ms = 20;
    assert_contains("floor", "13.27 TFLOP and 43.68 GB per step");
    r->flops = 3.5e6, r->bytes = 720;
    assert_contains("floor", "3.5 MFLOP and 720 B per step");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_kernels_with_one_prefix_are_distinct), TEST(test_missing_work_is_not_mentioned),
        TEST(test_recomputed_work_is_not_backward_work), TEST(test_flash_kernels_are_counted),
        TEST(test_other_processes_slow_a_host),          TEST(test_amounts_have_their_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

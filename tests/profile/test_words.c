/* What the words say of a step whose rows are made by hand: each sentence is true of it, or is not said. */
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
static struct backend device; /* a CPU that says that it is a GPU */
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

static struct profile_row *took(enum phase phase, enum family family, double ms)
{
    struct profile_row *r = &row[p.rows];
    *r = (struct profile_row){.node = p.rows, .phase = phase, .op = OP_MATMUL, .family = family};
    r->scope = r->shape = r->types = r->variant = "";
    r->range.layer = -1;
    r->run_ms = run_ms;
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
    words_of(&p, &words, &tiny.arena);
    for (int i = 0; i < words.words; i++)
        if (!strcmp(words.word[i].about, about)) return words.word[i].text;
    return NULL;
}

static void said(const char *about, const char *what)
{
    const char *text = text_of(about);
    if (!text || !strstr(text, what)) fail_msg("%s: %s", about, text ? text : "nothing");
}

static void test_kernels_of_one_beginning_are_two(void **state)
{
    (void)state;
    struct profile_row *r[] = {took(PHASE_FORWARD, FAMILY_PRODUCTS, 2),
                               took(PHASE_FORWARD, FAMILY_PRODUCTS, 3),
                               took(PHASE_FORWARD, FAMILY_NORMS, 4)};
    r[0]->device_kernel = "sm80_xmma_gemm_nn", r[0]->device_short = "sm80..";
    r[1]->device_kernel = "sm80_xmma_gemm_tn", r[1]->device_short = "sm80..";
    r[2]->device_kernel = r[2]->device_short = "layernorm";
    said("top kernel", "in forward layernorm: 1 run, 44.4 % of it");
    r[2]->ms = 1;
    said("top kernel", "in forward sm80..: 1 run, ");
}

static void test_what_a_step_has_not_is_not_said(void **state)
{
    (void)state;
    took(PHASE_FORWARD, FAMILY_POINTWISE, 1);
    assert_null(text_of("products"));
    assert_null(text_of("attention"));
    assert_string_equal(text_of("phases"), "of the mean step: forward 1 ms");
    took(PHASE_FORWARD, FAMILY_PRODUCTS, 1);
    assert_string_equal(text_of("products"), "matrix products are 50 % of forward");
    took(PHASE_BACKWARD, FAMILY_NORMS, 2);
    assert_string_equal(text_of("products"),
                        "matrix products are 50 % of forward, 25 % of forward + backward");
    took(PHASE_UPDATE, FAMILY_OPTIMIZER, 1);
    said("products", ", 20 % of a whole step with AdamW, of which the optimizer is 20 %");
}

static void test_what_is_computed_again_is_not_backwards(void **state)
{
    (void)state;
    at(took(PHASE_FORWARD, FAMILY_SOFTMAX, 1), "block 0", "attention", "softmax");
    at(took(PHASE_FORWARD, FAMILY_PRODUCTS, 2), "block 0", "attention", "scores");
    at(took(PHASE_BACKWARD, FAMILY_SOFTMAX, 3), "block 0", "attention", "softmax");
    at(took(PHASE_BACKWARD, FAMILY_PRODUCTS, 4), "block 0", "attention", "scores");
    at(took(PHASE_BACKWARD, FAMILY_SOFTMAX, 1), "computed again", "attention", "softmax");
    at(took(PHASE_BACKWARD, FAMILY_PRODUCTS, 2), "computed again", "attention", "scores");
    said("attention", "backward: softmax 3 ms beside 4 ms of the 4 products");
}

static void test_flash_is_counted(void **state)
{
    (void)state;
    took(PHASE_FORWARD, FAMILY_ATTENTION, 1);
    took(PHASE_BACKWARD, FAMILY_ATTENTION, 1);
    took(PHASE_BACKWARD, FAMILY_ATTENTION, 1);
    took(PHASE_BACKWARD, FAMILY_PRODUCTS, 1);
    said("attention", "one operator each way, 3 kernels of a step, 75 % of forward + backward");
}

static void test_other_programs_slow_a_host(void **state)
{
    (void)state;
    p.others = 2;
    said("others", "meanwhile: times are longer");
    tiny.engine.backend = &device;
    said("others", "meanwhile: the host's time is longer");
}

static void test_amounts_have_their_units(void **state)
{
    (void)state;
    struct profile_row *r = took(PHASE_FORWARD, FAMILY_PRODUCTS, 30);
    r->cost = (struct cost){.flops = 13.27e12, .bytes = 43.68e9};
    r->floor_ms = 20;
    said("floor", "13.27 TFLOP and 43.68 GB of a step");
    r->cost = (struct cost){.flops = 3.5e6, .bytes = 720};
    said("floor", "3.5 MFLOP and 720 B of a step");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_kernels_of_one_beginning_are_two),
        TEST(test_what_a_step_has_not_is_not_said),
        TEST(test_what_is_computed_again_is_not_backwards),
        TEST(test_flash_is_counted),
        TEST(test_other_programs_slow_a_host),
        TEST(test_amounts_have_their_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Models that are only timed: commands that inspect or time a step accept them; training refuses
 * them.
 * test: slow */
#include "../support/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

/* A small configuration of each model, and expected text of its plan and of its timing. */
static const struct {
    const char *name, *words, *plan, *rate;
} models[] = {
    {"attention_block", "configs/attention_block.conf --batch_size=2 --block_size=20",
     "a step       40 positions", " positions/s"},
    {"attention_block", "configs/attention_block_1000.conf --batch_size=2 --block_size=20",
     "parameters   197,888\n", " positions/s"},
    {"elu", "configs/elu.conf --batch_size=3 --block_size=1000", "a step       3,000 elements",
     " elements/s"},
    {"toy", "configs/toy.conf", "a step       64 samples", " samples/s"},
};

static int run_model(const char *command, int i, const char *more)
{
    return program_run(
        "", arena_printf(&arena, "%s %s --device=cpu %s", command, models[i].words, more));
}

static void says(const char *text, const char *words)
{
    if (!strstr(text, words)) fail_msg("\"%s\" is not in:\n%s", words, text);
}

/* Like says, for a sentence that may be wrapped anywhere. */
static void says_wrapped(const char *text, const char *words)
{
    char *line = arena_printf(&arena, "%s", text), *end = line;
    for (const char *c = line; *c; c++) {
        bool blank = *c == ' ' || *c == '\n';
        if (!blank)
            *end++ = *c;
        else if (end > line && end[-1] != ' ')
            *end++ = ' ';
    }
    *end = '\0';
    says(line, words);
}

static void says_not(const char *text, const char *words)
{
    if (strstr(text, words)) fail_msg("\"%s\" is in:\n%s", words, text);
}

static void test_they_are_planned_and_timed(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT_OF(models); i++) {
        const char *model = arena_printf(&arena, "model=%s ", models[i].name);
        assert_int_equal(run_model("plan", i, ""), 0);
        says(program_stdout, model);
        says(program_stdout, models[i].plan);
        says_not(program_stdout, "tokens");
        says_not(program_stdout, "vocabulary");
        says_not(program_stderr, "data set"); /* none is required */
        assert_int_equal(run_model("graph", i, "--fusion=op"), 0);
        says(program_stdout, " = LEAF [drawn]  f32");
        assert_int_equal(run_model("memory", i, ""), 0);
        says(program_stdout, model);
        assert_int_equal(strstr(program_stdout, "\nblock 0 saves") != NULL, i < 2); /* has blocks */
        assert_int_equal(run_model("memory", i, "--limit=256MiB"), 0);
        bool tiny = strcmp(models[i].name, "toy") == 0; /* more fits than the key allows */
        says(program_stdout, tiny ? "the largest value of the key" : "is the largest that fits");
        assert_int_equal(run_model("bench", i, "--warmup=0 --steps=2"), 0);
        says(program_stdout, models[i].rate);
    }
}

/* Commands that first measure the machine run once. */
static void test_they_are_measured(void **state)
{
    (void)state;
    assert_int_equal(run_model("bench kernels", 2, "--samples=1 --limit=1"), 0);
    says(program_stdout, "model=elu block_size=1000 batch_size=3 ");
    says_not(program_stdout, "matmuls alone");
    for (int i = 2; i < COUNT_OF(models); i++) {
        assert_int_equal(run_model("profile", i, "--steps=2"), 0);
        says(program_stdout, models[i].name);
        if (strcmp(models[i].name, "elu") == 0)
            says_not(program_stdout, "optimizer");
        else
            says_wrapped(program_stdout, "the optimizer takes");
    }
    assert_int_equal(
        run_model("profile", 0,
                  "--steps=2 --flash=false --attention_scale=none --attention_mask=none"),
        0);
    says(program_stdout, "SOFTMAX");
    for (int i = 1; i < COUNT_OF(models); i++) {
        assert_int_equal(run_model("memory", i, "--measure"), 0);
        assert_int_equal(run_model("memory", i, "--measure --phase=inference"), 0);
    }
    assert_int_equal(run_model("ladder", 0, "--steps=1 --limit=1"), 0);
    says(program_stdout, "the model has no vocabulary");
    says_not(program_stdout, "12 L C T = ");
}

/* A step without matmuls has no ratio to them, and its JSON is valid. */
static void test_a_step_without_matmuls(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT_OF(models); i++) {
        bool none = !strcmp(models[i].name, "elu");
        assert_int_equal(run_model("bench", i, "--warmup=0 --steps=1 --json"), 0);
        json_t *all = json_loads(program_stdout, 0, NULL);
        assert_non_null(all);
        assert_int_equal(json_object_get(all, "ratio") == NULL, none);
        assert_true(json_number_value(json_object_get(all, "loss")) > 0);
        json_decref(all);
    }
}

static void test_fused_and_primitive_kernels(void **state)
{
    (void)state;
    assert_int_equal(run_model("plan", 2, ""), 0);
    says(program_stdout, " ELU ");
    says_not(program_stdout, " EXP ");
    assert_int_equal(run_model("plan", 2, "--fusion=primitive"), 0);
    says(program_stdout, " RELU ");
    says(program_stdout, " EXP ");
    says_not(program_stdout, " ELU ");
}

/* A number of heads that does not divide the width is refused only by models with heads. */
static void test_unused_keys_are_not_checked(void **state)
{
    (void)state;
    assert_int_equal(run_model("plan", 0, "--n_head=7"), 2);
    says(program_stderr, "n_embd = 256 is not divisible by n_head = 7");
    assert_int_equal(run_model("plan", 2, "--n_head=7"), 0);
    assert_int_equal(run_model("plan", 3, "--n_head=7 --pad_vocab=64"), 0);
    says_not(program_stdout, "(64,1,64)");
}

static void test_they_are_not_trained(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT_OF(models); i++) {
        const char *sentence =
            arena_printf(&arena,
                         "model = %s cannot be trained, only timed on random inputs: use "
                         "`strobe bench` to time its step",
                         models[i].name);
        assert_int_equal(run_model("train", i, "--out_dir=run"), 1);
        says(program_stderr, sentence);
        assert_int_equal(run_model("compare", i, "--flash=true,false --out_dir=run"), 1);
        says(program_stderr, sentence);
        assert_int_equal(run_model("graph", i, "--kind=decode"), 1);
        says(program_stderr, "cannot generate text");
    }
}

/* The loss of a step of the attention block. */
static double block_loss(const char *more)
{
    assert_int_equal(run_model("bench", 0, arena_printf(&arena, "%s --steps=1 --json", more)), 0);
    json_t *all = json_loads(program_stdout, 0, NULL);
    double loss = json_number_value(json_object_get(all, "loss"));
    json_decref(all);
    assert_true(loss > 0);
    return loss;
}

/* The keys of mask and scale change the loss, by the same in slow and flash attention. */
static void test_mask_and_scale_of_attention(void **state)
{
    (void)state;
    static const char *const words[] = {"", "--attention_mask=causal", "--attention_scale=none",
                                        "--attention_mask=causal --attention_scale=none"};
    double loss[COUNT_OF(words)];
    for (int i = 0; i < COUNT_OF(words); i++) {
        loss[i] = block_loss(words[i]);
        for (int fusion = 0; fusion < 3; fusion++) {
            static const char *const fusions[] = {"primitive", "op", "full"};
            double slow = block_loss(
                arena_printf(&arena, "%s --flash=false --fusion=%s", words[i], fusions[fusion]));
            assert_true(fabs(slow - loss[i]) < 1e-6 * loss[i]);
        }
        for (int k = 0; k < i; k++) assert_true(fabs(loss[k] - loss[i]) > 1e-6 * loss[i]);
    }
    assert_int_equal(run_model("graph", 0, "--flash=false --after=expand"), 0);
    says(program_stdout, "SCALE %10 [value 0.0625]");
    assert_int_equal(run_model("graph", 0, "--flash=false --after=expand --attention_scale=none"),
                     0);
    says_not(program_stdout, "[value 1]"); /* no node that multiplies by 1 */
    assert_int_equal(run_model("bench", 3, "--steps=1 --attention_scale=none"), 2);
    says(program_stderr,
         "attention_mask and attention_scale are keys of model = attention_block; remove");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_they_are_planned_and_timed, program_setup,
                                        program_teardown),
        cmocka_unit_test_setup_teardown(test_they_are_measured, program_setup, program_teardown),
        cmocka_unit_test_setup_teardown(test_a_step_without_matmuls, program_setup,
                                        program_teardown),
        cmocka_unit_test_setup_teardown(test_fused_and_primitive_kernels, program_setup,
                                        program_teardown),
        cmocka_unit_test_setup_teardown(test_unused_keys_are_not_checked, program_setup,
                                        program_teardown),
        cmocka_unit_test_setup_teardown(test_mask_and_scale_of_attention, program_setup,
                                        program_teardown),
        cmocka_unit_test_setup_teardown(test_they_are_not_trained, program_setup, program_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

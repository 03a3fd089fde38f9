/* graph, plan and memory from outside: what they print without a data set, without running anything. */
#include "../support/program.h"
#include "../support/workdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const char CONFIG[] = "configs/shakespeare_char_cpu.conf --data_dir=/nowhere";

/* `strobe COMMAND CONFIG MORE`; returns the exit code. */
static int strobe(const char *command, const char *more)
{
    return program_run("", arena_printf(&arena, "%s %s %s", command, CONFIG, more));
}

static void says(const char *words)
{
    if (!strstr(said, words)) fail_msg("\"%s\" is not in:\n%s", words, said);
}

static void says_not(const char *words)
{
    if (strstr(said, words)) fail_msg("\"%s\" is in:\n%s", words, said);
}

static json_t *json_of(const char *command, const char *more)
{
    if (strobe(command, arena_printf(&arena, "%s --json", more)) != 0) fail_msg("%s", failed);
    json_error_t error;
    json_t *all = json_loads(said, 0, &error);
    if (!all) fail_msg("%s, column %d", error.text, error.column);
    assert_int_equal(json_integer_value(json_object_get(all, "v")), 1);
    return all;
}

static int64_t number(const json_t *object, const char *key)
{
    const json_t *x = json_object_get(object, key);
    if (!json_is_integer(x)) fail_msg("no number %s", key);
    return json_integer_value(x);
}

static void test_vocabulary(void **state)
{
    (void)state;
    assert_int_equal(strobe("plan", "--summary"), 0);
    says("vocabulary=65\n");
    says("parameters   795,904 (804,096 with positions)");
    assert_non_null(
        strstr(failed, "the data set shakespeare_char is not there; a vocabulary of 65"));
    assert_int_equal(strobe("plan", "--summary --dataset=words"), 0);
    says("vocabulary=50257\n");
    assert_int_equal(strobe("plan", "--summary --vocab=100"), 0);
    says("vocabulary=100\n");
    assert_string_equal(failed, "");
    assert_int_equal(strobe("plan", "--vocab=-1"), 2);
    assert_int_equal(strobe("plan", "--vocab=70000"), 2);
    assert_string_equal(said, "");
}

static void test_vocabulary_of_the_data_set(void **state)
{
    (void)state;
    const char *program = getenv("STROBE"), *dir = workdir_path("");
    const char *text = workdir_text("text", "abcabcdcbaabccbdbacbadbcbacbdabcbdabcbabcdbabcbdba\n");
    assert_int_equal(
        system(arena_printf(&arena, "%s data letters --from=%s --data_dir=%s >/dev/null 2>&1",
                            program ? program : "./strobe", text, dir)),
        0);
    const char *words = arena_printf(&arena, "--summary --data_dir=%s --dataset=letters", dir);
    assert_int_equal(strobe("plan", words), 0);
    says("vocabulary=5\n");
    assert_string_equal(failed, "");
}

static void test_graph(void **state)
{
    (void)state;
    assert_int_equal(strobe("graph", ""), 0);
    says("# forward\n");
    says("# backward\n");
    says("ADD_LAYERNORM");
    says(" 4 ATTENTION_GRAD");
    assert_int_equal(strobe("graph", "--after=model"), 0);
    says_not("# backward");
    says("77 nodes: 31 LEAF, 17 MATMUL, 9 ADD, 9 LAYERNORM, 4 GELU, 4 ATTENTION, 2 EMBED, "
         "1 CROSS_ENTROPY\n");
    assert_int_equal(strobe("graph", "--after=expand --flash=false"), 0);
    says(" 4 SOFTMAX");
    assert_int_equal(strobe("graph", "--flash=false --fusion=primitive"), 0);
    says_not("SOFTMAX");
    assert_int_equal(strobe("graph", "--update"), 0);
    says(" 1 ADAMW");
    assert_int_equal(strobe("graph", "--kind=update --fusion=op"), 0);
    says(" 27 ADAMW");
    assert_int_equal(strobe("graph", "--eval"), 0);
    says_not("# backward");
    assert_int_equal(strobe("graph", "--kind=decode"), 0);
    says("4 ATTENTION_CACHED");
    assert_int_equal(strobe("graph", "--dot"), 0);
    assert_memory_equal(said, "digraph strobe {", 16);
    assert_string_equal(said + strlen(said) - 2, "}\n");
}

/* The texts of kernels that are written for a graph, as a compiler shows its output. */
static void test_kernels_that_are_written(void **state)
{
    (void)state;
    assert_int_equal(strobe("graph", "--kernels --device=cpu"), 0);
    says("no kernel is written for this");
    assert_int_equal(strobe("graph", "--kernels --json"), 2);
    assert_int_equal(strobe("graph", "--kernels --after=fuse"), 2);
#ifdef HAVE_CUDA
    assert_int_equal(strobe("graph", "--kernels --device=cuda"), 0);
    says("CHAIN clip: f32 (1) -> f32 (1), f32 (1)\n");
    says("/* SQRT, OFFSET, DIV, AT_MOST: ");
    says("offset_of(r0, 1e-06f)");
    says("KERNEL(1) chain(const float *in0, float *out0, float *out1)");
    assert_int_equal(strobe("graph", "--kernels --device=cuda --eval"), 0);
    says("no kernel is written for this");
    assert_int_equal(strobe("graph", "--kernels --device=cuda --fusion=op"), 0);
    says("no kernel is written for this");
#endif
}

static void test_graph_refuses(void **state)
{
    (void)state;
    assert_int_equal(strobe("graph", "--after=fuze --vocab=65"), 2);
    assert_string_equal(failed,
                        "strobe: there is no pass fuze; there are model, regions, "
                        "expand, precision, recompute, numerics, fuse, chain, pack, dead\n");
    assert_int_equal(strobe("graph", "--kind=whole"), 2);
    assert_non_null(strstr(failed, "there is no graph whole"));
    assert_int_equal(strobe("graph", "--eval --update"), 2);
    assert_int_equal(strobe("graph", "--n_head=7"), 2);
    assert_non_null(strstr(failed, "not divisible"));
}

static void test_graph_json(void **state)
{
    (void)state;
    json_t *all = json_of("graph", ""), *nodes = json_object_get(all, "nodes");
    int attention = 0;
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *n = json_array_get(nodes, i);
        assert_int_equal(number(n, "node"), (int64_t)i);
        attention += !strcmp(json_string_value(json_object_get(n, "op")), "ATTENTION");
    }
    assert_int_equal(attention, 4);
    assert_true(number(json_object_get(all, "outputs"), "loss") > 0);
    json_decref(all);
}

static void test_plan(void **state)
{
    (void)state;
    assert_int_equal(strobe("plan", ""), 0);
    says("# micro, once a step\n");
    says("# update, once a step\n");
    says_not("micro_more");
    assert_int_equal(strobe("plan", "--gradient_accumulation_steps=5"), 0);
    says("# micro_more, 4 times a step\n");
    says("3,840 tokens");
    assert_int_equal(strobe("plan", "--backend=null"), 0);
    says(" null ");
    assert_int_equal(strobe("plan", "--backend=abacus"), 2);
    assert_non_null(strstr(failed, "there is no backend abacus"));
}

static void test_plan_json(void **state)
{
    (void)state;
    json_t *all = json_of("plan", "--gradient_accumulation_steps=3");
    const json_t *plans = json_object_get(all, "plans");
    assert_int_equal(json_array_size(plans), 4); /* micro, micro_more, update, refresh */
    int64_t kernels = 0;
    double flops = 0;
    for (size_t i = 0; i < json_array_size(plans); i++) {
        const json_t *p = json_array_get(plans, i), *steps = json_object_get(p, "steps");
        assert_int_equal(json_array_size(steps), number(p, "kernels"));
        kernels += number(p, "runs_per_step") * number(p, "kernels");
        for (size_t k = 0; k < json_array_size(steps); k++)
            flops += (double)number(p, "runs_per_step") *
                     json_real_value(json_object_get(json_array_get(steps, k), "flops"));
    }
    assert_int_equal(kernels, number(all, "kernels_per_step"));
    double of_step = json_real_value(json_object_get(all, "flops_per_step"));
    assert_true(fabs(flops / of_step - 1) < 1e-9);
    assert_int_equal(number(all, "parameters"), 795904);
    json_decref(all);
}

/* The sum of the numbers of an object. */
static int64_t sum_of(json_t *object)
{
    int64_t sum = 0;
    const char *key;
    json_t *x;
    json_object_foreach(object, key, x) sum += json_integer_value(x);
    return sum;
}

static void test_memory_json_adds_up(void **state)
{
    (void)state;
    for (int flash = 0; flash < 2; flash++) {
        json_t *all =
            json_of("memory", flash ? "--flash=true" : "--flash=false --fusion=primitive");
        json_t *memory = json_object_get(all, "memory"), *peak = json_object_get(all, "peak");
        assert_int_equal(sum_of(memory), 2 * number(memory, "total"));
        json_t *parts = json_object_get(peak, "parts"), *map = json_object_get(peak, "map");
        json_t *kept = json_object_get(peak, "kept");
        assert_int_equal(sum_of(parts), number(peak, "bytes"));
        assert_true(number(peak, "bytes") <= number(memory, "activations"));
        int64_t of_map = 0, of_kept = 0;
        for (size_t i = 0; i < json_array_size(map); i++)
            of_map += number(json_array_get(map, i), "bytes");
        for (size_t i = 0; i < json_array_size(kept); i++)
            of_kept += number(json_array_get(kept, i), "bytes");
        assert_int_equal(of_map + number(parts, "workspace"), number(peak, "bytes"));
        assert_int_equal(of_kept, number(parts, "saved"));
        json_decref(all);
    }
}

static void test_memory(void **state)
{
    (void)state;
    assert_int_equal(strobe("memory", ""), 0);
    says("weights                       3.1 MiB");
    says("saved for backward, by the operator that made it\n");
    says_not("SCORE_SOFTMAX");
    assert_int_equal(strobe("memory", "--flash=false --block_size=1024 --rows=3"), 0);
    says("SCORE_SOFTMAX      f32 (12,4,1024,1024)");
    says(" smaller ones\n");
    assert_int_equal(strobe("memory", "--block_size=1024 --rows=1000"), 0);
    says_not("1024,1024)");
    assert_int_equal(strobe("memory", "--rows=-1"), 2);
}

static int64_t total_at(long long batch_size)
{
    json_t *all = json_of("memory", arena_printf(&arena, "--batch_size=%lld", batch_size));
    int64_t total = number(json_object_get(all, "memory"), "total");
    json_decref(all);
    return total;
}

static void test_memory_fit(void **state)
{
    (void)state;
    long long batch;
    assert_int_equal(strobe("memory", "--fit=0.25"), 0);
    assert_int_equal(sscanf(said, "batch_size = %lld is the largest", &batch), 1);
    assert_true(total_at(batch) <= 1 << 28);
    assert_true(total_at(batch + 1) > 1 << 28);
    json_t *all = json_of("memory", "--fit=0.25");
    assert_int_equal(number(all, "batch_size"), batch);
    assert_int_equal(number(all, "bytes"), 1 << 28);
    json_decref(all);
    assert_int_equal(strobe("memory", "--fit=0.001"), 0);
    says("not even batch_size = 1 fits into 0.001 GiB\n");
    assert_int_equal(strobe("memory", "--fit=900000"), 0); /* no more than the key takes */
    says("batch_size = 65536 is the largest");
    assert_int_equal(strobe("memory", "--fit=1e9"), 2);
    assert_int_equal(strobe("memory", "--fit=-1"), 2);
}

static void test_a_configuration_is_needed(void **state)
{
    (void)state;
    static const char *const commands[] = {"graph", "plan", "memory"};
    const char *program = getenv("STROBE");
    for (int i = 0; i < COUNT_OF(commands); i++) {
        int status = system(arena_printf(&arena, "%s %s 2>%s", program ? program : "./strobe",
                                         commands[i], workdir_path("err")));
        assert_int_equal(WEXITSTATUS(status), 2);
        assert_non_null(strstr(program_text(workdir_path("err")), "which configuration?"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vocabulary),
        cmocka_unit_test(test_vocabulary_of_the_data_set),
        cmocka_unit_test(test_graph),
        cmocka_unit_test(test_kernels_that_are_written),
        cmocka_unit_test(test_graph_refuses),
        cmocka_unit_test(test_graph_json),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_plan_json),
        cmocka_unit_test(test_memory_json_adds_up),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_fit),
        cmocka_unit_test(test_a_configuration_is_needed),
    };
    return cmocka_run_group_tests(tests, program_setup, program_teardown);
}

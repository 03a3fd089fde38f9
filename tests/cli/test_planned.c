/* The commands graph, plan and memory: what they print without a data set and without running a
 * step.
 * test: slow */
#include "../support/cases.h"
#include "../support/program.h"
#include "../support/workdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#ifdef HAVE_CUDA
#include "backend/backend.h"
#include "backend/cuda/runtime/driver.h"
#endif

static const char CONFIG[] =
    "configs/shakespeare_char_cpu.conf --data_dir=/nowhere --dtype=float32";

/* `strobe COMMAND CONFIG MORE`; returns the exit code. */
static int strobe(const char *command, const char *more)
{
    return program_run("", arena_printf(&arena, "%s %s %s", command, CONFIG, more));
}

static void says(const char *words)
{
    if (!strstr(program_stdout, words)) fail_msg("\"%s\" is not in:\n%s", words, program_stdout);
}

static void says_not(const char *words)
{
    if (strstr(program_stdout, words)) fail_msg("\"%s\" is in:\n%s", words, program_stdout);
}

/* A row of a table begins with these two cells, whatever the width of their columns. */
static void says_in_row(const char *first, const char *second)
{
    size_t n = strlen(first), m = strlen(second);
    for (const char *at = program_stdout; *at;
         at += strcspn(at, "\n") + (at[strcspn(at, "\n")] != '\0')) {
        size_t gap = strncmp(at, first, n) == 0 ? strspn(at + n, " ") : 0;
        if (gap && !strncmp(at + n + gap, second, m) && strchr(" \n", at[n + gap + m])) return;
    }
    fail_msg("no row of \"%s\" with \"%s\" is in:\n%s", first, second, program_stdout);
}

static json_t *json_of(const char *command, const char *more)
{
    if (strobe(command, arena_printf(&arena, "%s --json", more)) != 0)
        fail_msg("%s", program_stderr);
    json_error_t error;
    json_t *all = json_loads(program_stdout, 0, &error);
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
        strstr(program_stderr,
               "the data set shakespeare_char does not exist; assuming a vocabulary of 65"));
    assert_int_equal(strobe("plan", "--summary --dataset=words"), 0);
    says("vocabulary=50257\n");
    assert_int_equal(strobe("plan", "--summary --vocab=100"), 0);
    says("vocabulary=100\n");
    assert_string_equal(program_stderr, "");
    assert_int_equal(strobe("plan", "--summary --vocab_size=1000"), 0);
    says("vocabulary=1000\n");
    assert_string_equal(program_stderr, ""); /* no data set is looked for */
    assert_int_equal(strobe("plan", "--summary --vocab_size=1000 --vocab=65"), 0);
    says("parameters   915,584"); /* the others take part in the softmax */
    assert_int_equal(strobe("plan", "--vocab_size=1000 --vocab=1001"), 2);
    assert_non_null(strstr(program_stderr, "1001 distinct tokens, more than vocab_size = 1000"));
    assert_int_equal(strobe("plan", "--vocab=-1"), 2);
    assert_int_equal(strobe("plan", "--summary --vocab=152000"), 0);
    says("vocabulary=152000\n");
    assert_int_equal(strobe("plan", "--vocab=1048577"), 2);
    assert_string_equal(program_stdout, "");
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
    assert_string_equal(program_stderr, "");
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
    assert_memory_equal(program_stdout, "digraph strobe {", 16);
    assert_string_equal(program_stdout + strlen(program_stdout) - 2, "}\n");
}

/* The sources of kernels that are generated for a graph. */
static void test_generated_kernels(void **state)
{
    (void)state;
    assert_int_equal(strobe("graph", "--kernels --device=cpu"), 0);
    says("this plan has no generated kernels");
    assert_int_equal(strobe("graph", "--kernels --json"), 2);
    assert_int_equal(strobe("graph", "--kernels --after=fuse"), 2);
#ifdef HAVE_CUDA
    assert_int_equal(strobe("graph", "--kernels --device=cuda"), 0);
    says("CHAIN clip: f32 (1) -> f32 (1), f32 (1)\n");
    says("/* SQRT, OFFSET, DIV, AT_MOST: ");
    says("offset_of(r0, 1e-06f)");
    says("KERNEL(1) chain(const float *in0, float *out0, float *out1)");
    assert_int_equal(strobe("graph", "--kernels --device=cuda --eval"), 0);
    says("this plan has no generated kernels");
    assert_int_equal(strobe("graph", "--kernels --device=cuda --fusion=op"), 0);
    says("this plan has no generated kernels");
#endif
}

static void test_graph_refuses(void **state)
{
    (void)state;
    assert_int_equal(strobe("graph", "--after=fuze --vocab=65"), 2);
    assert_string_equal(program_stderr,
                        "strobe: there is no pass fuze; the passes are model, regions, join, "
                        "expand, precision, recompute, numerics, float8, fuse, chain, pack, shard, "
                        "dead\n");
    assert_int_equal(strobe("graph", "--kind=whole"), 2);
    assert_non_null(strstr(program_stderr, "there is no graph whole"));
    assert_int_equal(strobe("graph", "--eval --update"), 2);
    assert_int_equal(strobe("graph", "--n_head=7"), 2);
    assert_non_null(strstr(program_stderr, "not divisible"));
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
    assert_non_null(strstr(program_stderr, "there is no backend abacus"));
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

#ifdef HAVE_CUDA
static double real(const json_t *row, const char *key)
{
    const json_t *x = json_object_get(row, key);
    if (!json_is_number(x)) fail_msg("no number %s", key);
    return json_number_value(x);
}

/* A row is blocks x threads, and what follows from them; waves are those of 132 SMs. */
static void check_launch(const json_t *row)
{
    int x = 0, y = 1, z = 1, threads = 0;
    const char *shape = json_string_value(json_object_get(row, "grid_block"));
    if (sscanf(shape, "(%d,%d,%d) x %d", &x, &y, &z, &threads) != 4 &&
        (z = 1, sscanf(shape, "(%d,%d) x %d", &x, &y, &threads)) != 3 &&
        (y = 1, sscanf(shape, "%d x %d", &x, &threads)) != 2)
        fail_msg("%s", shape);
    double blocks = real(row, "sm_blocks"), waves = real(row, "waves");
    assert_true(blocks >= 1 && blocks * threads <= 2048);
    assert_true(real(row, "registers") * blocks * threads <= 65536);
    assert_true((real(row, "static_bytes") + real(row, "dynamic_bytes") + 1024) * blocks <=
                228 * 1024);
    assert_true(real(row, "sm_warps") == blocks * ((threads + 31) / 32));
    assert_true(fabs(waves * 132 * blocks / ((double)x * y * z) - 1) < 1e-7);
    assert_true(fabs(real(row, "tail_percent") - 100 * (ceil(waves) - waves)) < 1e-4);
}
#endif

/* The launches of a step for the GPU that is planned for where there is none. */
static void test_plan_occupancy(void **state)
{
    (void)state;
    assert_int_equal(strobe("plan", "--occupancy"), 2);
    assert_non_null(
        strstr(program_stderr, "occupancy is of the multiprocessors of a GPU: add --device="));
    assert_int_equal(strobe("plan", "--occupancy --summary"), 2);
#ifdef HAVE_CUDA
    const char *words = "--device=cuda --occupancy --tune=off --gradient_accumulation_steps=3";
    if (!cuda_nvrtc(NULL)) SKIP("NVRTC is missing");
    if (backend_find("cuda")->devices.count() > 0) SKIP("the plan would be for this GPU");
    json_t *all = json_of("plan", words);
    const json_t *rows = json_object_get(json_array_get(json_object_get(all, "tables"), 0), "rows");
    int launched = 0, library = 0, thrice = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *entry = json_string_value(json_object_get(row, "entry"));
        thrice += number(row, "launches") % 3 == 0;
        library += entry[0] == '-';
        if (entry[0] == '-') continue;
        check_launch(row);
        launched++;
    }
    assert_true(launched > 10 && library > 0 && thrice > 5);
    json_decref(all);
#endif
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

/* The sum of a column over rows; rows without it count as zero. */
static int64_t sum_of_rows(const json_t *rows, const char *key)
{
    double sum = 0;
    for (size_t i = 0; i < json_array_size(rows); i++)
        sum += json_number_value(json_object_get(json_array_get(rows, i), key));
    return (int64_t)sum;
}

static void test_memory_json_adds_up(void **state)
{
    (void)state;
    for (int flash = 0; flash < 2; flash++) {
        json_t *all =
            json_of("memory", flash ? "--flash=true" : "--flash=false --fusion=primitive");
        json_t *memory = json_object_get(all, "memory"), *peak = json_object_get(all, "peak");
        int64_t total = number(memory, "total"), most = 0;
        assert_int_equal(sum_of(memory), 2 * total);
        json_t *parts = json_object_get(peak, "parts"), *tensors = json_object_get(peak, "tensors");
        assert_int_equal(sum_of(parts), number(peak, "bytes"));
        assert_true(number(peak, "bytes") <= total);
        int64_t gap = number(peak, "bytes") - sum_of_rows(tensors, "bytes");
        assert_true(gap >= 0 && gap < total / 1000); /* between parameters */
        const json_t *timeline = json_object_get(all, "timeline");
        for (size_t i = 0; i < json_array_size(timeline); i++) {
            const json_t *row = json_array_get(timeline, i);
            int64_t used = (int64_t)json_number_value(json_object_get(row, "used"));
            assert_int_equal(used + (int64_t)json_number_value(json_object_get(row, "unused")),
                             total);
            if (used > most) most = used;
        }
        assert_int_equal(most, number(peak, "bytes"));
        json_t *block = json_object_get(all, "block");
        assert_int_equal(number(block, "layer"), 2);
        assert_int_equal(sum_of_rows(json_object_get(block, "tensors"), "bytes"),
                         number(block, "bytes"));
        assert_true(json_is_null(json_object_get(all, "limit")));
        assert_true(json_is_null(json_object_get(all, "measured")));
        assert_int_equal(json_array_size(json_object_get(all, "recompute")), 5);
        json_decref(all);
    }
}

static void test_memory(void **state)
{
    (void)state;
    assert_int_equal(strobe("memory", ""), 0);
    says_in_row("weights", "3.1 MiB");
    says("block 2 saves 6.0 MiB for backward in 13 values");
    says("memory and work with recomputation\n");
    says("\nblock:4  ");
    says("|forward");
    says("|backward");
    says("o optimizer state");
    says_not("largest batch_size");
    says_not("SCORE_SOFTMAX");
    assert_int_equal(strobe("memory", "--flash=false --block_size=1024 --rows=3"), 0);
    says("SCORE_SOFTMAX  f32 (12,4,1024,1024)");
    assert_int_equal(strobe("memory", "--block_size=1024 --rows=1000"), 0);
    says_not("1024,1024)");
    assert_int_equal(strobe("memory", "--rows=-1"), 2);
    assert_int_equal(strobe("memory", "--markdown"), 0);
    says("| recompute | memory |");
    assert_int_equal(strobe("memory", "--markdown --csv"), 2);
}

/* Each line of the plot ends within 84 columns after the axis, and no line is wider than a
 * terminal. */
static void test_memory_plot(void **state)
{
    (void)state;
    assert_int_equal(strobe("memory", "--gradient_accumulation_steps=3"), 0);
    says("|forward, 2 more");
    says("|update");
    const char *axis = strstr(program_stdout, "\n       0 B +");
    assert_non_null(axis);
    assert_int_equal(strcspn(axis + 1, "\n"), 12 + 84);
    assert_non_null(memchr(axis, '^', 12 + 84));
    for (int i = 0; i < 84; i++) assert_int_equal(axis[i - 84], 'w'); /* the lowest row */
    const char *top = strstr(program_stdout, "MiB |") + 5, *mark = memchr(axis, '^', 12 + 84);
    long peak = mark - axis - 13;
    assert_true(strspn(top, " ") <= (size_t)peak && strcspn(top, "\n") > (size_t)peak);
    assert_non_null(strchr("Sbfx", top[peak]));
    int rows = 0;
    for (const char *at = strstr(program_stdout, "MiB |"); at && at < axis;
         at = strchr(at, '\n') + 1)
        rows++;
    assert_int_equal(rows, 16);
    for (const char *at = program_stdout; *at; at += strcspn(at, "\n") + 1)
        assert_true(strcspn(at, "\n") <= 120);
}

/* The amax history is part of the total and has a separate name, with packed weights and
 * without. */
static void test_memory_of_float8(void **state)
{
    (void)state;
    for (int full = 0; full < 2; full++) {
        const char *keys = full ? "--dtype=float8 --fusion=full" : "--dtype=float8 --fusion=op";
        json_t *all = json_of("memory", keys), *memory = json_object_get(all, "memory");
        assert_int_equal(sum_of(memory), 2 * number(memory, "total"));
        assert_true(number(memory, "copies") > 0);
        json_decref(all);
        assert_int_equal(strobe("memory", keys), 0);
        says(full ? "weights as matmuls read them: bf16" : "amax history for float8");
        says("amax history");
        says_not("f32, packed");
        if (!full) says_not("weights as matmuls read them");
        assert_int_equal(strobe("plan", arena_printf(&arena, "--summary %s", keys)), 0);
        says(", magnitudes ");
        (full ? says : says_not)(", copies of weights ");
    }
}

static void test_memory_phases(void **state)
{
    (void)state;
    assert_int_equal(strobe("memory", "--phase=inference"), 0);
    says("graph eval");
    says_not("saved for backward");
    says_not("gradients");
    says_not("with recomputation");
    assert_int_equal(strobe("memory", "--phase=backward"), 0);
    says("gradients");
    says_not("optimizer state");
    assert_int_equal(strobe("memory", "--phase=sideways"), 2);
    assert_non_null(
        strstr(program_stderr, "--phase must be inference, backward or step; found sideways"));
}

static void test_memory_csv(void **state)
{
    (void)state;
    json_t *all = json_of("memory", "--gradient_accumulation_steps=2");
    assert_int_equal(strobe("memory", "--csv"), 0);
    assert_memory_equal(program_stdout, "part,bytes,share,note\nweights,", 30);
    says("\n\nrecompute,");
    says_not("plan  ");
    assert_int_equal(strobe("memory", "--gradient_accumulation_steps=2 --timeline --csv"), 0);
    static const char head[] = "graph,step,phase,layer,op,scope,weights,gradients,optimizer,copies,"
                               "cache,inputs,saved,forward,backward,update,workspace,unused,used\n";
    assert_memory_equal(program_stdout, head, sizeof head - 1);
    size_t lines = 0;
    for (const char *at = program_stdout; *at; at++) lines += *at == '\n';
    assert_int_equal(lines, 1 + json_array_size(json_object_get(all, "timeline")));
    says("\nmicro_more,");
    says("\nupdate,");
    json_decref(all);
}

static void test_memory_svg(void **state)
{
    (void)state;
    const char *path = workdir_path("memory.svg");
    assert_int_equal(strobe("memory", arena_printf(&arena, "--rows=0 --svg=%s", path)), 0);
    const char *svg = program_text(path);
    assert_memory_equal(svg, "<svg xmlns=", 11);
    assert_non_null(strstr(svg, ">saved for backward</text>"));
    assert_non_null(strstr(svg, ">backward</text>"));
    assert_non_null(strstr(svg, "allocated: "));
    path = workdir_path("absent/memory.svg");
    assert_int_equal(strobe("memory", arena_printf(&arena, "--svg=%s", path)), 1);
}

static int64_t total_at(long long batch_size)
{
    json_t *all = json_of("memory", arena_printf(&arena, "--batch_size=%lld", batch_size));
    int64_t total = number(json_object_get(all, "memory"), "total");
    json_decref(all);
    return total;
}

static void test_memory_limit(void **state)
{
    (void)state;
    json_t *all = json_of("memory", "--limit=256MiB"), *limit = json_object_get(all, "limit");
    long long batch = number(limit, "batch_size");
    assert_int_equal(number(limit, "bytes"), 1 << 28);
    assert_true(json_is_true(json_object_get(limit, "fits")));
    assert_true(total_at(batch) <= 1 << 28);
    assert_true(total_at(batch + 1) > 1 << 28);
    json_t *block = json_array_get(json_object_get(all, "recompute"), 2);
    assert_true(json_number_value(json_object_get(block, "batch_size")) > (double)batch);
    json_decref(all);
    assert_int_equal(strobe("memory", "--limit=0.25GiB"), 0);
    says(arena_printf(&arena, "of 256.0 MiB: fits; batch_size = %lld is the largest that fits\n",
                      batch));
    assert_int_equal(strobe("memory", "--limit=20MB"), 0);
    says("of 19.1 MiB: does not fit; batch_size = ");
    assert_int_equal(strobe("memory", "--device=cpu --n_embd=256 --limit=85MiB"), 0);
    says(" ranks with zero=1 are the fewest of which each fits, in ");
    assert_int_equal(strobe("memory", "--device=cpu --n_embd=256 --limit=20MiB"), 0);
    says("no number of ranks with zero=1 fits: what they do not share takes ");
    assert_int_equal(strobe("memory", "--limit=1MiB"), 0);
    says("does not fit; not even batch_size = 1 fits\n");
    assert_int_equal(strobe("memory", "--phase=inference --limit=20MB"), 0);
    says("fits; batch_size = ");
    static const char *const bad[] = {"80", "GiB", "-1GB", "0B", "1XB", "1GiBs", "", "nanGB"};
    for (int i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(strobe("memory", arena_printf(&arena, "--limit=%s", bad[i])), 2);
        assert_non_null(strstr(program_stderr, "--limit takes a size with its unit"));
    }
}

/* The memory of two steps is near the prediction if that is more than the few MiB of the
 * libraries. */
static void test_memory_measured(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    SKIP("AddressSanitizer's own memory is part of what the process grows by");
#endif
    for (int phase = 0; phase < 3; phase++) {
        static const char *const phases[] = {"inference", "backward", "step"};
        json_t *all = json_of("memory", arena_printf(&arena,
                                                     "--device=cpu --measure --batch_size=96 "
                                                     "--flash=false --block_size=128 --phase=%s",
                                                     phases[phase]));
        const json_t *measured = json_object_get(all, "measured");
        int64_t predicted = number(measured, "predicted"), used = number(measured, "measured");
        assert_int_equal(predicted, number(json_object_get(all, "memory"), "total"));
        assert_string_equal(json_string_value(json_object_get(measured, "by")), "process");
        if (used < predicted - predicted / 50 || used > predicted + predicted / 50 + (16 << 20))
            fail_msg("%s: %lld bytes predicted, %lld measured", phases[phase], (long long)predicted,
                     (long long)used);
        json_decref(all);
    }
    assert_int_equal(strobe("memory", "--measure --backend=null"), 2);
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
        assert_non_null(strstr(program_text(workdir_path("err")), "no configuration given"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vocabulary),
        cmocka_unit_test(test_vocabulary_of_the_data_set),
        cmocka_unit_test(test_graph),
        cmocka_unit_test(test_generated_kernels),
        cmocka_unit_test(test_graph_refuses),
        cmocka_unit_test(test_graph_json),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_plan_json),
        cmocka_unit_test(test_plan_occupancy),
        cmocka_unit_test(test_memory_json_adds_up),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_plot),
        cmocka_unit_test(test_memory_phases),
        cmocka_unit_test(test_memory_of_float8),
        cmocka_unit_test(test_memory_csv),
        cmocka_unit_test(test_memory_svg),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_memory_measured),
        cmocka_unit_test(test_a_configuration_is_needed),
    };
    return cmocka_run_group_tests(tests, program_setup, program_teardown);
}
